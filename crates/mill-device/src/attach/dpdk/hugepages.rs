//! Pages of 2 MiB and of 1 GiB that are reserved and unused.

use crate::specification::port::PortKind;
use std::fs;
use std::path::Path;

/// Whether to use them: a card needs some, and a virtual device does without if there are too few, which is a notice.
pub(super) fn choose(
    kind: PortKind,
    wanted: bool,
    needed_mib: u64,
) -> Result<(bool, Option<String>), String> {
    let Some(lacking) = lacking(needed_mib, Path::new("/sys")).filter(|_| wanted) else {
        return Ok((wanted, None));
    };
    match kind {
        PortKind::Card => Err(format!(
            "the card reads and writes huge pages, and {lacking}, or \"hugepages=off\" does without, where an IOMMU translates"
        )),
        PortKind::Virtual => Ok((
            false,
            Some(format!("packet memory is in small pages: {lacking}")),
        )),
    }
}

/// What to do if fewer than these are free, as the end of a sentence. `sys` is where sysfs is mounted.
fn lacking(needed_mib: u64, sys: &Path) -> Option<String> {
    let small = free(sys, "hugepages-2048kB");
    let has_large = free(sys, "hugepages-1048576kB") * 1024 >= needed_mib;
    let needed = needed_mib.div_ceil(2);
    (small < needed && !has_large).then(|| {
        format!("{needed} pages of 2 MiB are needed and {small} free: \"sysctl vm.nr_hugepages={needed}\" makes that many")
    })
}

fn free(sys: &Path, size: &str) -> u64 {
    let path = sys.join("kernel/mm/hugepages").join(size);
    let count = fs::read_to_string(path.join("free_hugepages"));
    let count = count.ok().and_then(|count| count.trim().parse().ok());
    count.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_either_size_are_enough_and_else_the_number_is_named() {
        let sys = std::env::temp_dir().join(format!("mill-hugepages-{}", std::process::id()));
        let reserve = |size: &str, count: u32| {
            let folder = sys.join("kernel/mm/hugepages").join(size);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("free_hugepages"), format!("{count}\n")).unwrap();
        };
        let needed = "64 pages of 2 MiB are needed and ";
        assert!(
            lacking(128, &sys)
                .unwrap()
                .starts_with(&format!("{needed}0 free: "))
        );
        reserve("hugepages-2048kB", 63);
        assert!(
            lacking(128, &sys)
                .unwrap()
                .starts_with(&format!("{needed}63 free: "))
        );
        reserve("hugepages-2048kB", 64);
        assert_eq!(lacking(128, &sys), None);
        reserve("hugepages-2048kB", 0);
        reserve("hugepages-1048576kB", 1);
        assert_eq!(lacking(128, &sys), None);
        fs::remove_dir_all(&sys).unwrap();
    }
}
