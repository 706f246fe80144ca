//! An interface of this machine: a queue of it by AF_XDP, what is steered to it, and what the kernel knows around it.
//!
//! Frames are `XdpLink`'s business. What is served goes into the `Table` that the steering program reads; addresses,
//! routes, neighbours and the MTU are the kernel's, and the `NetlinkMonitor` tells when they change.

use crate::forwarding::{WorkerForwarding, is_handed};
use crate::network::LinkState;
use crate::network::monitor::{Change, NetlinkMonitor};
use crate::queues::Queues;
use crate::steering::Table;
use crate::steering::flow::FlowHash;
use crate::wanted::Wanted;
use kernel_flows::PreexistingKernelFlows;
use mill_stack::config::Prefix;
use mill_stack::link::{
    Burst, FrameId, Link, LinkChange, LinkProperties, Offload, Received, Service,
};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// Ports that the kernel uses itself.
mod taken;

/// Connections that the kernel had on a port before it was served.
mod kernel_flows;

/// How the interface goes from one process to another.
mod passing;
use passing::Handover;
pub(crate) use passing::OpenQueue;

/// An interface as the stack uses it.
pub struct InterfaceLink {
    queues: Queues,
    table: Table,
    flows: FlowHash,
    /// Which of the workers that share the queues this is.
    worker: u32,
    /// Where each worker has queues of its own: the others.
    forwarding: Option<WorkerForwarding>,
    monitor: NetlinkMonitor,
    kernel_flows: PreexistingKernelFlows,
    /// Ports among those that we open connections from that the kernel had before.
    taken: BTreeSet<u16>,
    /// Memory for what the monitor says.
    heard: Vec<Change>,
    /// Until the monitor is asked again.
    turns_left: u32,
    passage: Passage,
    on_fault: FaultCallback,
    wanted: Wanted,
    /// Other processes that could have the interface, if there can be any.
    handover: Option<Box<Handover>>,
}

/// Whether frames pass an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    Open,
    /// It is switched off.
    Down,
    /// It is on, and nobody is at the other end.
    NoCarrier,
}

/// What can happen around a running interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceFault {
    /// It was deleted, and will not come back.
    Gone,
    /// No frames pass now, or they do again.
    Passage(Passage),
    /// It has more addresses than the steering has room for: so many are left to the kernel.
    AddressesLeftOut(usize),
    /// It carries longer packets now than packet memory was made for.
    MtuTooLarge(u16),
    /// What has changed can't be read.
    NetlinkLost(String),
    /// Another process has it, and does not answer who asks for it.
    NotGiven,
    /// It was taken over from another process, and can't be used.
    NotTaken(String),
    /// Frames that another process passes on make no sense.
    RelayBroken,
}

pub(crate) type FaultCallback = Box<dyn FnMut(InterfaceFault) + Send>;

impl InterfaceLink {
    /// A link of these three, which are of one interface, for a worker of those among whom its flows are spread.
    pub fn new(
        (queues, worker, forwarding): (Queues, u32, Option<WorkerForwarding>),
        table: Table,
        monitor: NetlinkMonitor,
        on_fault: FaultCallback,
    ) -> Self {
        let mut link = Self {
            queues,
            flows: table.flow_hash(),
            worker,
            forwarding,
            table,
            monitor,
            kernel_flows: PreexistingKernelFlows::default(),
            taken: BTreeSet::new(),
            heard: Vec::new(),
            turns_left: 0,
            passage: Passage::Open,
            on_fault,
            wanted: Wanted::default(),
            handover: None,
        };
        // The stack knows no tags (IEEE 802.1Q): frames that have one are the kernel's.
        link.table.set_tags(0);
        let network = link.monitor.network().clone();
        link.steer(&network.addresses);
        link.tell_passage(&network.link);
        link.heard.push(Change::Routes {
            routes: network.routes,
            elsewhere: network.elsewhere,
        });
        let known = network.neighbors.into_iter();
        link.heard
            .extend(known.map(|(address, mac)| Change::Neighbor {
                address,
                mac: Some(mac),
            }));
        link
    }

    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The same, to be asked more.
    pub fn queues_mut(&mut self) -> &mut Queues {
        &mut self.queues
    }

    /// Whether this is the worker who tells what is true for all.
    pub fn is_first(&self) -> bool {
        self.worker == 0
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What ends a wait beside frames: something has changed around the interface.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        match &self.handover {
            Some(handover) => handover.as_fd(),
            None => self.monitor.as_fd(),
        }
    }

    pub fn forwarding(&self) -> Option<&WorkerForwarding> {
        self.forwarding.as_ref()
    }

    /// What frames come by, beside the link's own descriptor.
    pub fn other_queues(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues.other_descriptors()
    }

    fn steer(&mut self, addresses: &[Prefix]) {
        let addresses: Vec<IpAddr> = addresses.iter().map(|prefix| prefix.address).collect();
        let left_out = self.table.set_addresses(&addresses);
        if left_out > 0 {
            (self.on_fault)(InterfaceFault::AddressesLeftOut(left_out));
        }
    }

    /// Connections wait meanwhile, and go on afterwards; only who looks into the log knows why.
    fn tell_passage(&mut self, state: &LinkState) {
        let passage = Passage::of(state);
        if std::mem::replace(&mut self.passage, passage) != passage {
            (self.on_fault)(InterfaceFault::Passage(passage));
        }
    }

    fn on_heard(&mut self, change: Change, into: &mut Vec<LinkChange>) {
        match change {
            Change::Link(state) => {
                self.tell_passage(&state);
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
                // In another namespace it may live on, with the program but without the socket: its frames are its
                // kernel's there.
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
        if let Some(handover) = &self.handover
            && handover.must_defer_frames(&self.wanted)
        {
            return;
        }
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.receive(burst);
        }
        self.queues.receive(burst);
    }

    #[inline]
    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match &mut self.forwarding {
            Some(forwarding) if is_handed(id) => forwarding.frame(id),
            _ => self.queues.frame(id),
        }
    }

    #[inline]
    fn release(&mut self, id: FrameId) {
        match &mut self.forwarding {
            Some(forwarding) if is_handed(id) => forwarding.release(id),
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

    #[inline]
    fn flush(&mut self) {
        if let Some(handover) = &mut self.handover {
            handover.carry(&mut self.queues);
        }
        self.queues.flush();
    }

    #[inline]
    fn is_behind(&self) -> bool {
        let handover = self.handover.as_ref();
        self.queues.is_behind() || handover.is_some_and(|handover| handover.has_backlog())
    }

    fn serve(&mut self, service: Service, on: bool) {
        self.wanted.serve(service, on);
        if on {
            self.kernel_flows.begin(service.address.port(), &self.table);
        }
        self.table.serve(service, on);
    }

    fn forget(&mut self, service: Service) {
        self.table.forget(service);
    }

    /// Ports at which the kernel listens or has connections stay its own, and no connection is opened from them.
    fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        self.wanted.ports = Some(ports.clone());
        self.taken = taken::ports();
        let taken = &self.taken;
        self.table
            .open_ports(|| ports.filter(|port| !taken.contains(port)).collect());
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        if self.taken.contains(&local_port) {
            return false;
        }
        match &self.forwarding {
            // By which queue the answers come is not known; they are handed over.
            Some(forwarding) => forwarding.is_own_port(local_port),
            None => self.flows.workers <= 1 || self.flows.worker(remote, local_port) == self.worker,
        }
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        let Some(forwarding) = &mut self.forwarding else {
            let handover = self.handover.as_mut();
            return handover
                .is_some_and(|handover| handover.hand_over(frame, self.queues.frame(frame.id)));
        };
        let bytes = match is_handed(frame.id) {
            true => &[],
            false => &*self.queues.frame(frame.id),
        };
        forwarding.give(frame, bytes)
    }

    fn resolve(&mut self, address: IpAddr) {
        // Whoever waits asks again, and gives up in the end.
        let _ = self.monitor.ask(address);
        self.turns_left = 0;
    }

    /// Asking the monitor is a system call, so that not every turn does.
    #[inline]
    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        if let Some(left) = self.turns_left.checked_sub(1) {
            self.turns_left = left;
            return;
        }
        self.turns_left = TURNS_BETWEEN;
        let addresses = &self.monitor.network().addresses;
        self.kernel_flows.look(&self.table, addresses);
        if let Some(handover) = &mut self.handover {
            let around = (&self.table, &self.wanted);
            handover.poll(&mut self.queues, around, &mut self.on_fault);
        }
        let mut heard = std::mem::take(&mut self.heard);
        if let Err(error) = self.monitor.changes(&mut heard) {
            (self.on_fault)(InterfaceFault::NetlinkLost(error.to_string()));
        }
        for change in heard.drain(..) {
            self.on_heard(change, into);
        }
        self.heard = heard;
    }
}

/// Where the interface's frames come.
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

/// Turns without a question to the monitor after one with: in a worker that spins, some tens of microseconds; one that
/// sleeps is woken by the monitor and makes that many turns in a row.
const TURNS_BETWEEN: u32 = 63;
