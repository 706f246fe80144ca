//! AF_XDP: a queue of an interface as four rings and memory full of frames (the kernel's
//! Documentation/networking/af_xdp.rst, if_xdp.h).
//!
//! Making the socket takes rights (`create`); running it (`Xsk::open`) takes none, and may happen in another process.
//! Frames have numbers. Those below `XskOptions::receive_frames` only ever receive, the others only ever send: so each
//! ring has room for every frame that can be in it, and none is ever full.

use crate::memory::SharedMemory;
use crate::memory::frames::Frames;
use ring::{Consumer, Descriptor, Producer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The rings' indices and entries.
mod ring;

/// Making the socket, and asking it.
mod socket;

/// Whose the frames are that somebody has left behind.
mod recovery;

pub use recovery::Recovered;
pub use socket::{XskError, XskStatistics, create};

/// What socket and memory are made with; whoever opens them has to say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskOptions {
    /// Bytes of a frame's place: 2048 or 4096. What is received begins [`HEADROOM`] bytes behind its beginning.
    pub frame_bytes: u32,
    /// How many frames receive; a power of two.
    pub receive_frames: u32,
    /// How many frames send; a power of two.
    pub transmit_frames: u32,
    pub copying: Copying,
    /// Frames longer than a place are several pieces (Linux 6.6), instead of being dropped.
    pub in_pieces: bool,
}

/// Whether the kernel copies frames into and out of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// As the driver can; [`Xsk::is_zero_copy`] says how it turned out.
    #[default]
    AsDriverCan,
    Always,
    /// Binding fails where the driver can't without.
    Never,
}

/// What the kernel leaves free before what it receives (XDP_PACKET_HEADROOM of bpf.h): room for a program to put headers.
pub const HEADROOM: u32 = 256;

/// A part of a frame that has arrived, or the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the place.
    pub number: u32,
    /// Where it begins there.
    pub offset: u32,
    pub len: u32,
    /// The next piece belongs to the same frame.
    pub continues: bool,
}

/// What a call to send has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kicked {
    /// Everything is on its way.
    All,
    /// The kernel takes no more than so many a call, or has no room now; `took` says how many it took.
    Some { took: u32 },
    /// The kernel took frames and lost the last, because the other end's queue was full (veth has 256 places).
    Lost { took: u32 },
    /// The kernel sends nothing and does not say why: the queue's number is beyond the queues that send.
    Ignored,
    /// The interface is down, gone, or the like.
    Refused { errno: i32 },
}

/// A socket with its memory, as used by one thread.
///
/// The rings come before the socket: mappings that outlive it would keep the queue busy.
#[derive(Debug)]
pub struct Xsk {
    fill: Producer<u64>,
    received: Consumer<Descriptor>,
    transmit: Producer<Descriptor>,
    completed: Consumer<u64>,
    frames: Frames,
    /// A frame's number is its address shifted so many bits.
    shift: u32,
    receive_frames: u32,
    recovered: Recovered,
    /// Entries of the rings that made no sense.
    strange: u64,
    socket: OwnedFd,
}

impl XskOptions {
    /// How many bytes of memory they take; EINVAL if the numbers make no sense.
    pub fn memory_bytes(&self) -> io::Result<usize> {
        let is_valid = matches!(self.frame_bytes, 2048 | 4096)
            && self.receive_frames.is_power_of_two()
            && self.transmit_frames.is_power_of_two();
        let bytes = self
            .frames()
            .and_then(|count| Frames::bytes_inherited(self.frame_bytes as usize, count));
        bytes
            .filter(|_| is_valid)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    }

    /// Descriptors of the ring of frames to be filled: twice as many as frames. The kernel shows what it has received before
    /// it shows that it took the places from the ring, so that they may come back while it still looks full.
    const fn fill_ring(&self) -> u32 {
        self.receive_frames.saturating_mul(2)
    }

    fn frames(&self) -> Option<u32> {
        self.receive_frames.checked_add(self.transmit_frames)
    }
}

impl Xsk {
    /// Takes the socket over, new or left behind by a process that is no more. `memory` and `options` are those that the
    /// socket was made with.
    pub fn open(socket: OwnedFd, memory: SharedMemory, options: &XskOptions) -> io::Result<Self> {
        options.memory_bytes()?;
        let frame_bytes = options.frame_bytes as usize;
        let frames = Frames::inherited(memory, frame_bytes, options.frames().unwrap_or_default())?;
        let rings = socket::Rings::of(socket.as_fd())?;
        let mut xsk = Self {
            fill: Producer::new(
                rings.map(socket::Ring::Fill, options.fill_ring())?,
                rings.layout(socket::Ring::Fill, options.fill_ring())?,
            )?,
            received: Consumer::new(
                rings.map(socket::Ring::Received, options.receive_frames)?,
                rings.layout(socket::Ring::Received, options.receive_frames)?,
            )?,
            transmit: Producer::new(
                rings.map(socket::Ring::Transmit, options.transmit_frames)?,
                rings.layout(socket::Ring::Transmit, options.transmit_frames)?,
            )?,
            completed: Consumer::new(
                rings.map(socket::Ring::Completed, options.transmit_frames)?,
                rings.layout(socket::Ring::Completed, options.transmit_frames)?,
            )?,
            frames,
            shift: options.frame_bytes.trailing_zeros(),
            receive_frames: options.receive_frames,
            recovered: Recovered::default(),
            strange: 0,
            socket,
        };
        xsk.recovered = xsk.recover();
        Ok(xsk)
    }

    /// Bytes of a frame's place.
    pub fn frame_bytes(&self) -> usize {
        self.frames.frame_bytes()
    }

    /// The numbers of the frames that send.
    pub fn senders(&self) -> std::ops::Range<u32> {
        self.receive_frames..self.frames.count()
    }

    /// Whether a frame is ours now.
    pub fn is_ours(&mut self, number: u32) -> bool {
        self.frames.is_ours(number)
    }

    /// The bytes of frames that lie side by side, all of them ours.
    pub fn run(&mut self, first: u32, count: u32) -> Option<&mut [u8]> {
        self.frames.run(first, count)
    }

    /// A part of a frame that is ours.
    pub fn part(&mut self, number: u32, from: usize, len: usize) -> Option<&mut [u8]> {
        self.frames.part(number, from, len)
    }

    /// Takes the next piece that has arrived. It is ours until [`Self::fill`].
    #[inline]
    pub fn receive(&mut self) -> Option<Piece> {
        loop {
            let Descriptor {
                address,
                len,
                options,
            } = self.received.take()?;
            if let Some(number) = self.number_of(address)
                && number < self.receive_frames
                && self.frames.take(number)
            {
                return Some(Piece {
                    number,
                    offset: self.offset_in_frame(address),
                    len,
                    continues: options & libc::XDP_PKT_CONTD != 0,
                });
            }
            self.strange += 1;
            debug_assert!(false, "the kernel has no frame at {address}");
        }
    }

    /// How many pieces wait at least, without a look at what the other side has done since.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.received.known()
    }

    /// Gives a frame that receives back to the kernel, which sees it after [`Self::publish_received`].
    #[inline]
    pub fn fill(&mut self, number: u32) {
        if number >= self.receive_frames || !self.frames.give(number) {
            debug_assert!(false, "{number} is no frame of ours that receives");
            return;
        }
        let is_put = self.fill.put(u64::from(number) << self.shift);
        debug_assert!(is_put, "the ring has room for all frames that receive");
    }

    /// Tells the kernel what was taken and given back. No system call but where the driver sleeps.
    #[inline]
    pub fn publish_received(&mut self) {
        self.received.release();
        self.fill.publish();
        if self.fill.needs_wakeup() {
            socket::wake_receiver(self.socket.as_fd());
        }
    }

    /// Queues a piece of a frame to be sent: the first `len` bytes of a place that sends. The kernel sees it after
    /// [`Self::publish_transmit`], which has to wait for the last piece of a frame.
    #[inline]
    pub fn transmit(&mut self, number: u32, len: u32, continues: bool) {
        if number < self.receive_frames || !self.frames.give(number) {
            debug_assert!(false, "{number} is no frame of ours that sends");
            return;
        }
        let options = if continues { libc::XDP_PKT_CONTD } else { 0 };
        let is_put = self.transmit.put(Descriptor {
            address: u64::from(number) << self.shift,
            len,
            options,
        });
        debug_assert!(is_put, "the ring has room for all frames that send");
    }

    /// Lets the kernel see what was queued.
    #[inline]
    pub fn publish_transmit(&mut self) {
        self.transmit.publish();
    }

    /// How many published pieces the kernel has not looked at.
    #[inline]
    pub fn unsent(&mut self) -> u32 {
        self.transmit.pending()
    }

    /// Takes the number of a frame that has been sent; it is ours again.
    #[inline]
    pub fn complete(&mut self) -> Option<u32> {
        loop {
            let Some(address) = self.completed.take() else {
                self.completed.release();
                return None;
            };
            if let Some(number) = self.number_of(address)
                && number >= self.receive_frames
                && self.frames.take(number)
            {
                return Some(number);
            }
            self.strange += 1;
            debug_assert!(false, "the kernel sends no frame at {address}");
        }
    }

    /// Has the kernel send what was published, if it does not by itself. One system call, in which a kernel that copies
    /// does all of the work of sending.
    pub fn kick(&mut self) -> Kicked {
        let before = self.transmit.pending();
        if before == 0 || !self.transmit.needs_wakeup() {
            return Kicked::All;
        }
        let result = socket::send(self.socket.as_fd());
        let left = self.transmit.pending();
        let took = before.wrapping_sub(left);
        match result {
            Ok(()) if left == 0 || self.is_driver_sending() => Kicked::All,
            Ok(()) if took == 0 => Kicked::Ignored,
            Ok(()) => Kicked::Some { took },
            Err(error) => match error.raw_os_error().unwrap_or_default() {
                libc::EBUSY => Kicked::Lost { took },
                libc::EAGAIN | libc::ENOBUFS | libc::EINTR => Kicked::Some { took },
                errno => Kicked::Refused { errno },
            },
        }
    }

    /// Whether the driver looks at the ring without being called.
    fn is_driver_sending(&self) -> bool {
        !self.transmit.needs_wakeup()
    }

    /// Whether the kernel neither copies received frames nor those that are sent.
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        socket::is_zero_copy(self.socket.as_fd())
    }

    /// What the kernel has counted since the socket was made.
    pub fn statistics(&self) -> io::Result<XskStatistics> {
        socket::statistics(self.socket.as_fd())
    }

    /// What was found when the socket was taken over.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Entries of the rings that named no frame of the kernel's: none, ever.
    pub fn strange(&self) -> u64 {
        self.strange
    }

    fn number_of(&self, address: u64) -> Option<u32> {
        u32::try_from(address >> self.shift).ok()
    }

    fn offset_in_frame(&self, address: u64) -> u32 {
        let offset = address & ((1 << self.shift) - 1);
        u32::try_from(offset).unwrap_or_default()
    }
}

impl AsFd for Xsk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
