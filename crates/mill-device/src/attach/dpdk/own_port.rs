//! A port in the process that serves: how it is opened, with which queues, and a worker's part of it.
//!
//! DPDK's environment (EAL) belongs to one process, which may not fork any more. So the process in charge only tries the port, in a
//! child (`rehearsal.rs`), and each process that serves opens it for itself, before it gives up its rights.

use super::environment;
use crate::attach::{AttachError, Trouble};
use crate::dpdk::{DpdkLink, HELD_MAX};
use crate::specification::Specification;
use crate::specification::device::Device;
use crate::specification::port::{Port as PortName, PortKind};
use mill_sys::dpdk::port::{DeviceName, FoundPort, Port, PortSettings};
use mill_sys::dpdk::port_info::{Offloads, PortInfo};
use mill_sys::eventfd;
use std::io;
use std::sync::{Arc, OnceLock};

/// A worker's part, which is nothing but its number until the process has opened the port.
#[derive(Clone, Debug)]
pub(in crate::attach) struct OwnPort {
    number: u16,
    opened: Arc<OnceLock<Arc<Port>>>,
}

/// A port that was opened: how many workers it carries, and what could not be had as requested.
#[derive(Debug)]
pub(in crate::attach) struct Opened {
    pub(in crate::attach) queue_pairs: usize,
    pub(in crate::attach) notices: Vec<String>,
}

impl OwnPort {
    /// Parts for so many workers, none of which touches the port yet.
    pub(in crate::attach) fn parts(count: u32) -> Vec<Self> {
        let opened = Arc::new(OnceLock::new());
        let numbers = 0..u16::try_from(count.max(1)).unwrap_or(u16::MAX);
        let part = |number| Self {
            number,
            opened: Arc::clone(&opened),
        };
        numbers.map(part).collect()
    }

    /// Opens the port of these parts in this process, with a queue pair for each, or as many as it has.
    pub(in crate::attach) fn open(
        parts: &[&Self],
        specification: &Specification,
    ) -> Result<Opened, AttachError> {
        let (port, notices) = start(specification, parts.len())?;
        let queue_pairs = usize::from(port.settings().queue_pairs);
        if let Some(first) = parts.first() {
            // Opened twice, the first stays.
            let _ = first.opened.set(port);
        }
        Ok(Opened {
            queue_pairs,
            notices,
        })
    }

    /// Opens it and closes it again: what the process that serves will find.
    pub(super) fn attempt(
        count: usize,
        specification: &Specification,
    ) -> Result<Opened, AttachError> {
        let (port, notices) = start(specification, count)?;
        Ok(Opened {
            queue_pairs: usize::from(port.settings().queue_pairs),
            notices,
        })
    }

    /// The link of this worker. An error says that the port is not open in this process, or has fewer queues.
    pub(in crate::attach) fn link(
        self,
        specification: &Specification,
        on_trouble: impl Fn(Trouble) + Send + 'static,
    ) -> io::Result<DpdkLink> {
        let queues = self
            .opened
            .get()
            .and_then(|port| port.queue_pair(self.number));
        let queues = queues.ok_or_else(|| {
            io::Error::other("the port of DPDK has no queues for this thread in this process")
        })?;
        let address = crate::attach::memif::ethernet_address(specification);
        let link = DpdkLink::new(queues, address, eventfd::create()?);
        Ok(match self.number {
            0 => link.on_link_change(move |is_up| on_trouble(trouble_of(is_up))),
            _ => link,
        })
    }
}

fn trouble_of(is_up: bool) -> Trouble {
    match is_up {
        true => Trouble::Notice(String::from("the link is up again: connections go on")),
        false => Trouble::Problem(String::from(
            "the link is down: connections wait until it is up",
        )),
    }
}

fn start(
    specification: &Specification,
    count: usize,
) -> Result<(Arc<Port>, Vec<String>), AttachError> {
    let Device::Dpdk { port: name } = &specification.device else {
        return Err(AttachError(String::from("the device is no port of DPDK")));
    };
    let wanted = u16::try_from(count).unwrap_or(u16::MAX);
    let named = |what: String| format!("dpdk:{}: {what}", name.name);
    match try_start(name, specification, wanted) {
        Ok((port, notices)) => Ok((port, notices.into_iter().map(named).collect())),
        Err(what) => Err(AttachError(named(what))),
    }
}

fn try_start(
    name: &PortName,
    specification: &Specification,
    wanted: u16,
) -> Result<(Arc<Port>, Vec<String>), String> {
    if name.name.starts_with(NEEDS_RIGHTS) {
        return Err(format!(
            "the driver {NEEDS_RIGHTS} can't take its program off the interface in a process without rights: \"af_xdp:INTERFACE\" is the \
             stack's own way, and with \"bridge=on\" another process has the driver"
        ));
    }
    let frame_bytes = room_bytes(specification.mtu());
    let memory = environment::Memory {
        frames: u32::from(wanted) * frames_of_pair(specification),
        frame_bytes,
    };
    let (environment, log, mut notices) = environment::start(name, specification, memory)?;
    let said =
        |call: &str, why: &str| format!("{call}: {why}; DPDK's last words: {}", log.summary());
    let device = DeviceName {
        bus: match name.kind {
            PortKind::Card => "pci",
            PortKind::Virtual => "vdev",
        },
        name: name.name.clone(),
        arguments: name.arguments.clone(),
    };
    let found = FoundPort::find(environment, &device);
    let found = found.map_err(|error| said(error.call, &error.why))?;
    let (settings, about_queues) = settings(found.info(), specification, (wanted, frame_bytes))?;
    notices.extend(about_queues);
    let port = found
        .start(settings)
        .map_err(|error| said(error.call, &error.why))?;
    environment.log_to_standard_error();
    if !port.is_promiscuous()
        && port.address() != Some(crate::attach::memif::ethernet_address(specification))
    {
        let own = port
            .address()
            .unwrap_or_default()
            .map(|byte| format!("{byte:02x}"))
            .join(":");
        notices.push(format!(
            "the driver has no promiscuous mode, and perhaps passes frames of its own address only: \"ethernet-address={own}\" makes that the stack's"
        ));
    }
    Ok((port, notices))
}

/// What the port is started with, and a sentence if it has fewer queues than wanted.
fn settings(
    info: &PortInfo,
    specification: &Specification,
    (wanted, room_bytes): (u16, u16),
) -> Result<(PortSettings, Option<String>), String> {
    let (driver, mtu, (least, most)) = (&info.driver, specification.mtu(), info.mtu);
    if mtu < least || most > 0 && mtu > most {
        return Err(format!(
            "the driver {driver} has no MTU of {mtu}: \"mtu=\" may be {least} to {most}"
        ));
    }
    let has = info.receive_queues.min(info.transmit_queues).max(1);
    let queue_pairs = wanted.min(has);
    let notice = (queue_pairs < wanted).then(|| {
        let pairs = if has == 1 { "1 queue" } else { &format!("{has} queues") };
        format!(
            "the driver {driver} has {pairs} in each direction, and {wanted} workers want one each: the others serve kernel sockets only; \
             many drivers take the number as an argument (\"qpairs={wanted}\" or so)"
        )
    });
    let offloads = match specification.offload {
        true => info.offloads,
        false => Offloads {
            scatters: info.offloads.scatters,
            gathers: info.offloads.gathers,
            ..Offloads::default()
        },
    };
    let settings = PortSettings {
        queue_pairs,
        descriptors: u16::try_from(specification.memif.ring_size).unwrap_or(u16::MAX),
        mtu,
        offloads,
        hashes: info.hashes,
        room_bytes,
        frames_held: HELD_MAX + specification.limits.burst_max,
    };
    Ok((settings, notice))
}

/// Frames in memory for each queue pair, as far as the descriptors are those that were asked for.
fn frames_of_pair(specification: &Specification) -> u32 {
    2 * specification.memif.ring_size + HELD_MAX + specification.limits.burst_max + CACHES
}

/// Bytes of a piece of memory: a frame of the wire is in one piece.
fn room_bytes(mtu: u16) -> u16 {
    (mtu.saturating_add(HEADERS)).clamp(ROOM_BYTES_MIN, ROOM_BYTES_MAX)
}

/// A driver that needs rights when it ends.
const NEEDS_RIGHTS: &str = "net_af_xdp";

/// An Ethernet header with two tags, and its check sum.
const HEADERS: u16 = 26;

/// Drivers want 2 KiB and not less (RTE_MBUF_DEFAULT_DATAROOM of rte_mbuf_core.h), and count in 16 bits, with the headroom.
const ROOM_BYTES_MIN: u16 = 2048;
const ROOM_BYTES_MAX: u16 = 65_280;

/// As DPDK keeps some for each thread.
const CACHES: u32 = 832;
