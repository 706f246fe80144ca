//! A link of any device as one type, so that one engine serves all, with a recorder while frames are captured.

use crate::device_link::DeviceLink;
use crate::dpdk::DpdkLink;
use crate::forwarding::{WorkerForwarding, is_handed};
use crate::handover::Endpoint;
use crate::handover::owner::Delivery;
use crate::interface::InterfaceLink;
use crate::ledger::{Entry, Ledger};
use crate::memif::MemifLink;
use crate::partitions::Partitions;
use crate::pcap::Recorder;
use crate::pcap::sink::FrameSender;
use crate::port_blocks::PortBlocks;
use crate::standby::StandbyLink;
use crate::tap::TapLink;
use crate::vlan::{TAG_BYTES, Vlan};
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::host::tables::NextNumbers;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FlowSteering, FrameId, Link, LinkChange, LinkLedger,
    LinkMonitor, LinkProperties, LinkSuccession, Offload, Received, Service, Stray,
};
use mill_sys::epoll::Watcher;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A link, and a recorder of the frames that the stack exchanges with it, while they are captured.
#[derive(Debug)]
pub struct AnyLink {
    device: DeviceLink,
    recorder: Option<Recorder>,
    /// Forwarding to the other workers of this process, where each has queues of its own.
    forwarding: Option<WorkerForwarding>,
    /// How many times this process has become the owner of the device or of a partition of it.
    takings: u64,
    /// The local ports that this process may open connections from, if others do that on the same device.
    ports: Option<PortBlocks>,
    /// The network whose tag all frames have on the device, and only there.
    vlan: Option<Vlan>,
    /// The host's connections, for the process that replaces this one.
    ledger: Option<Ledger>,
    /// Bytes of room that were reserved last, a tag's included.
    reserved: usize,
}

impl AnyLink {
    pub fn new(device: DeviceLink, recorder: Option<Recorder>) -> Self {
        Self {
            device,
            recorder,
            forwarding: None,
            takings: 0,
            ports: None,
            vlan: None,
            ledger: None,
            reserved: 0,
        }
    }

    /// Makes it the link of one of several workers, each with queues of its own.
    #[must_use]
    pub fn with_forwarding(self, forwarding: WorkerForwarding) -> Self {
        Self {
            forwarding: Some(forwarding),
            ..self
        }
    }

    /// Makes it a link of this virtual network: received frames have its tag, and those to be sent get it. What is recorded has tags.
    #[must_use]
    pub fn with_vlan(self, vlan: Option<Vlan>) -> Self {
        Self { vlan, ..self }
    }

    /// The connections of its host are noted there; what is there already is another process's.
    #[must_use]
    pub fn with_ledger(self, ledger: Option<Ledger>) -> Self {
        Self { ledger, ..self }
    }

    /// Other processes open connections on the device, too: this one may use these ports.
    pub fn set_ports(&mut self, ports: PortBlocks) {
        self.ports = Some(ports);
    }

    /// The interface, if the device is one and this process owns it, or the first of its partitions that this process owns.
    #[inline]
    pub fn interface(&self) -> Option<&InterfaceLink> {
        self.interfaces().next()
    }

    /// All partitions of the interface that this process owns.
    #[inline]
    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceLink> {
        let (whole, partitions) = match &self.device {
            DeviceLink::AfXdp(link) => (Some(link), None),
            DeviceLink::Partitions(link) => (None, Some(link)),
            _ => (None, None),
        };
        let owned = partitions.into_iter().flat_map(Partitions::owned);
        whole.into_iter().chain(owned)
    }

    /// How many times this process has become the owner of the device, or of a partition of it, since the link was made.
    #[inline]
    pub fn takings(&self) -> u64 {
        self.takings
    }

    /// A bit for each partition that this process owns.
    #[inline]
    fn owned(&self) -> u32 {
        match &self.device {
            DeviceLink::Partitions(link) => link.owned_places(),
            device => u32::from(matches!(
                device,
                DeviceLink::AfXdp(_) | DeviceLink::Movable(_)
            )),
        }
    }

    /// How many partitions of the device this process owns; the device itself is one.
    pub fn owned_count(&self) -> u32 {
        self.owned().count_ones()
    }

    /// This process is about to make another link of the device, by which it may lose what it owns for a moment: no other process
    /// takes it until [`Self::renew_ownership`].
    pub fn reserve_ownership(&self) {
        self.endpoints().for_each(Endpoint::reserve_for_owner);
    }

    /// The other link is made, or could not be. An error means that another process owns a part of the device, too.
    pub fn renew_ownership(&self) -> io::Result<()> {
        let renewed: Vec<io::Result<()>> = self.endpoints().map(Endpoint::renew_locks).collect();
        renewed.into_iter().collect()
    }

    /// In a child after fork(2), which goes on with its parent's link: takes the locks, which are the parent's until that has ended. An error
    /// means that another process has one of them.
    pub fn take_locks(&self) -> io::Result<()> {
        self.endpoints().try_for_each(Endpoint::take_locks)
    }

    /// In a child after fork(2), which does nothing with its parent's link: closes what tells other processes by its end that the
    /// parent has ended.
    pub fn close_ways(&mut self) {
        self.device.close_ways();
    }

    /// By which this process takes part in the handover, of each partition.
    fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let movable = match &self.device {
            DeviceLink::Movable(link) => Some(link.endpoint()),
            _ => None,
        };
        let interfaces = self.interfaces().filter_map(InterfaceLink::endpoint);
        let standbys = self.standbys().map(StandbyLink::endpoint);
        interfaces.chain(movable).chain(standbys)
    }

    /// The interface, for reading counters that need `&mut`.
    pub fn interface_mut(&mut self) -> Option<&mut InterfaceLink> {
        match &mut self.device {
            DeviceLink::AfXdp(link) => Some(link),
            _ => None,
        }
    }

    /// The link of an interface that another process owns, if it is one.
    pub fn standby(&self) -> Option<&StandbyLink> {
        match &self.device {
            DeviceLink::Standby(link) => Some(link),
            _ => None,
        }
    }

    /// The links of what other processes own of the interface.
    pub fn standbys(&self) -> impl Iterator<Item = &StandbyLink> {
        let partitions = match &self.device {
            DeviceLink::Partitions(link) => Some(link),
            _ => None,
        };
        let others = partitions.into_iter().flat_map(Partitions::others);
        self.standby().into_iter().chain(others)
    }

    /// The memif, if it is one and this process owns it.
    pub fn memif(&self) -> Option<&MemifLink> {
        self.device.direct()?.memif()
    }

    /// The port of DPDK, if it is one in this process.
    pub fn dpdk(&self) -> Option<&DpdkLink> {
        self.device.direct()?.dpdk()
    }

    /// The TAP device, if it is one and this process owns it.
    pub fn tap(&self) -> Option<&TapLink> {
        self.device.direct()?.tap()
    }

    /// The device's kind, as in a specification.
    pub fn kind(&self) -> &'static str {
        self.device.kind()
    }

    /// Starts to pass frames to a queue. False if they are captured already, or if another process owns the interface.
    pub fn begin_capture(&mut self, frames: FrameSender) -> bool {
        if self.recorder.is_some() || self.standby().is_some() {
            return false;
        }
        self.recorder = Some(Recorder::to_queue(frames));
        true
    }

    /// Ends a capture of [`Self::begin_capture`].
    pub fn end_capture(&mut self) {
        self.recorder = None;
    }

    /// The descriptors that end a wait for anything but frames.
    pub fn control_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let partitions = match &self.device {
            DeviceLink::Partitions(link) => Some(link),
            _ => None,
        };
        let of_partitions = partitions.into_iter().flat_map(Partitions::control_fds);
        self.device.control_fd().into_iter().chain(of_partitions)
    }

    /// Descriptors of further queues, beside the link's own descriptor.
    pub fn other_queues(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.interface()
            .into_iter()
            .flat_map(InterfaceLink::other_queues)
    }

    /// A descriptor whose changes end a wait, which is never read: other workers forward frames to this one.
    pub fn doorbell_fd(&self) -> Option<BorrowedFd<'_>> {
        self.forwarding().map(WorkerForwarding::doorbell_fd)
    }

    /// The other workers of the device.
    pub fn forwarding(&self) -> Option<&WorkerForwarding> {
        self.forwarding.as_ref()
    }

    /// A received frame with its tag, if the link has a network.
    #[inline]
    fn device_frame(&mut self, id: FrameId) -> &mut [u8] {
        match &mut self.forwarding {
            Some(forwarding) if is_handed(id) => forwarding.frame(id),
            _ => self.device.frame(id),
        }
    }

    /// Whether another worker of this process has forwarded a frame. Where there are no others its id may be of a partition.
    fn is_forwarded(&self, id: FrameId) -> bool {
        self.forwarding.is_some() && is_handed(id)
    }

    /// Gives a frame to another worker or process, with its tag, which that takes off itself.
    fn give_tagged(
        &mut self,
        frame: &Received,
        give: impl FnOnce(&mut Self, &Received) -> bool,
    ) -> bool {
        let Some(vlan) = self.vlan else {
            return give(self, frame);
        };
        vlan.put(self.device_frame(frame.id));
        let is_taken = give(self, frame);
        // This host may go on with the frame.
        vlan.strip(self.device_frame(frame.id));
        is_taken
    }

    /// A frame of which the host knows nothing: that of another process, which has listed its flow, or of another worker, which each
    /// look for it in their turn.
    #[cold]
    fn forward(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        let Self {
            device, forwarding, ..
        } = self;
        let Some(forwarding) = forwarding else {
            return device.hand_over(frame, stray);
        };
        let delivery = device.give_listed(frame, forwarding.bytes(frame.id), stray);
        if delivery == Delivery::Done && !matches!(stray, Stray::Shared) {
            return true;
        }
        let bytes = match is_handed(frame.id) {
            true => &[],
            false => &*device.frame(frame.id),
        };
        // What all are to have goes to the other workers as well.
        forwarding.give(frame, bytes, delivery == Delivery::NoWay)
            || delivery != Delivery::None
            || forwarding.has_no_way(frame.id)
            || device.fall_back(frame, forwarding.bytes(frame.id))
    }

    /// Sets the watcher by which the device's frames end waits while this process owns it. Returns the watcher if the
    /// descriptor of the link never changes, so that it can be watched instead.
    pub fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        self.device.set_watcher(watcher)
    }
}

impl Link for AnyLink {
    fn properties(&self) -> &LinkProperties {
        self.device.properties()
    }

    #[inline]
    fn receive(&mut self, burst: &mut Burst) {
        let first = burst.as_slice().len();
        // A frame is recorded by the worker whose device received it.
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.receive(burst);
        }
        let before = burst.as_slice().len();
        self.device.receive(burst);
        if let Some(recorder) = &mut self.recorder {
            let new = burst.as_slice().get(before..).unwrap_or_default();
            recorder.received(&mut self.device, new);
        }
        if let Some(vlan) = self.vlan {
            for received in burst.as_slice().get(first..).unwrap_or_default() {
                vlan.strip(self.device_frame(received.id));
            }
        }
    }

    #[inline]
    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        let is_tagged = self.vlan.is_some();
        let frame = self.device_frame(id);
        match is_tagged {
            false => frame,
            true => frame.get_mut(TAG_BYTES..).unwrap_or_default(),
        }
    }

    #[inline]
    fn release(&mut self, id: FrameId) {
        match &mut self.forwarding {
            Some(forwarding) if is_handed(id) => forwarding.release(id),
            _ => self.device.release(id),
        }
    }

    #[inline]
    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        let tag_bytes = match self.vlan {
            None => 0,
            Some(_) => TAG_BYTES,
        };
        self.reserved = len_max + tag_bytes;
        self.device.reserve(self.reserved)?.get_mut(tag_bytes..)
    }

    #[inline]
    fn transmit(&mut self, mut len: usize, mut offload: Offload) {
        if let Some(vlan) = self.vlan {
            if let Some(room) = self.device.reserve(self.reserved) {
                vlan.put(room);
            }
            len += TAG_BYTES;
            offload = Vlan::shifted(offload);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.transmits(&mut self.device, (self.reserved, len), offload);
        }
        self.device.transmit(len, offload);
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        // A tag and a capture need the frame in one piece.
        if self.vlan.is_some() || self.recorder.is_some() {
            return ExternalSent::Unable;
        }
        self.device.transmit_external(len, offload, payload)
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.device.flush()
    }

    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        self.give_tagged(frame, |link, frame| link.forward(frame, stray))
    }

    /// Of a frame of the device; what another worker has forwarded is for this process.
    fn pass_to(&mut self, frame: &Received, process: u64) -> bool {
        let pass = |link: &mut Self, frame: &Received| link.device.pass_to(frame, process);
        !self.is_forwarded(frame.id) && self.give_tagged(frame, pass)
    }

    fn give_back(&mut self, frame: &Received) -> bool {
        let give = |link: &mut Self, frame: &Received| link.device.give_back(frame);
        !self.is_forwarded(frame.id) && self.give_tagged(frame, give)
    }
}

impl FlowSteering for AnyLink {
    fn serve(&mut self, service: Service, on: bool) {
        self.device.serve(service, on);
    }

    fn retire(&mut self, service: Service) {
        self.device.retire(service);
    }

    fn forget(&mut self, service: Service) {
        self.device.forget(service);
    }

    fn open_ports(&mut self) {
        self.device.open_ports();
    }

    fn set_blocked(&mut self, addresses: &[IpAddr]) {
        self.device.set_blocked(addresses);
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        let (ports, forwarding) = (self.ports.as_ref(), self.forwarding.as_ref());
        // The queue at which answers arrive is not known; they are forwarded to the worker that has the flow.
        self.device.brings(remote, local_port)
            && forwarding.is_none_or(|forwarding| forwarding.is_own_flow(remote.port(), local_port))
            && ports.is_none_or(|ports| ports.may_use(local_port))
    }
}

impl LinkMonitor for AnyLink {
    fn resolve(&mut self, address: IpAddr) {
        self.device.resolve(address);
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        self.device.take_changes(into);
    }

    #[inline]
    fn flow_directory(&mut self) -> Option<Box<dyn FlowDirectory>> {
        self.device.flow_directory()
    }

    fn change_places(&mut self) {
        let before = self.owned();
        self.device.change_places();
        let after = self.owned();
        self.takings += u64::from(after & !before != 0);
        if after != before {
            // A capture ends when the device changes; what was recorded until then is kept.
            self.recorder = None;
        }
    }

    fn carries_for_others(&self) -> bool {
        self.forwarding.is_some() && !self.device.has_heir()
    }
}

impl LinkSuccession for AnyLink {
    fn has_heir(&self) -> bool {
        self.device.has_heir()
    }

    fn seek_heir(&mut self) -> bool {
        self.device.seek_heir()
    }

    fn pass_waiting(&mut self, connections: &[u8]) -> bool {
        self.device.pass_waiting(connections)
    }

    fn note_moving(&mut self) {
        self.device.note_moving();
    }

    #[inline]
    fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.device.take_passed()
    }
}

impl LinkLedger for AnyLink {
    #[inline]
    fn has_ledger(&self) -> bool {
        self.ledger.is_some()
    }

    fn note(&mut self, slot: u32, numbers: Option<NextNumbers>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note(slot, numbers.map(Entry::from));
        }
    }

    fn take_left(&mut self) -> Vec<NextNumbers> {
        let left = self.ledger.as_mut().map(Ledger::take).unwrap_or_default();
        left.into_iter().map(NextNumbers::from).collect()
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

#[cfg(test)]
mod tests;
