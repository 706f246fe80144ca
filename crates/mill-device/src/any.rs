//! A device's link of whatever kind, as one type, so that one engine serves all; and what passes is recorded if that is
//! asked for.

use crate::device_link::DeviceLink;
use crate::forwarding::WorkerForwarding;
use crate::interface::InterfaceLink;
use crate::memif::MemifLink;
use crate::pcap::Recorder;
use crate::pcap::sink::FrameSender;
use crate::standby::StandbyLink;
use crate::tap::TapLink;
use mill_stack::link::{
    Burst, FlowSteering, FrameId, Link, LinkChange, LinkMonitor, LinkProperties, Offload, Received,
    Service,
};
use mill_sys::epoll::Watcher;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// A link, and a recorder of what the stack sees of it while frames are captured.
#[derive(Debug)]
pub struct AnyLink {
    device: DeviceLink,
    recorder: Option<Recorder>,
}

impl AnyLink {
    pub fn new(device: DeviceLink, recorder: Option<Recorder>) -> Self {
        Self { device, recorder }
    }

    /// The interface, if it is one of this machine's.
    pub fn interface(&self) -> Option<&InterfaceLink> {
        match &self.device {
            DeviceLink::AfXdp(link) => Some(link),
            _ => None,
        }
    }

    /// The same, to be asked more.
    pub fn interface_mut(&mut self) -> Option<&mut InterfaceLink> {
        match &mut self.device {
            DeviceLink::AfXdp(link) => Some(link),
            _ => None,
        }
    }

    /// The way to an interface that another process has, if it is one.
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

    /// Its kind, as the first word of a specification.
    pub fn kind(&self) -> &'static str {
        match &self.device {
            DeviceLink::Tap(_) | DeviceLink::Impaired(_) => "tap",
            DeviceLink::Memif(_) => "memif",
            DeviceLink::AfXdp(_) | DeviceLink::Standby(_) => "af_xdp",
            DeviceLink::Moving(_) => "none",
        }
    }

    /// Gives what passes to a queue, from now on. False if it is recorded already, or if another process has the interface.
    pub fn begin_capture(&mut self, frames: FrameSender) -> bool {
        if self.recorder.is_some() || self.standby().is_some() {
            return false;
        }
        self.recorder = Some(Recorder::to_queue(frames));
        true
    }

    /// Ends what [`Self::begin_capture`] has begun.
    pub fn end_capture(&mut self) {
        self.recorder = None;
    }

    /// What ends a wait beside frames, if there is anything.
    pub fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.device {
            DeviceLink::AfXdp(link) => Some(link.control_fd()),
            DeviceLink::Standby(link) => Some(link.control_fd()),
            _ => None,
        }
    }

    /// What frames come by, beside the link's own descriptor.
    pub fn other_queues(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.interface()
            .into_iter()
            .flat_map(InterfaceLink::other_queues)
    }

    /// What ends a wait by changing, without being read: another worker has frames for this one.
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

    /// Has frames end waits by this watcher, from when on and as long as they come to this process. It comes back where the
    /// descriptor of the link stays the same, which can be watched as well.
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
                link.is_asked()
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
            // A capture ends with what is recorded by then.
            self.recorder = None;
            self.device.change_places();
        }
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
