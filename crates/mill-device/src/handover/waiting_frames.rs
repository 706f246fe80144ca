//! Frames of connections that other processes have and the owner cannot give them yet: a process that has just begun has no way to the
//! owner for some milliseconds, in which it may connect already, and a connection may be on its way from one process to another.
//! Their senders would send them again only after 200 ms, or a second.

use super::directory::{Directory, Holder};
use super::peers::Peers;
use crate::relay::Note;
use mill_stack::flow::Flow;
use mill_sys::clock;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct WaitingFrames {
    /// The oldest first.
    frames: Vec<WaitingFrame>,
    /// When it was looked last which of them can be given.
    looked_at: Duration,
}

#[derive(Debug)]
struct WaitingFrame {
    flow: Flow,
    is_opening: bool,
    note: Note,
    bytes: Vec<u8>,
    arrived_at: Duration,
}

impl WaitingFrame {
    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.arrived_at) > TIME_MAX
    }

    /// Gives it to the process that has its flow.
    fn settle(&self, directory: Directory, peers: &mut Peers) -> Settled {
        let holder = match directory.find(&self.flow) {
            Some(Holder::Moving) => return Settled::No,
            holder => holder.and_then(|holder| holder.process(self.is_opening)),
        };
        match holder {
            Some(tag) if tag != directory.own() => match peers.put(tag, &self.note, &self.bytes) {
                true => Settled::Given,
                false => Settled::No,
            },
            _ => Settled::Own,
        }
    }
}

/// What has become of a frame that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    No,
    Given,
    /// The connection has come to this process, or none has it any more.
    Own,
}

impl WaitingFrames {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Keeps a copy; `false` if there is no room.
    #[cold]
    pub(crate) fn keep(&mut self, flow: &Flow, is_opening: bool, note: Note, bytes: &[u8]) -> bool {
        let now = clock::monotonic();
        let over = self.frames.iter().take_while(|frame| frame.is_over(now));
        let over = over.count();
        self.frames.drain(..over);
        let has_room = self.frames.len() < COUNT_MAX && bytes.len() <= BYTES_MAX;
        if has_room {
            self.frames.push(WaitingFrame {
                flow: *flow,
                is_opening,
                note,
                bytes: bytes.to_vec(),
                arrived_at: now,
            });
        }
        has_room
    }

    /// Gives the processes what they can have by now, unless that was done a moment ago; what is for this one.
    #[cold]
    pub(crate) fn give(&mut self, directory: Directory, peers: &mut Peers) -> Vec<(Note, Vec<u8>)> {
        let now = clock::monotonic();
        let mut own = Vec::new();
        if now.saturating_sub(self.looked_at) < INTERVAL {
            return own;
        }
        self.looked_at = now;
        self.frames.retain_mut(|frame| {
            if frame.is_over(now) {
                return false;
            }
            let settled = frame.settle(directory, peers);
            if settled == Settled::Own {
                own.push((frame.note, core::mem::take(&mut frame.bytes)));
            }
            settled == Settled::No
        });
        own
    }

    /// All of them, for the process that gets the device.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Note, Vec<u8>)> {
        let frames = core::mem::take(&mut self.frames);
        frames.into_iter().map(|frame| (frame.note, frame.bytes))
    }

    /// Gives a process what waits of a flow, before it gets more of that.
    #[inline]
    pub(crate) fn give_first(&mut self, flow: &Flow, directory: Directory, peers: &mut Peers) {
        if !self.is_empty() {
            self.frames.retain(|frame| {
                frame.flow != *flow || frame.settle(directory, peers) != Settled::Given
            });
        }
    }
}

/// As many as a few clients send within that time at a change of processes.
pub(crate) const COUNT_MAX: usize = 256;

/// Of one frame: what the device has merged is not kept.
const BYTES_MAX: usize = 2048;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(1);

/// Senders have sent them again by then.
const TIME_MAX: Duration = Duration::from_millis(500);
