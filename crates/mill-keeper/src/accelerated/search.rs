//! Finding processes that show themselves: by the names of their descriptors. Root finds all, other users their own.

use super::text::one_line;
use super::{Accelerated, sheet};
use crate::launch::LIBRARY;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;

/// A process that was found, by the number that it has here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub process: u32,
    pub shown: Accelerated,
}

/// All of this machine that this user may look at: by their `millstream run`, and the oldest first.
pub fn all() -> Vec<Found> {
    let mut found: Vec<Found> = processes().filter_map(of).collect();
    found.sort_by_key(|found| (found.shown.run, found.shown.made_at_ns, found.process));
    found
}

/// Processes that have the library and no stack: all their connections are the kernel's. Number and name of each.
pub fn on_kernel(accelerated: &[Found]) -> Vec<(u32, String)> {
    let is_other = |process: &u32| !accelerated.iter().any(|found| found.process == *process);
    let has_library = |process: &u32| {
        let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        maps.split(|byte| *byte == b'\n')
            .any(|line| line.ends_with(LIBRARY.as_bytes()))
    };
    let each = processes().filter(is_other).filter(has_library);
    let each = each.map(|process| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        (process, one_line(name.trim_end()))
    });
    let mut each: Vec<_> = each.collect();
    each.sort();
    each
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process shows.
pub fn of(process: u32) -> Option<Found> {
    let own = own_number(process);
    let entries = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let target = format!("/memfd:{}", sheet::NAME);
    for entry in entries.flatten() {
        let link = fs::read_link(entry.path()).unwrap_or_default();
        if !link.as_os_str().as_bytes().starts_with(target.as_bytes()) {
            continue;
        }
        let text = File::open(entry.path()).and_then(|file| sheet::read(&file));
        let shown = text
            .ok()
            .flatten()
            .and_then(|text| Accelerated::parse(&text));
        // A forked process has its parent's as well.
        if let Some(shown) = shown.filter(|shown| Some(shown.process) == own) {
            return Some(Found { process, shown });
        }
    }
    None
}

/// The number of a process in its own namespace, the last one of /proc/PID/status.
fn own_number(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    match numbers {
        Some(numbers) => numbers.split_whitespace().next_back()?.parse().ok(),
        // Without namespaces of processes in the kernel.
        None => Some(process),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerated::sheet::Sheet;

    /// One test, since all tests of a process share its descriptors.
    #[test]
    fn a_process_is_found_while_it_shows_itself_and_only_under_its_own_number() {
        let own = std::process::id();
        let mut sheet = Sheet::new().unwrap();
        let mut shown = Accelerated {
            process: own + 1,
            program: String::from("test"),
            ..Accelerated::default()
        };
        sheet.write(&shown.emit());
        assert_eq!(of(own), None);
        shown.process = own;
        sheet.write(&shown.emit());
        let expected = Found {
            process: own,
            shown,
        };
        assert_eq!(of(own).as_ref(), Some(&expected));
        assert!(all().contains(&expected));
        drop(sheet);
        assert_eq!(of(own), None);
    }
}
