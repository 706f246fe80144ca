//! What a process keeps of a device that it does not own.

use crate::direct::DirectLink;
use crate::handover::EventSource;
use crate::handover::member::Member;
use crate::interface::untaken;
use crate::interface::{FaultCallback, OpenQueue};
use crate::network::monitor::{Change, NetlinkMonitor};
use crate::outlet;
use crate::steering::table::opened::OpenedPorts;
use crate::wanted::Wanted;
use mill_stack::link::{LinkProperties, Service};
use mill_wire::protocol::Protocol;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

/// What a link keeps whether or not its process owns the device.
pub(crate) struct Parts {
    pub(crate) member: Member,
    pub(crate) origin: Origin,
    pub(crate) on_fault: FaultCallback,
    pub(crate) wanted: Wanted,
    /// This process owned the device but could not open it, and leaves it to others.
    pub(crate) has_failed: bool,
}

impl Parts {
    /// Whether connections are opened here, or were by way of this process while it owned the device.
    pub(super) fn opens_ports(&self) -> bool {
        self.member.opens_ports || self.wanted.opens_ports || self.origin.are_open()
    }
}

/// What opens the device, and says what it is like meanwhile.
#[expect(clippy::large_enum_variant, reason = "a link has one")]
pub(crate) enum Origin {
    /// The kernel's interface, which it changes at any time.
    Interface {
        open: OpenQueue,
        monitor: NetlinkMonitor,
        /// Buffer for what the monitor reports.
        changes: Vec<Change>,
        /// Long segments leave whole ([`crate::outlet`]).
        has_outlet: bool,
        /// Ports from which connections are opened.
        opened: Arc<OpenedPorts>,
    },
    /// One that stays as it was made.
    Device {
        open: OpenDevice,
        properties: LinkProperties,
        /// Its kind, as in a specification.
        kind: &'static str,
    },
}

/// Opens a device that no other process uses now.
pub(crate) type OpenDevice = Box<dyn Fn() -> io::Result<DirectLink> + Send>;

impl Origin {
    pub(super) fn properties(&self) -> LinkProperties {
        match self {
            Self::Interface {
                monitor,
                has_outlet,
                ..
            } => {
                let state = &monitor.network().link;
                LinkProperties {
                    address: state.mac.0,
                    mtu: state.mtu,
                    completes_checksums: false,
                    segment_bytes_max: match has_outlet {
                        true => outlet::SEGMENT_BYTES_MAX,
                        false => u32::from(state.mtu),
                    },
                    // A segment in one piece is passed on at once.
                    cut_bytes_min: 0,
                    sends_external: false,
                    frames_per_turn: usize::MAX,
                }
            }
            Self::Device { properties, .. } => LinkProperties {
                sends_external: false,
                frames_per_turn: usize::MAX,
                ..*properties
            },
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Interface { .. } => "af_xdp",
            Self::Device { kind, .. } => kind,
        }
    }

    /// A process that begins with this link has to be told what the interface knows.
    pub(super) fn begin(&mut self, member: &Member) {
        let Self::Interface {
            monitor, changes, ..
        } = self
        else {
            return;
        };
        member.endpoint.open(EventSource::Network, monitor.as_fd());
        let network = monitor.network().clone();
        changes.push(Change::Routes {
            routes: network.routes,
            elsewhere: network.elsewhere,
        });
        let known = network.neighbors.into_iter();
        changes.extend(known.map(|(address, mac)| Change::Neighbor {
            address,
            mac: Some(mac),
        }));
    }

    /// Has all queues bring the answers to connections from these ports, whichever process owns them.
    pub(super) fn open_ports(&self) {
        if let Self::Interface { opened, .. } = self {
            opened.open(untaken);
        }
    }

    /// Has all queues bring what is for this listener, whichever process owns them.
    pub(super) fn listen(&self, service: Service) {
        if let Self::Interface { opened, .. } = self
            && service.protocol == Protocol::TCP
        {
            opened.listen(service.address);
        }
    }

    /// Whether a worker of this process opens connections.
    fn are_open(&self) -> bool {
        match self {
            Self::Interface { opened, .. } => opened.are_open(),
            Self::Device { .. } => false,
        }
    }

    /// Whether connections may be opened from this port.
    pub(super) fn has_opened(&self, port: u16) -> bool {
        match self {
            Self::Interface { opened, .. } => opened.contains(port),
            Self::Device { .. } => true,
        }
    }

    pub(super) fn resolve(&mut self, address: IpAddr) {
        if let Self::Interface { monitor, .. } = self {
            // A connection that waits for the address asks again, and times out in the end.
            let _ = monitor.ask(address);
        }
    }
}
