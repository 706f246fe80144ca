//! A TAP device or a memif that goes from process to process (see [`crate::handover`]): the link of the process that owns it.
//!
//! All frames come to the owner, which nothing steers. It opens the device when it becomes the owner, and closes it before it gives
//! the device away: a TAP device keeps its frames meanwhile, and a memif its connection.

use crate::direct::DirectLink;
use crate::handover::Endpoint;
use crate::handover::directory::Directory;
use crate::handover::member::Member;
use crate::handover::owner::{Delivery, Owner};
use crate::handover::returned_frames::is_returned;
use crate::interface::FaultCallback;
use crate::relay::RelayCounters;
use crate::standby::{OpenDevice, Origin, Parts, StandbyLink, frame_len_max};
use crate::tap::TapLink;
use crate::wanted::Wanted;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkChange, LinkProperties, Offload,
    Received, Service, Stray,
};
use mill_sys::epoll::Watcher;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The owner's link.
pub struct MovableLink {
    device: DirectLink,
    wanted: Wanted,
    on_fault: FaultCallback,
    handover: Box<Owner<OpenDevice>>,
    /// Turns until other processes are looked at again.
    turns_left: u32,
}

impl MovableLink {
    /// The link of a process that owns the device from the start.
    pub(crate) fn new(
        member: Member,
        open: OpenDevice,
        on_fault: FaultCallback,
    ) -> io::Result<Self> {
        Ok(Self {
            device: open()?,
            wanted: Wanted::default(),
            on_fault,
            handover: Owner::new(member, open, None),
            turns_left: 0,
        })
    }

    /// Opens the device, which this process owns now.
    pub(crate) fn take(parts: Parts) -> Result<Box<Self>, Box<StandbyLink>> {
        let Origin::Device {
            open,
            properties,
            kind,
        } = parts.origin
        else {
            return Err(Box::new(StandbyLink::new(parts, None)));
        };
        let device = match open() {
            Ok(device) => device,
            Err(error) => {
                let origin = Origin::Device {
                    open,
                    properties,
                    kind,
                };
                let parts = Parts { origin, ..parts };
                return Err(StandbyLink::without_device(parts, &error));
            }
        };
        let (member, wanted, on_fault) = (parts.member, parts.wanted, parts.on_fault);
        member.endpoint.note_change();
        member.endpoint.watch(core::iter::once(device.as_fd()));
        Ok(Box::new(Self {
            device,
            wanted,
            on_fault,
            handover: Owner::new(member, open, None),
            turns_left: 0,
        }))
    }

    /// Answers JOIN. Gives the device to the process that has sent TAKE, and returns the link that stands by. No frame may be held or
    /// being written.
    pub(crate) fn give(mut self: Box<Self>) -> Result<Box<StandbyLink>, Box<Self>> {
        self.handover.admit(None, &self.wanted);
        let Some(heir) = self.handover.accept_heir() else {
            return Err(self);
        };
        let Self {
            device,
            wanted,
            on_fault,
            handover,
            ..
        } = *self;
        let endpoint = handover.endpoint();
        endpoint.unwatch(core::iter::once(device.as_fd()));
        let properties = *device.properties();
        let kind = device.kind();
        drop(device);
        Ok(
            handover.stand_by(heir, (wanted, on_fault), |open| Origin::Device {
                open,
                properties,
                kind,
            }),
        )
    }

    /// The device itself.
    pub(crate) fn device(&self) -> &DirectLink {
        &self.device
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.handover.endpoint()
    }

    /// What has passed between this process and those that stand by; `None` without any.
    pub fn relayed(&self) -> Option<RelayCounters> {
        self.handover.relayed()
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.handover.has_requests()
    }

    /// The descriptor that ends a wait for anything but frames.
    pub(crate) fn control_fd(&self) -> BorrowedFd<'_> {
        self.handover.as_fd()
    }

    /// Sets the watcher by which frames of the device end waits while this process owns it.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.handover.set_watcher(watcher);
        let device = core::iter::once(self.device.as_fd());
        self.handover.endpoint().watch(device);
    }
}

impl Link for MovableLink {
    fn properties(&self) -> &LinkProperties {
        self.device.properties()
    }

    #[inline]
    fn receive(&mut self, burst: &mut Burst) {
        if !self.handover.returned().is_empty() {
            self.handover.returned().receive(burst);
        }
        self.device.receive(burst);
    }

    #[inline]
    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        match is_returned(id) {
            true => self.handover.returned().frame(id),
            false => self.device.frame(id),
        }
    }

    #[inline]
    fn release(&mut self, id: FrameId) {
        match is_returned(id) {
            true => self.handover.returned().release(id),
            false => self.device.release(id),
        }
    }

    #[inline]
    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.device.reserve(len_max)
    }

    #[inline]
    fn transmit(&mut self, len: usize, offload: Offload) {
        self.device.transmit(len, offload);
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    #[inline]
    fn flush(&mut self) -> bool {
        let len_max = frame_len_max(self.device.properties().segment_bytes_max);
        if self.handover.carry(&mut self.device, len_max) {
            self.turns_left = 0;
        }
        self.device.flush() || self.handover.has_backlog()
    }

    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        self.give_listed(frame, None, stray) != Delivery::None || self.fall_back(frame, None)
    }

    fn pass_to(&mut self, frame: &Received, process: u64) -> bool {
        let copy = self.handover.returned_copy(frame.id);
        let bytes = copy.as_deref();
        let bytes = bytes.unwrap_or_else(|| self.device.frame(frame.id));
        self.handover.pass_to(frame, bytes, process)
    }
}

/// Frames that match none of this worker's connections.
impl MovableLink {
    /// Gives one to the process that has its flow ([`Owner::give_listed`]); `bytes` are those of one that another worker has
    /// forwarded.
    pub(crate) fn give_listed(
        &mut self,
        frame: &Received,
        bytes: Option<&[u8]>,
        stray: &Stray<'_>,
    ) -> Delivery {
        let copy = self.handover.returned_copy(frame.id);
        let bytes = bytes.or(copy.as_deref());
        let bytes = bytes.unwrap_or_else(|| self.device.frame(frame.id));
        self.handover
            .give_listed(frame, bytes, (stray, &self.wanted))
    }

    /// Gives one to the process that had the device before ([`Owner::fall_back`]).
    pub(crate) fn fall_back(&mut self, frame: &Received, bytes: Option<&[u8]>) -> bool {
        let copy = self.handover.returned_copy(frame.id);
        let bytes = bytes.or(copy.as_deref());
        let bytes = bytes.unwrap_or_else(|| self.device.frame(frame.id));
        self.handover.fall_back(frame, bytes)
    }

    pub(crate) fn close_ways(&mut self) {
        self.handover.close_ways();
    }

    /// Where the host is to list its flows, if others stand by.
    pub(crate) fn flow_directory(&self) -> Option<Directory> {
        self.handover.flow_directory()
    }
}

/// What [`mill_stack::link::FlowSteering`], [`mill_stack::link::LinkMonitor`] and [`mill_stack::link::LinkSuccession`] ask of a device.
impl MovableLink {
    /// Another process that has asked for the device gets it in the next turn when this one serves no more: it refuses connections from
    /// here on.
    pub(crate) fn serve(&mut self, service: Service, on: bool) {
        self.wanted.serve(service, on);
        self.turns_left = 0;
    }

    /// Whether one of those that stand by may ask for the device, as this process has served and ends; the next turn looks.
    pub(crate) fn seek_heir(&mut self) -> bool {
        self.turns_left = 0;
        self.handover.may_have_heir(&self.wanted)
    }

    pub(crate) fn forget(&mut self, service: Service) {
        self.wanted.forget(service);
    }

    pub(crate) fn open_ports(&mut self) {
        self.wanted.opens_ports = true;
    }

    pub(crate) fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        self.device.take_changes(into);
        if let Some(left) = self.turns_left.checked_sub(1) {
            self.turns_left = left;
            return;
        }
        self.turns_left = TURNS_BETWEEN;
        if self.device.tap().is_some_and(TapLink::is_gone) {
            let device = core::iter::once(self.device.as_fd());
            self.handover.endpoint().unwatch(device);
        }
        let len_max = frame_len_max(self.device.properties().segment_bytes_max);
        let device = (&mut self.device, len_max);
        let around = (None, &self.wanted);
        self.handover.poll(device, around, &mut self.on_fault);
    }

    pub(crate) fn take_passed(&mut self) -> Option<Vec<u8>> {
        self.handover.take_passed()
    }
}

/// Readable when frames wait.
impl AsFd for MovableLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl fmt::Debug for MovableLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MovableLink")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// As for an interface ([`crate::interface`]).
const TURNS_BETWEEN: u32 = 63;
