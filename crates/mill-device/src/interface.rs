//! An interface of the kernel: queues of it by AF_XDP, the steering of frames to them, and the kernel's view of
//! addresses and routes.
//!
//! `Queues` moves the frames. Listening ports go into the `Table` that the steering program reads; addresses, routes,
//! neighbours and the MTU are the kernel's, and the `NetlinkMonitor` reports their changes.

use crate::handover::Endpoint;
use crate::handover::owner::{Delivery, Owner};
use crate::handover::returned_frames::is_returned;
use crate::network::LinkState;
use crate::network::monitor::{Change, NetlinkMonitor};
use crate::queues::Queues;
use crate::steering::Table;
use crate::steering::flow::FlowHash;
use crate::steering::table::opened::OpenedPorts;
use crate::wanted::Wanted;
use kernel_flows::PreexistingKernelFlows;
use mill_stack::config::Prefix;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkChange, LinkProperties, Offload,
    Received, Service, Stray,
};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Ports that the kernel uses itself.
mod taken;

/// Connections that the kernel had on a port before it was served.
mod kernel_flows;

/// Handover of the interface to another process.
mod passing;
pub(crate) use passing::OpenQueue;

/// The link of an interface.
pub struct InterfaceLink {
    queues: Queues,
    table: Table,
    flows: FlowHash,
    /// The number of this worker among those that share the interface.
    worker: u32,
    monitor: NetlinkMonitor,
    kernel_flows: PreexistingKernelFlows,
    /// Ports from which connections are opened.
    opened: Arc<OpenedPorts>,
    /// Buffer for what the monitor reports.
    changes: Vec<Change>,
    /// Turns until the monitor is polled again.
    turns_left: u32,
    passage: Passage,
    on_fault: FaultCallback,
    wanted: Wanted,
    /// The handover, if other processes may own the interface.
    handover: Option<Box<Owner<OpenQueue>>>,
}

/// Whether frames pass an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    Open,
    /// It is down.
    Down,
    /// It is up, and the other end of the link is not.
    NoCarrier,
}

/// Events of a running interface that the log reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceFault {
    /// It was deleted, and will not come back.
    Gone,
    /// Frames no longer pass, or pass again.
    Passage(Passage),
    /// It has more addresses than the steering table has room for: this many are left to the kernel.
    AddressesLeftOut(usize),
    /// Its MTU is larger now than packet memory was made for.
    MtuTooLarge(u16),
    /// The netlink socket fails: changes are not followed any more.
    NetlinkLost(String),
    /// The owner has not answered a TAKE request.
    NotGiven,
    /// The interface was taken over from another process, but its queues or table could not be opened.
    NotTaken(String),
    /// A relay holds invalid data.
    RelayBroken,
}

pub(crate) type FaultCallback = Box<dyn FnMut(InterfaceFault) + Send>;

impl InterfaceLink {
    /// The link of one worker. Queues, table and monitor are of one interface; `worker` is its number among those that
    /// share the table.
    pub fn new(
        (queues, worker): (Queues, u32),
        table: Table,
        monitor: NetlinkMonitor,
        on_fault: FaultCallback,
    ) -> Self {
        let mut link = Self {
            queues,
            flows: table.flow_hash(),
            worker,
            opened: table.opened(),
            table,
            monitor,
            kernel_flows: PreexistingKernelFlows::default(),
            changes: Vec::new(),
            turns_left: 0,
            passage: Passage::Open,
            on_fault,
            wanted: Wanted::default(),
            handover: None,
        };
        let network = link.monitor.network().clone();
        link.steer(&network.addresses);
        link.report_passage(&network.link);
        link.changes.push(Change::Routes {
            routes: network.routes,
            elsewhere: network.elsewhere,
        });
        let known = network.neighbors.into_iter();
        link.changes
            .extend(known.map(|(address, mac)| Change::Neighbor {
                address,
                mac: Some(mac),
            }));
        link
    }

    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The queues, for reading counters that need `&mut`.
    pub fn queues_mut(&mut self) -> &mut Queues {
        &mut self.queues
    }

    /// Whether this is the worker that reports what concerns all that share the table.
    pub fn is_first(&self) -> bool {
        self.worker == 0
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Its part in the handover, if other processes may own the interface.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.handover.as_ref().map(|handover| handover.endpoint())
    }

    /// The descriptor that ends a wait for anything but frames: changes of the interface.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        match &self.handover {
            Some(handover) => handover.as_fd(),
            None => self.monitor.as_fd(),
        }
    }

    /// Descriptors of further queues, beside the link's own descriptor, unless `set_watcher` watches all of them.
    pub fn other_queues(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let is_watched = self.handover.is_some();
        self.queues.other_descriptors().filter(move |_| !is_watched)
    }

    fn steer(&mut self, addresses: &[Prefix]) {
        let addresses: Vec<IpAddr> = addresses.iter().map(|prefix| prefix.address).collect();
        let left_out = self.table.set_addresses(&addresses);
        if left_out > 0 {
            (self.on_fault)(InterfaceFault::AddressesLeftOut(left_out));
        }
    }

    /// Connections wait while the link is down, and go on afterwards; only the log tells why.
    fn report_passage(&mut self, state: &LinkState) {
        let passage = Passage::of(state);
        if std::mem::replace(&mut self.passage, passage) != passage {
            (self.on_fault)(InterfaceFault::Passage(passage));
        }
    }

    fn on_change(&mut self, change: Change, into: &mut Vec<LinkChange>) {
        match change {
            Change::Link(state) => {
                self.report_passage(&state);
                self.queues.wake();
                into.push(LinkChange::OwnMac(state.mac.0));
                if self.queues.set_mtu(state.mtu) {
                    into.push(LinkChange::Mtu(state.mtu));
                } else {
                    (self.on_fault)(InterfaceFault::MtuTooLarge(state.mtu));
                }
            }
            Change::Addresses(addresses) => {
                self.steer(&addresses);
                into.push(LinkChange::Addresses(addresses));
            }
            Change::Routes { routes, elsewhere } => {
                into.push(LinkChange::Elsewhere(elsewhere));
                into.push(LinkChange::Routes(routes));
            }
            Change::Neighbor { address, mac } => into.push(LinkChange::Neighbor {
                address,
                mac: mac.map(|mac| mac.0),
            }),
            Change::Gone => {
                // If it was moved to another namespace, it may live on with the program but without the socket: all its
                // frames go to the kernel there.
                self.table.set_addresses(&[]);
                (self.on_fault)(InterfaceFault::Gone);
            }
        }
    }
}

impl Passage {
    const fn of(state: &LinkState) -> Self {
        match (state.is_up, state.is_running) {
            (false, _) => Self::Down,
            (true, false) => Self::NoCarrier,
            (true, true) => Self::Open,
        }
    }
}

impl Link for InterfaceLink {
    fn properties(&self) -> &LinkProperties {
        self.queues.properties()
    }

    #[inline]
    fn receive(&mut self, burst: &mut Burst) {
        if let Some(handover) = &mut self.handover {
            if handover.must_defer_frames(&self.wanted) {
                return;
            }
            if !handover.returned().is_empty() {
                handover.returned().receive(burst);
            }
        }
        self.queues.receive(burst);
    }

    #[inline]
    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match &mut self.handover {
            Some(handover) if is_returned(id) => handover.returned().frame(id),
            _ => self.queues.frame(id),
        }
    }

    #[inline]
    fn release(&mut self, id: FrameId) {
        match &mut self.handover {
            Some(handover) if is_returned(id) => handover.returned().release(id),
            _ => self.queues.release(id),
        }
    }

    #[inline]
    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.queues.reserve(len_max)
    }

    #[inline]
    fn transmit(&mut self, len: usize, offload: Offload) {
        self.queues.transmit(len, offload);
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        self.queues.transmit_external(len, offload, payload)
    }

    #[inline]
    fn flush(&mut self) -> bool {
        if let Some(handover) = &mut self.handover {
            let len_max = self.queues.frame_len_max();
            if handover.carry(&mut self.queues, len_max) {
                self.turns_left = 0;
            }
        }
        let handover = self.handover.as_ref();
        self.queues.flush() || handover.is_some_and(|handover| handover.has_backlog())
    }

    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        self.give_listed(frame, None, stray) != Delivery::None || self.fall_back(frame, None)
    }

    fn pass_to(&mut self, frame: &Received, process: u64) -> bool {
        let handover = self.handover.as_mut();
        handover.is_some_and(|handover| {
            let copy = handover.returned_copy(frame.id);
            let bytes = copy.as_deref();
            let bytes = bytes.unwrap_or_else(|| self.queues.frame(frame.id));
            handover.pass_to(frame, bytes, process)
        })
    }
}

/// What [`mill_stack::link::FlowSteering`] and [`mill_stack::link::LinkMonitor`] ask of an interface.
impl InterfaceLink {
    pub(crate) fn serve(&mut self, service: Service, on: bool) {
        self.wanted.serve(service, on);
        if on {
            self.kernel_flows.begin(service.address.port(), &self.table);
        }
        self.table.serve(service, on);
    }

    /// Frames keep coming, for this process until another one has the interface.
    pub(crate) fn retire(&mut self, service: Service) {
        self.wanted.serve(service, false);
    }

    pub(crate) fn forget(&mut self, service: Service) {
        self.wanted.forget(service);
        self.table.forget(service);
    }

    /// Drops frames of these addresses in the kernel. What finds no place there is dropped by the host.
    pub(crate) fn set_blocked(&self, addresses: &[IpAddr]) {
        self.table.set_blocked(addresses);
    }

    /// Ports at which the kernel listens or has connections stay the kernel's, and no connection is opened from them.
    pub(crate) fn open_ports(&mut self) {
        self.wanted.opens_ports = true;
        self.table.open_ports(untaken);
    }

    pub(crate) fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        if !self.opened.contains(local_port) {
            return false;
        }
        self.flows.workers <= 1 || self.flows.worker(remote, local_port) == self.worker
    }

    #[inline]
    pub(crate) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.handover.as_mut()?.take_passed()
    }

    pub(crate) fn resolve(&mut self, address: IpAddr) {
        // A connection that waits for the address asks again, and times out in the end.
        let _ = self.monitor.ask(address);
        self.turns_left = 0;
    }

    /// Polling the monitor is a system call, so it is not done in every turn.
    #[inline]
    pub(crate) fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        if let Some(left) = self.turns_left.checked_sub(1) {
            self.turns_left = left;
            return;
        }
        self.turns_left = TURNS_BETWEEN;
        let addresses = &self.monitor.network().addresses;
        self.kernel_flows.look(&self.table, addresses);
        if let Some(handover) = &mut self.handover {
            let len_max = self.queues.frame_len_max();
            let around = (Some(&self.table), &self.wanted);
            handover.poll((&mut self.queues, len_max), around, &mut self.on_fault);
        }
        let mut changes = std::mem::take(&mut self.changes);
        if let Err(error) = self.monitor.changes(&mut changes) {
            (self.on_fault)(InterfaceFault::NetlinkLost(error.to_string()));
        }
        for change in changes.drain(..) {
            self.on_change(change, into);
        }
        self.changes = changes;
    }
}

/// Those of these ports at which the kernel neither listens nor has connections.
pub(crate) fn untaken(ports: RangeInclusive<u16>) -> Vec<u16> {
    let taken = taken::ports();
    ports.filter(|port| !taken.contains(port)).collect()
}

/// Readable when frames wait in the first queue.
impl AsFd for InterfaceLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queues.as_fd()
    }
}

impl fmt::Debug for InterfaceLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InterfaceLink")
            .field("queues", &self.queues)
            .field("monitor", &self.monitor)
            .finish_non_exhaustive()
    }
}

/// Turns between two polls of the monitor: some tens of microseconds in a worker that spins. A worker that sleeps is
/// woken by the monitor and makes that many turns in a row.
const TURNS_BETWEEN: u32 = 63;
