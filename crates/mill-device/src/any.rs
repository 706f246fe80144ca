//! A link of any device as one type, so that one engine serves all, with a recorder while frames are captured.

use crate::device_link::DeviceLink;
use crate::forwarding::WorkerForwarding;
use crate::interface::InterfaceLink;
use crate::memif::MemifLink;
use crate::pcap::Recorder;
use crate::pcap::sink::FrameSender;
use crate::standby::StandbyLink;
use crate::tap::TapLink;
use mill_stack::link::{
    Burst, FlowSteering, FrameId, Link, LinkChange, LinkMonitor, LinkProperties, LinkSuccession,
    Offload, Received, Service,
};
use mill_sys::epoll::Watcher;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// A link, and a recorder of the frames that the stack exchanges with it, while they are captured.
#[derive(Debug)]
pub struct AnyLink {
    device: DeviceLink,
    recorder: Option<Recorder>,
}

impl AnyLink {
    pub fn new(device: DeviceLink, recorder: Option<Recorder>) -> Self {
        Self { device, recorder }
    }

    /// The interface, if the device is one and this process owns it.
    pub fn interface(&self) -> Option<&InterfaceLink> {
        match &self.device {
            DeviceLink::AfXdp(link) => Some(link),
            _ => None,
        }
    }

    /// The same, for reading counters that need `&mut`.
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

    /// The memif, if it is one.
    pub fn memif(&self) -> Option<&MemifLink> {
        match &self.device {
            DeviceLink::Memif(link) => Some(link),
            _ => None,
        }
    }

    fn tap(&self) -> Option<&TapLink> {
        match &self.device {
            DeviceLink::Tap(link) => Some(link),
            DeviceLink::Impaired(link) => Some(link.inner()),
            _ => None,
        }
    }

    /// The device's kind, as in a specification.
    pub fn kind(&self) -> &'static str {
        match &self.device {
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => "tap",
            DeviceLink::Memif(_) => "memif",
            DeviceLink::AfXdp(_) | DeviceLink::Standby(_) => "af_xdp",
            DeviceLink::Moving(_) => "none",
        }
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

    /// The descriptor that ends a wait for anything but frames, if there is one.
    pub fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.device {
            DeviceLink::AfXdp(link) => Some(link.control_fd()),
            DeviceLink::Standby(link) => Some(link.control_fd()),
            _ => None,
        }
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
        match self.tap() {
            Some(link) => link.forwarding(),
            None => self.interface()?.forwarding(),
        }
    }

    /// Sets the watcher by which the device's frames end waits while this process owns it. Returns the watcher if the
    /// descriptor of the link never changes, so that it can be watched instead.
    pub fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.set_watcher(watcher),
            DeviceLink::Standby(link) => {
                link.set_watcher(watcher);
                None
            }
            _ => Some(watcher),
        }
    }
}

impl Link for AnyLink {
    fn properties(&self) -> &LinkProperties {
        self.device.properties()
    }

    fn receive(&mut self, burst: &mut Burst) {
        let before = burst.as_slice().len();
        self.device.receive(burst);
        if let Some(recorder) = &mut self.recorder {
            let new = burst.as_slice().get(before..).unwrap_or_default();
            recorder.received(&mut self.device, new);
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.device.frame(id)
    }

    fn release(&mut self, id: FrameId) {
        self.device.release(id);
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.device.reserve(len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        if let Some(recorder) = &mut self.recorder {
            recorder.transmits(&mut self.device, len, offload);
        }
        self.device.transmit(len, offload);
    }

    fn flush(&mut self) -> bool {
        self.device.flush()
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        self.device.hand_over(frame)
    }
}

/// An interface is shared with the kernel, and the queues of a device are shared by workers. All frames of a memif come.
impl FlowSteering for AnyLink {
    fn serve(&mut self, service: Service, on: bool) {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.serve(service, on),
            DeviceLink::Standby(link) => link.serve(service, on),
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => {}
            DeviceLink::Memif(_) | DeviceLink::Moving(_) => {}
        }
    }

    fn forget(&mut self, service: Service) {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.forget(service),
            // The process that has the interface steers its frames.
            DeviceLink::Standby(_) => {}
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => {}
            DeviceLink::Memif(_) | DeviceLink::Moving(_) => {}
        }
    }

    fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.open_ports(ports),
            DeviceLink::Standby(link) => link.open_ports(ports),
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => {}
            DeviceLink::Memif(_) | DeviceLink::Moving(_) => {}
        }
    }

    fn set_blocked(&mut self, addresses: &[IpAddr]) {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.set_blocked(addresses),
            // The process that has the interface steers its frames.
            DeviceLink::Standby(_) => {}
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => {}
            DeviceLink::Memif(_) | DeviceLink::Moving(_) => {}
        }
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        match &self.device {
            DeviceLink::AfXdp(link) => link.brings(remote, local_port),
            DeviceLink::Tap(link) => link.brings(local_port),
            DeviceLink::Impaired(link) => link.inner().brings(local_port),
            DeviceLink::Memif(_) | DeviceLink::Standby(_) | DeviceLink::Moving(_) => true,
        }
    }
}

/// The kernel's view of an interface changes, and a memif's peer comes and goes.
impl LinkMonitor for AnyLink {
    fn resolve(&mut self, address: IpAddr) {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.resolve(address),
            DeviceLink::Standby(link) => link.resolve(address),
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => {}
            DeviceLink::Memif(_) | DeviceLink::Moving(_) => {}
        }
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        let is_due = match &mut self.device {
            DeviceLink::AfXdp(link) => {
                link.take_changes(into);
                link.has_take_request()
            }
            DeviceLink::Standby(link) => {
                link.take_changes(into);
                link.is_owner()
            }
            DeviceLink::Memif(link) => {
                link.take_changes(into);
                false
            }
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) | DeviceLink::Moving(_) => false,
        };
        if is_due {
            // A capture ends when the device changes; what was recorded until then is kept.
            self.recorder = None;
            self.device.change_places();
        }
    }
}

/// Only an interface goes from process to process.
impl LinkSuccession for AnyLink {
    fn has_heir(&self) -> bool {
        self.standby().is_some_and(StandbyLink::has_heir)
    }

    fn pass_waiting(&mut self, connections: &[u8]) -> bool {
        let standby = self.standby();
        standby.is_some_and(|link| link.pass_waiting(connections))
    }

    #[inline]
    fn take_passed(&mut self) -> Option<Vec<u8>> {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.take_passed(),
            DeviceLink::Standby(link) => link.take_passed(),
            _ => None,
        }
    }

    #[inline]
    fn take_ports_wanted(&mut self) -> bool {
        match &mut self.device {
            DeviceLink::AfXdp(link) => link.take_ports_wanted(),
            DeviceLink::Standby(link) => link.take_ports_wanted(),
            _ => false,
        }
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
