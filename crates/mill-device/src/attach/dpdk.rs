//! A port of DPDK: in the process that serves (`own_port.rs`), or behind a bridge.
//!
//! The bridge is DPDK's own `dpdk-testpmd`, a process that passes frames between the port and a memif whose other end is the stack's.
//! The memory is the stack's then, as that of any memif's slave is, its peer is not trusted, and processes take the device over from
//! each other.

/// A port in the process that serves.
pub(super) mod own_port;

/// DPDK's environment in this process.
mod environment;

/// A port is tried before it is served on.
pub(super) mod rehearsal;

/// The bridge's process.
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
    let chosen = hugepages::choose(port.kind, invocation.has_hugepages, invocation.memory_mib());
    let (has_hugepages, notice) = chosen?;
    invocation.has_hugepages = has_hugepages;
    let notices = notice.map(|notice| format!("dpdk:{}: {notice}", port.name));
    let notices = notices.into_iter().collect();
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
