//! A card at the PCI bus: whether there is one, and whether DPDK may have it.

use std::fs;
use std::path::Path;

/// Checks that the card can be opened by DPDK; the error says what to do. `sys` is where sysfs is mounted.
pub(super) fn check(address: &str, sys: &Path) -> Result<(), String> {
    let card = sys.join("bus/pci/devices").join(address);
    if !card.exists() {
        return Err(String::from(
            "there is no such PCI device; \"dpdk-devbind.py --status-dev net\" (Debian: package dpdk) lists those that there are",
        ));
    }
    let driver = fs::read_link(card.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name);
    let driver = driver.map(|name| name.to_string_lossy().into_owned());
    let why = match driver.as_deref() {
        Some(driver) if GIVEN.contains(&driver) || SHARED.contains(&driver) => return Ok(()),
        Some(driver) => format!(
            "the kernel's driver \"{driver}\" has the card{}",
            interfaces(&card)
        ),
        None => String::from("no driver has the card"),
    };
    Err(format!(
        "{why}: \"dpdk-devbind.py --bind=vfio-pci {address}\" (Debian: package dpdk) gives it to DPDK, \
         and takes it from the kernel"
    ))
}

/// The interfaces that go with the card, in parentheses.
fn interfaces(card: &Path) -> String {
    let Ok(entries) = fs::read_dir(card.join("net")) else {
        return String::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", names.join(", ")),
    }
}

/// Drivers that pass a card on to a program (DPDK's guide "Linux Drivers").
const GIVEN: [&str; 3] = ["vfio-pci", "igb_uio", "uio_pci_generic"];

/// Those that keep it while DPDK uses it as well (the same guide, "Bifurcated Driver").
const SHARED: [&str; 3] = ["mlx4_core", "mlx5_core", "mana"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn answer(address: &str, driver: Option<&str>) -> Result<(), String> {
        let name = format!(
            "mill-card-{}-{}",
            std::process::id(),
            driver.unwrap_or("none")
        );
        let sys = std::env::temp_dir().join(name);
        let card = sys.join("bus/pci/devices/0000:03:00.0");
        fs::create_dir_all(card.join("net/eth1")).unwrap();
        fs::create_dir_all(card.join("net/eth0")).unwrap();
        if let Some(driver) = driver {
            symlink(format!("../../drivers/{driver}"), card.join("driver")).unwrap();
        }
        let answer = check(address, &sys);
        fs::remove_dir_all(&sys).unwrap();
        answer
    }

    #[test]
    fn a_card_has_to_exist_and_to_be_given_to_dpdk() {
        for driver in GIVEN.iter().chain(&SHARED) {
            assert_eq!(answer("0000:03:00.0", Some(driver)), Ok(()), "{driver}");
        }
        let check = |address: &str, driver: Option<&str>, expected: &str| {
            let refused = answer(address, driver).unwrap_err();
            assert!(refused.starts_with(expected), "{refused}");
        };
        let bind = "\"dpdk-devbind.py --bind=vfio-pci 0000:03:00.0\"";
        let has = format!("the kernel's driver \"ixgbe\" has the card (eth0, eth1): {bind}");
        check("0000:03:00.0", Some("ixgbe"), &has);
        check(
            "0000:03:00.0",
            None,
            &format!("no driver has the card: {bind}"),
        );
        check("0000:04:00.0", Some("igb"), "there is no such PCI device; ");
    }
}
