//! Makes the device that a specification asks for. That takes rights; running it afterwards takes none.

use crate::any::AnyLink;
use crate::impair::ImpairedLink;
use crate::pcap::CapturedLink;
use crate::specification::Specification;
use crate::tap::TapLink;
use mill_stack::config::Prefix;
use mill_sys::tap::{self, Offload, TapError};
use mill_sys::{descriptor, interface, netlink};
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// A device with its interface set up. It vanishes with the last duplicate of its descriptor.
#[derive(Debug)]
pub struct Attached {
    pub device: OwnedFd,
    /// The Ethernet address of our end.
    pub address: [u8; 6],
    /// Where frames are to be written down.
    pub pcap: Option<File>,
}

/// What can happen to a running link.
#[derive(Debug)]
pub enum Trouble {
    /// Somebody has deleted the interface: nothing passes any more.
    DeviceGone,
    /// The file of frames can't be written: no more frames are.
    Capture(io::Error),
}

/// Why there is no device: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachError(String);

impl Attached {
    /// Makes the device, gives this machine's side its addresses, and opens the file of frames.
    pub fn new(specification: &Specification) -> Result<Self, AttachError> {
        check_addresses(specification)?;
        let name = specification.name.as_str();
        let offload = if specification.offload {
            Offload::ChecksumAndSegmentation
        } else {
            Offload::Nothing
        };
        let device = tap::create(name, offload).map_err(|error| not_created(name, &error))?;
        // Only now, so that a start that fails anyway empties no file.
        let pcap = specification.pcap.as_deref().map(create).transpose()?;
        let failed = |what: &str, error: &io::Error| {
            AttachError(format!("{what} the device \"{name}\" failed: {error}"))
        };
        let theirs =
            interface::hardware_address(name).map_err(|error| failed("examining", &error))?;
        interface::set_mtu(name, specification.mtu())
            .map_err(|error| failed("setting the MTU of", &error))?;
        for Prefix { address, len } in &specification.host {
            netlink::add_address(name, *address, *len).map_err(|error| {
                let hint = if address.is_ipv6() {
                    "; is IPv6 switched off on this machine?"
                } else {
                    ""
                };
                AttachError(format!(
                    "giving \"{name}\" the address {address}/{len} failed: {error}{hint}"
                ))
            })?;
        }
        interface::set_up(name).map_err(|error| failed("switching on", &error))?;
        for Prefix { address, .. } in &specification.host {
            if let IpAddr::V6(address) = address {
                wait_until_local(*address);
            }
        }
        Ok(Self {
            device,
            address: neighbour_of(theirs),
            pcap,
        })
    }

    /// Duplicates of the descriptors, for another process or thread.
    pub fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            device: self.device.try_clone()?,
            address: self.address,
            pcap: self.pcap.as_ref().map(File::try_clone).transpose()?,
        })
    }

    /// The link, as the specification wants it. `on_trouble` is told each kind of trouble once.
    pub fn link(
        self,
        specification: &Specification,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> AnyLink {
        let mtu = specification.mtu();
        let on_gone = on_trouble.clone();
        let tap = TapLink::new(self.device, self.address, mtu, specification.offload)
            .told_when_gone(move || on_gone(Trouble::DeviceGone));
        let on_error = move |error| on_trouble(Trouble::Capture(error));
        let impairment = specification.impairment;
        match (self.pcap, impairment.is_none()) {
            (None, true) => AnyLink::Tap(tap),
            (None, false) => AnyLink::Impaired(ImpairedLink::new(tap, impairment)),
            (Some(file), true) => {
                AnyLink::Captured(CapturedLink::new(tap, file, Box::new(on_error)))
            }
            (Some(file), false) => {
                let impaired = ImpairedLink::new(tap, impairment);
                AnyLink::CapturedImpaired(CapturedLink::new(impaired, file, Box::new(on_error)))
            }
        }
    }
}

/// Nobody on this machine may have the addresses already.
fn check_addresses(specification: &Specification) -> Result<(), AttachError> {
    let Ok(present) = interface::addresses() else {
        // Then nothing is known, and the kernel decides.
        return Ok(());
    };
    for (prefixes, whose) in [
        (&specification.addresses, "the stack's"),
        (&specification.host, "the host's"),
    ] {
        for Prefix { address, .. } in prefixes {
            if let Some(holder) = present.iter().find(|one| one.address == *address) {
                let interface = &holder.interface;
                return Err(AttachError(format!(
                    "{address} can't be {whose}: {interface} of this machine has it"
                )));
            }
        }
    }
    Ok(())
}

/// Waits until the kernel takes packets to an address that it was given: with IPv6 it does some milliseconds later, and
/// until then drops them, so that a first connection would wait for a retransmission. Goes on after [`LOCAL_PATIENCE_MS`]
/// in any case.
fn wait_until_local(address: Ipv6Addr) {
    // One line a route: the target in hexadecimal, the length of its prefix, …
    let route = format!("{:032x} 80 ", address.to_bits());
    for _ in 0..LOCAL_PATIENCE_MS {
        let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route");
        if routes.map_or(true, |routes| routes.contains(&route)) {
            return;
        }
        // Waits for nothing but the time.
        let _ = descriptor::wait_readable(&[], Some(Duration::from_millis(1)));
    }
}

/// How long the kernel may take; it was seen to take up to 20 ms.
const LOCAL_PATIENCE_MS: u32 = 500;

fn create(path: &Path) -> Result<File, AttachError> {
    File::create(path).map_err(|error| {
        let path = path.display();
        AttachError(format!("\"{path}\" can't be written: {error}"))
    })
}

fn not_created(name: &str, failed: &TapError) -> AttachError {
    let TapError { call, error } = failed;
    let reason = match (*call, error.raw_os_error()) {
        ("open(/dev/net/tun)", Some(ENOENT | ENODEV | ENXIO)) => String::from(
            "this machine has no TAP devices (no /dev/net/tun); \"modprobe tun\" may help",
        ),
        ("open(/dev/net/tun)", Some(EACCES | EPERM)) => {
            String::from("/dev/net/tun may not be opened; root may")
        }
        ("ioctl(TUNSETIFF)", Some(EPERM)) => {
            String::from("making network devices takes the right CAP_NET_ADMIN, which root has")
        }
        ("ioctl(TUNSETIFF)", Some(EBUSY | EEXIST)) => {
            format!("there is an interface \"{name}\" already")
        }
        (call, _) => format!("{call}: {error}"),
    };
    AttachError(format!(
        "the TAP device \"{name}\" could not be made: {reason}"
    ))
}

/// The address of our end of the wire: a locally administered one, and not that of the other end.
fn neighbour_of(theirs: [u8; 6]) -> [u8; 6] {
    let [first, rest @ .., last] = theirs;
    let mut ours = theirs;
    ours[0] = (first | LOCAL) & !GROUP;
    ours[1..5].copy_from_slice(&rest);
    ours[5] = last ^ 1;
    ours
}

/// Bits of the first byte of an Ethernet address (IEEE 802 8.4): administered locally; of a group.
const LOCAL: u8 = 2;
const GROUP: u8 = 1;

impl fmt::Display for AttachError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AttachError {}

// Linux's error numbers (asm-generic/errno-base.h).
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const ENXIO: i32 = 6;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const ENODEV: i32 = 19;

#[cfg(test)]
mod tests;
