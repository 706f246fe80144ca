//! memif 2.0: frames through memory that two processes share, without the kernel.
//!
//! One end listens at a UNIX socket (master), the other one connects (slave) and owns the memory. Whatever the peer
//! writes may be wrong, or may change while it is read: frames are copied into private memory before they are parsed,
//! and a descriptor is copied before it is checked. Connecting happens inside of the link, in `receive`; a peer that
//! goes away may come back.
//!
//! Way of a frame: `transmit` → `memif/connection.rs` → `memif/transmitter.rs` → `memif/ring.rs`, and on the other side
//! `memif/receiver.rs` → `frames.rs`. Connecting: `memif/control.rs` (which peer, and when), `memif/channel.rs` (the
//! socket), `memif/handshake.rs` (the order of messages), `memif/message.rs` (their bytes).
//!
//! Of several workers each has rings of its own (`memif/share.rs`). One, the leader, has the control channel, and gives the
//! others theirs (`memif/leader.rs`, `memif/follower.rs`). What was agreed on, and what the rings themselves say, is all that is needed
//! to go on with a connection. So it is kept in a socket that all processes of the device have (`memif/dispatch.rs`): the peer notices
//! nothing when a process ends, in order or not, and the next one goes on. It is gone with the last one that has that socket.

/// Settings.
mod options;

/// Counters and changes of the peer.
mod report;

/// Frames sent before there is a peer.
mod waiting;

/// The peer connects and disconnects.
mod peer;

/// The socket's name.
mod place;

/// The messages of the control channel.
pub mod message;

/// The handshake of two ends.
pub mod handshake;

/// The control channel's socket.
mod channel;

/// Listening, connecting, and one peer at a time.
mod control;

/// How a worker comes to its rings.
mod access;

/// The worker that has the control channel.
pub(crate) mod leader;

/// A worker that gets its rings from that one.
mod follower;

/// What workers and processes send each other.
pub(crate) mod dispatch;

/// The rings of one of several workers.
pub(crate) mod share;

/// What two ends have agreed on.
mod agreement;

/// A ring in shared memory.
pub mod ring;

/// Offsets of rings and buffers.
pub mod layout;

/// Frames out of a ring.
pub mod receiver;

/// Frames into a ring.
pub mod transmitter;

/// Memory, rings and signals of two ends that are connected.
mod connection;

/// The metadata of a descriptor.
mod extra;

pub use options::{MemifOptions, OptionError};
pub use place::{listener, listener_when_free};
pub use report::{MemifChange, MemifCounters};

use crate::checksum;
use crate::frames::Frames;
use crate::segment;
use access::Access;
use connection::Connection;
use control::{Control, News, Side};
use extra::Extra;
use follower::Follower;
use leader::Leader;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FRAMES_HELD_MAX, FrameId, Link, LinkChange, LinkProperties,
    Offload, Received, Stray,
};
use place::name;
use report::ChangeReporter;
use share::Share;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use waiting::Waiting;

/// One end of a memif interface.
#[derive(Debug)]
pub struct MemifLink {
    access: Access,
    properties: LinkProperties,
    offload: bool,
    connection: Option<Box<Connection>>,
    /// The peer is gone; frames that it sent before are still to be received.
    is_leaving: bool,
    /// The link is polled: the peer need not signal.
    polling: bool,
    /// The peer was asked to signal, as a poll found nothing.
    armed: bool,
    /// Calls of `receive` until the control channel is polled although frames keep coming.
    until_look: u32,
    frames: Frames,
    room: Box<[u8]>,
    /// A segment of a frame that is cut for a peer without offload.
    piece: Vec<u8>,
    /// Frames sent before there was a peer.
    waiting: Waiting,
    news: Vec<News>,
    changes: VecDeque<MemifChange>,
    reporter: Option<ChangeReporter>,
    /// The peer's last change, until the host takes it.
    peer_change: Option<LinkChange>,
    counters: MemifCounters,
}

/// The peer wrote an index or a buffer that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl MemifLink {
    /// A master that listens at `path`; a name that begins with `@` is abstract and has no file. The socket file of a
    /// process that crashed is replaced. Needs no privileges but access to the path; see [`Self::serve`] for a listener
    /// that is made elsewhere.
    pub fn listen(path: &Path, options: &MemifOptions) -> io::Result<Self> {
        Self::serve(listener(path)?, options)
    }

    /// A master on a listener that was made with [`listener`].
    pub fn serve(listener: OwnedFd, options: &MemifOptions) -> io::Result<Self> {
        Self::new(Side::Master { listener }, options)
    }

    /// A slave that connects to the listener at `path`, as soon as there is one.
    pub fn connect(path: &Path, options: &MemifOptions) -> io::Result<Self> {
        let side = Side::Slave {
            name: name(path),
            file: None,
        };
        Self::new(side, options)
    }

    /// The same with the socket's file, opened for its path only (`O_PATH`): it needs no name, and no right to search the
    /// folder that it was in. The first attempt is made a moment later.
    pub fn connect_to(file: OwnedFd, options: &MemifOptions) -> io::Result<Self> {
        // Descriptors are the thread's, which may have a table of its own.
        let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        let side = Side::Slave {
            name: path.into_bytes(),
            file: Some(file),
        };
        Self::new(side, options)
    }

    fn new(side: Side, options: &MemifOptions) -> io::Result<Self> {
        options.check().map_err(io::Error::other)?;
        let control = Control::new(side, options.terms(), options.buffer_bytes)?;
        Ok(Self::with(Access::Control(Box::new(control)), options))
    }

    /// The link of a worker that gets its rings from the one at the other end of the channel.
    pub(crate) fn follow(
        channel: OwnedFd,
        share: Share,
        options: &MemifOptions,
    ) -> io::Result<Self> {
        options.check().map_err(io::Error::other)?;
        let follower = Follower::new(channel, share)?;
        Ok(Self::with(Access::Follower(follower), options))
    }

    /// Makes it the link that gives the other workers of this end their rings, and that goes on with the connection which the
    /// process before has left.
    pub(crate) fn lead(mut self, leader: Leader) -> io::Result<Self> {
        let left = match &mut self.access {
            Access::Control(control) => control.lead(leader)?,
            Access::Follower(_) => None,
        };
        if let Some(connection) = left {
            self.begin(Box::new(connection));
        }
        Ok(self)
    }

    fn with(access: Access, options: &MemifOptions) -> Self {
        Self {
            access,
            properties: Self::properties_of(options),
            offload: options.offload,
            connection: None,
            is_leaving: false,
            polling: options.polling,
            armed: false,
            until_look: 0,
            frames: Frames::new(FRAMES, PLACE_BYTES),
            room: vec![0; PLACE_BYTES].into_boxed_slice(),
            piece: Vec::new(),
            waiting: Waiting::default(),
            news: Vec::new(),
            changes: VecDeque::new(),
            reporter: None,
            peer_change: None,
            counters: MemifCounters::default(),
        }
    }

    /// The properties of a link with these options.
    pub(crate) fn properties_of(options: &MemifOptions) -> LinkProperties {
        LinkProperties {
            address: options.address,
            mtu: options.mtu,
            completes_checksums: options.offload,
            segment_bytes_max: if options.offload {
                SEGMENT_BYTES_MAX
            } else {
                u32::from(options.mtu)
            },
            cut_bytes_min: 0,
            sends_external: false,
            frames_per_turn: connection::SHARE,
        }
    }

    pub fn counters(&self) -> MemifCounters {
        self.counters
    }

    /// Whether there is a peer.
    pub fn is_up(&self) -> bool {
        self.connection.is_some()
    }

    /// The oldest change of the peer that was not taken yet; of many changes the last ones are kept.
    pub fn take_change(&mut self) -> Option<MemifChange> {
        self.changes.pop_front()
    }

    /// Calls `listener` at changes as well, but not when the first peer connects at once, and not for repeated changes.
    pub fn on_change(&mut self, listener: impl Fn(&MemifChange) + Send + 'static) {
        self.reporter = Some(ChangeReporter::new(listener));
    }

    /// While polling, the peer is asked not to signal, and the descriptor does not report frames: the caller has to
    /// receive all the time. Otherwise a `receive` that finds nothing asks the peer to signal.
    pub fn set_polling(&mut self, polling: bool) {
        self.polling = polling;
        if polling && self.armed {
            self.disarm();
        }
    }

    pub fn is_polling(&self) -> bool {
        self.polling
    }

    fn disarm(&mut self) {
        self.armed = false;
        if let Some(connection) = &self.connection {
            connection.set_wakeups(false);
        }
    }

    /// Receives what there is; returns whether there was anything.
    fn take(&mut self, burst: &mut Burst) -> bool {
        let Some(connection) = &mut self.connection else {
            return false;
        };
        match connection.receive(&mut self.frames, burst, &mut self.counters) {
            Ok(count) => count > 0,
            Err(broken) => {
                self.refuse(broken);
                false
            }
        }
    }

    /// Puts the first `len` bytes of the room into the ring, segmented if the peer needs that.
    fn put(&mut self, len: usize, offload: Offload) -> Result<(), Broken> {
        let Some(frame) = self.room.get_mut(..len) else {
            debug_assert!(false, "no frame is {len} bytes long");
            return Ok(());
        };
        let Some(connection) = &mut self.connection else {
            self.counters.unconnected += self.waiting.push(frame, offload);
            return Ok(());
        };
        if connection.offload {
            let extra = Extra::of_transmitted(len, offload);
            let done = connection.put(frame, extra.bits())?;
            count(&mut self.counters, done, len);
            return Ok(());
        }
        if let (Some(segmentation), Some(checksum)) = (offload.segmentation, offload.checksum) {
            let mut broken = Ok(());
            let counters = &mut self.counters;
            let piece = &mut self.piece;
            segment::cut(frame, checksum, segmentation, piece, |piece| {
                if broken.is_ok() {
                    match connection.put(piece, 0) {
                        Ok(done) => count(counters, done, piece.len()),
                        Err(error) => broken = Err(error),
                    }
                }
            });
            return broken;
        }
        if offload.checksum.is_some() {
            checksum::complete(frame);
        }
        let done = connection.put(frame, 0)?;
        count(&mut self.counters, done, len);
        Ok(())
    }

    /// Appends that the peer has come or gone, if it has since the last call.
    pub fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        into.extend(self.peer_change.take());
    }
}

fn count(counters: &mut MemifCounters, is_done: bool, len: usize) {
    if is_done {
        counters.transmitted += 1;
        counters.transmitted_bytes += len as u64;
    } else {
        counters.no_room += 1;
    }
}

/// The connection is the next process's, if one may follow. Otherwise the peer is told that this end goes away (`memif/control.rs`).
impl Drop for MemifLink {
    fn drop(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.settle(&mut self.counters);
            self.access.forget(&connection);
            self.access.leave();
        }
    }
}

impl Link for MemifLink {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        self.look();
        if !self.waiting.is_empty()
            && let Err(broken) = self.send_waiting()
        {
            self.refuse(broken);
        }
        let is_any = self.take(burst);
        if is_any && self.armed {
            self.disarm();
        } else if !is_any && self.is_leaving {
            self.end();
        } else if !is_any
            && !self.armed
            && !self.polling
            && let Some(connection) = &self.connection
        {
            connection.set_wakeups(true);
            self.armed = true;
            // Frames that were published before the peer could see the flag come without a signal.
            self.take(burst);
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.frames.frame(id)
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(id);
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        if let Some(connection) = &mut self.connection {
            // Segmented, a frame may take twice as many buffers as its bytes would.
            let needed = if self.offload && !connection.offload {
                2 * len_max
            } else {
                len_max
            };
            match connection.has_room(needed) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(broken) => self.refuse(broken),
            }
        } else if self.access.is_asking() {
            return None;
        }
        let room = self.room.get_mut(..len_max);
        debug_assert!(room.is_some(), "no frame is {len_max} bytes long");
        room
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        if let Err(broken) = self.put(len, offload) {
            self.refuse(broken);
        }
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        if let Some(connection) = &mut self.connection {
            connection.publish(&mut self.counters);
        }
        false
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}

/// Readable when `receive` has something to do: frames, if the last call found none, and peers that connect or
/// disconnect.
impl AsFd for MemifLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.access.as_fd()
    }
}

/// Bytes of the largest IP packet: the limit of its length field (RFC 791 3.1).
const SEGMENT_BYTES_MAX: u32 = 65535;

/// Bytes of a slot: an Ethernet header with two tags and an IP packet of 64 KiB, in an odd number of cache lines so
/// that the starts of slots spread over the sets of the processor's caches.
const PLACE_BYTES: usize = (22 + 65536_usize).next_multiple_of(64);
const _: () = assert!(PLACE_BYTES / 64 % 2 == 1);

/// Frames received and not released yet: two bursts. 8 MiB when all of them have the maximum size.
const FRAMES: u32 = 128;

const _: () = assert!(FRAMES > FRAMES_HELD_MAX);

#[cfg(test)]
mod tests;
