//! A TAP device, made and set up.

use super::inherited_device::{same_terms, unknown, vlan_terms};
use super::movable::Movable;
use super::{AttachError, Trouble};
use crate::direct::DirectLink;
use crate::handover::VERSION;
use crate::impair::ImpairedLink;
use crate::specification::device::Device;
use crate::specification::{Specification, holds};
use crate::tap::TapLink;
use mill_stack::config::Prefix;
use mill_sys::interface::InterfaceAddress;
use mill_sys::tap::{self, Offload, TapError};
use mill_sys::{descriptor, interface, netlink};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A worker's descriptor of the device, one of its queues, and the Ethernet address of the stack's end.
#[derive(Clone, Debug)]
pub(super) struct Tap<D> {
    device: D,
    address: [u8; 6],
    /// The first worker reports what is true for all.
    is_first: bool,
}

impl Tap<OwnedFd> {
    /// Makes the device with a queue for each worker, and configures addresses on this machine's side.
    pub(super) fn make(
        name: &str,
        specification: &Specification,
    ) -> Result<Vec<Self>, AttachError> {
        check_addresses(specification)?;
        let offload = if specification.offload {
            Offload::ChecksumAndSegmentation
        } else {
            Offload::Nothing
        };
        let devices = match specification.attachments() {
            1 => tap::create(name, offload).map(|device| vec![device]),
            count => tap::create_queues(name, offload, count),
        };
        let devices = devices.map_err(|error| not_created(name, &error))?;
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
        let address = address_beside(theirs);
        let attachments = devices.into_iter().enumerate();
        let attachments = attachments.map(|(worker, device)| Self {
            device,
            address,
            is_first: worker == 0,
        });
        Ok(attachments.collect())
    }

    /// What another process has to know besides the descriptors.
    pub(super) fn describe(&self, specification: &Specification) -> String {
        let address = self.address.map(|byte| format!("{byte:02x}")).join(":");
        let first = self.is_first;
        format!(
            "{VERSION} {} first {first} address {address}",
            terms(specification)
        )
    }

    /// Parses the description that the previous binary, or the keeper of a device, has sent.
    pub(super) fn inherit(
        specification: &Specification,
        text: &str,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, AttachError> {
        let terms = terms(specification);
        let rest = same_terms(text, &terms)?;
        let is_first = rest.starts_with("first true ");
        let address = rest.split_once("address ").map(|(_, address)| address);
        let bytes = address.into_iter().flat_map(|address| address.split(':'));
        let bytes = bytes.map(|byte| u8::from_str_radix(byte, 16).ok());
        let bytes: Option<Vec<u8>> = bytes.collect();
        let address = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        match (address, descriptors.next()) {
            (Some(address), Some(device)) => Ok(Self {
                device,
                address,
                is_first,
            }),
            _ => Err(unknown(text)),
        }
    }

    /// How it is opened, by one process after the other.
    pub(super) fn movable(
        self,
        specification: &Specification,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> Movable {
        let specification = specification.clone();
        let (mtu, offload) = (specification.mtu(), specification.offload);
        Movable {
            properties: TapLink::properties_of(self.address, mtu, offload),
            kind: "tap",
            open: Box::new(move || {
                let on_trouble = on_trouble.clone();
                let tap = self.try_map(OwnedFd::try_clone)?;
                let link = tap.link(&specification, move || on_trouble(Trouble::DeviceGone));
                let impairment = specification.impairment;
                Ok(match impairment.is_none() {
                    true => DirectLink::Tap(link),
                    false => DirectLink::Impaired(ImpairedLink::new(link, impairment)),
                })
            }),
        }
    }

    fn link(
        self,
        specification: &Specification,
        on_gone: impl FnOnce() + Send + 'static,
    ) -> TapLink {
        let mtu = specification.mtu();
        let link = TapLink::new(self.device, self.address, mtu, specification.offload);
        match self.is_first {
            true => link.on_gone(on_gone),
            false => link,
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.device)
    }
}

/// What both processes have to agree on.
fn terms(specification: &Specification) -> String {
    let Device::Tap { name } = &specification.device else {
        return String::new();
    };
    let (mtu, offload) = (specification.mtu(), specification.offload);
    format!(
        "tap {name} mtu {mtu} offload {offload}{}",
        vlan_terms(specification.vlan())
    )
}

impl<D> Tap<D> {
    pub(super) fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<Tap<E>> {
        Ok(Tap {
            device: copy(&self.device)?,
            address: self.address,
            is_first: self.is_first,
        })
    }
}

/// Refuses addresses that this machine has already.
fn check_addresses(specification: &Specification) -> Result<(), AttachError> {
    let Ok(present) = interface::addresses() else {
        // Nothing is known then, and the kernel decides.
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
    check_networks(specification, &present)
}

/// Refuses networks that this machine would look for on another link: of two routes the kernel takes the more specific
/// one, and of two equal ones the older. Without `host=` the device has no network of its own, or becomes part of a
/// bridge.
fn check_networks(
    specification: &Specification,
    present: &[InterfaceAddress],
) -> Result<(), AttachError> {
    for own in &specification.addresses {
        let len = |host: &Prefix| holds(*host, own.address).then_some(host.len);
        let Some(by_host) = specification.host.iter().filter_map(len).max() else {
            continue;
        };
        let rival = present.iter().find(|one| {
            let network = Prefix {
                address: one.address,
                len: one.prefix_len,
            };
            one.prefix_len >= by_host && holds(network, own.address)
        });
        if let Some(rival) = rival {
            let (own, len) = (own.address, rival.prefix_len);
            let (interface, theirs) = (&rival.interface, rival.address);
            return Err(AttachError(format!(
                "{own} can't be the stack's: this machine looks for it behind {interface}, which has {theirs}/{len}; \
                 choose a network that is not in use"
            )));
        }
    }
    Ok(())
}

/// Waits until the kernel accepts packets to an address that it was given. For IPv6 that takes some milliseconds, and
/// packets are dropped until then, so that a first connection would wait for a retransmission. Continues after
/// [`LOCAL_TIMEOUT_MS`] in any case.
fn wait_until_local(address: Ipv6Addr) {
    // One route a line: the target in hexadecimal, the length of its prefix, …
    let route = format!("{:032x} 80 ", address.to_bits());
    for _ in 0..LOCAL_TIMEOUT_MS {
        let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route");
        if routes.map_or(true, |routes| routes.contains(&route)) {
            return;
        }
        // No descriptors: waits for the time alone.
        let _ = descriptor::wait_readable(&[], Some(Duration::from_millis(1)));
    }
}

/// How long that may take; up to 20 ms were seen.
const LOCAL_TIMEOUT_MS: u32 = 500;

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

/// The Ethernet address of the stack's end: locally administered, and different from the kernel's end.
fn address_beside(theirs: [u8; 6]) -> [u8; 6] {
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
