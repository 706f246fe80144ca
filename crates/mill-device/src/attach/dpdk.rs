//! A port of DPDK, behind a bridge: DPDK's own `dpdk-testpmd`, a process that passes frames between the port and a memif whose
//! other end is the stack's.
//!
//! So nothing of DPDK is in this program, and any driver that DPDK has can be used. The memory is the stack's, as that of any
//! memif's slave is, and its peer is not trusted.

/// The process.
pub(super) mod bridge;

/// Its command line.
mod invocation;

/// What it writes.
pub(super) mod output;

/// The socket at which it listens.
mod meeting_place;

/// A card, and the kernel's driver that has it.
mod card;

/// Pages of 2 MiB.
mod hugepages;

use super::AttachError;
use crate::specification::Specification;
use crate::specification::port::{Port, PortKind};
use bridge::Bridge;
use invocation::Invocation;
use meeting_place::MeetingPlace;
use mill_sys::affinity;
use output::Output;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A port whose bridge is ready for the stack.
#[derive(Debug)]
pub(super) struct Bridged {
    pub(super) bridge: Bridge,
    /// The socket's file, by which the stack connects.
    pub(super) socket: OwnedFd,
    /// What the bridge writes.
    pub(super) output: OwnedFd,
    pub(super) notices: Vec<String>,
}

/// Starts a bridge to the port, and waits until it is ready.
pub(super) fn make(port: &Port, specification: &Specification) -> Result<Bridged, AttachError> {
    let made = try_make(port, specification);
    made.map_err(|what| AttachError(format!("dpdk:{}: {what}", port.name)))
}

fn try_make(port: &Port, specification: &Specification) -> Result<Bridged, String> {
    if port.kind == PortKind::Card {
        card::check(&port.name, Path::new("/sys"))?;
    }
    let mut invocation = Invocation {
        port,
        specification,
        cpus: affinity::allowed_cpus().unwrap_or_else(|_| vec![0]),
        has_hugepages: specification.dpdk.hugepages,
    };
    let mut notices = Vec::new();
    if let Some(lacking) = hugepages::lacking(invocation.memory_mib(), Path::new("/sys"))
        && invocation.has_hugepages
    {
        if port.kind == PortKind::Card {
            return Err(format!(
                "the card reads and writes huge pages, and {lacking}, or \"hugepages=off\" does without, where an IOMMU translates"
            ));
        }
        invocation.has_hugepages = false;
        notices.push(format!(
            "dpdk:{}: packet memory of the bridge is in small pages: {lacking}",
            port.name
        ));
    }
    let place = MeetingPlace::new().map_err(|error| format!("a folder can't be made: {error}"))?;
    let output = Output::new().map_err(|error| format!("a memfd can't be made: {error}"))?;
    let bridge = Bridge::start(&invocation.arguments(&place.socket()), &output)?;
    bridge.wait_until_ready(&output)?;
    let socket = place.open();
    Ok(Bridged {
        bridge,
        socket: socket.map_err(|error| format!("the bridge's socket can't be opened: {error}"))?,
        output: output.into_file(),
        notices,
    })
}
