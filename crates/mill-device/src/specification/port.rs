//! A port of DPDK: a card by its PCI address, or a virtual device, with the arguments that its driver takes.

use super::device::Device;
use super::{Specification, SpecificationError, error};

/// A port, as specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub kind: PortKind,
    /// The card's address, or the virtual device's name.
    pub name: String,
    /// Those of the driver, between commas; empty: none.
    pub arguments: String,
}

/// The two kinds of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// At the PCI bus.
    Card,
    /// Made by a driver, as `net_tap`.
    Virtual,
}

impl Port {
    /// Parses what stands behind `dpdk:`, up to the first comma.
    pub(super) fn parse(text: &str) -> Result<Self, SpecificationError> {
        let (kind, name) = match text.strip_prefix(VIRTUAL) {
            Some(name) => (PortKind::Virtual, virtual_name(name)),
            None => (PortKind::Card, pci_address(text)),
        };
        let name = name.ok_or_else(|| error(format!("\"{text}\" is no port of DPDK: {FORMS}")))?;
        Ok(Self {
            kind,
            name,
            arguments: String::new(),
        })
    }

    /// As DPDK takes it, with its arguments.
    pub(crate) fn description(&self) -> String {
        match self.arguments.as_str() {
            "" => self.name.clone(),
            arguments => format!("{},{arguments}", self.name),
        }
    }
}

impl Specification {
    /// The same, with a bridge to a port of DPDK; other devices have none.
    pub fn behind_bridge(mut self) -> Result<Self, SpecificationError> {
        if matches!(self.device, Device::Dpdk { .. }) {
            self.dpdk.bridge = true;
            check(&self)?;
        }
        Ok(self)
    }
}

/// Checks what a port can't do in the process that serves, or behind a bridge.
pub(super) fn check(specification: &Specification) -> Result<(), SpecificationError> {
    let (dpdk, mtu) = (&specification.dpdk, specification.mtu);
    if !dpdk.bridge && !dpdk.cores.is_empty() {
        let what = "\"core\" says where the bridge to a port of DPDK runs: it needs \"bridge=on\"";
        return Err(error(String::from(what)));
    }
    if dpdk.bridge && mtu > BRIDGE_MTU_MAX {
        return Err(error(format!(
            "mtu={mtu} is more than the bridge to a port of DPDK passes on, which is {BRIDGE_MTU_MAX}"
        )));
    }
    Ok(())
}

/// `0000:03:00.0`, or without the domain, which is 0 then.
fn pci_address(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let full = match text.matches(':').count() {
        1 => format!("0000:{text}"),
        _ => text,
    };
    let (domain, rest) = full.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let is_hex = |text: &str, digits: core::ops::RangeInclusive<usize>| {
        digits.contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let is_address = is_hex(domain, 4..=8)
        && is_hex(bus, 2..=2)
        && is_hex(device, 2..=2)
        && is_hex(function, 1..=1);
    is_address.then_some(full)
}

/// The driver's name with a number, as EAL asks.
fn virtual_name(name: &str) -> Option<String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = name.starts_with("net_")
        && name.len() <= VIRTUAL_LEN_MAX
        && name.ends_with(|letter: char| letter.is_ascii_digit())
        && name.chars().all(is_letter);
    // The name of the bridge's other port.
    (is_name && name != TAKEN).then(|| name.to_owned())
}

/// testpmd sets one length of frames for all of its ports, and DPDK's memif takes none above 1518 bytes.
const BRIDGE_MTU_MAX: u32 = 1500;

/// The name of the port that leads from the bridge to the stack.
pub(crate) const TAKEN: &str = "net_memif63";

const VIRTUAL: &str = "vdev=";

const FORMS: &str = "it is written as a PCI address, as in \"dpdk:0000:03:00.0\", or as a virtual device, the name of a driver \
                     and a number, as in \"dpdk:vdev=net_af_packet0,iface=eth1\"";

/// Bytes of a device's name (RTE_DEV_NAME_MAX_LEN of DPDK's rte_dev.h, less the NUL).
const VIRTUAL_LEN_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_named_by_its_address_with_or_without_a_domain() {
        let check = |text: &str, expected: Option<&str>| {
            let parsed = Port::parse(text).ok().map(|port| (port.kind, port.name));
            let expected = expected.map(|name| (PortKind::Card, name.to_owned()));
            assert_eq!(parsed, expected, "{text}");
        };
        check("0000:03:00.0", Some("0000:03:00.0"));
        check("03:00.0", Some("0000:03:00.0"));
        check("10000:E1:1F.7", Some("10000:e1:1f.7"));
        for wrong in [
            "",
            "eth0",
            "03:00",
            "0000:03:00",
            "0:03:00.0",
            "0000:3:00.0",
            "0000:03:00.00",
            "0000:03:0g.0",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_virtual_device_is_a_drivers_name_with_a_number() {
        let check = |name: &str, is_one: bool| {
            let parsed = Port::parse(&format!("vdev={name}"));
            assert_eq!(parsed.is_ok(), is_one, "{name}");
        };
        check("net_tap0", true);
        check("net_af_packet12", true);
        check("net_tap", false);
        check("crypto_null0", false);
        check("net_tap;0", false);
        check(TAKEN, false);
        check(&format!("net_{}", "1".repeat(59)), true);
        check(&format!("net_{}", "1".repeat(60)), false);
    }

    #[test]
    fn a_wrong_port_is_answered_with_the_forms_of_right_ones() {
        let refused = Port::parse("eth0").unwrap_err().to_string();
        let expected = "\"eth0\" is no port of DPDK: it is written as a PCI address, as in \"dpdk:0000:03:00.0\", or";
        assert!(refused.starts_with(expected), "{refused}");
    }
}
