//! AF_XDP: a queue of an interface as four rings and a memory of frames (the kernel's
//! Documentation/networking/af_xdp.rst, if_xdp.h).
//!
//! Making the socket takes privileges (`create`); using it (`Xsk::open`) takes none, and may happen in another process.
//! Frames have numbers. Those below `XskOptions::receive_frames` are only received into, the others are only sent from:
//! so each ring has room for every frame that can be in it, and none can overflow.

use crate::memory::SharedMemory;
use crate::memory::frames::Frames;
use ring::{Consumer, Descriptor, Producer};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The rings' indices and entries.
mod ring;

/// Options of sockets and their memory.
mod options;

/// Several sockets at one queue.
mod pool;

/// Making a socket, and reading its state.
mod socket;

/// Recovering the owner of frames that a former process has left.
mod recovery;

pub use options::{Copying, XskOptions};
use pool::Sharer;
pub use pool::XskPool;
pub use recovery::Recovered;
pub use socket::{XskError, XskStatistics, create, create_sharing};

/// Bytes that the kernel leaves free before a received frame (XDP_PACKET_HEADROOM of bpf.h): room for a program to add
/// headers.
pub const HEADROOM: u32 = 256;

/// A received frame, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the frame's slot.
    pub number: u32,
    /// Its offset in the slot.
    pub offset: u32,
    pub len: u32,
    /// The next piece belongs to the same frame.
    pub continues: bool,
}

/// The result of a call to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kicked {
    /// All frames are on their way.
    All,
    /// The kernel has sent `took` frames; it sends no more in one call, or has no room now.
    Some { took: u32 },
    /// The kernel has sent `took` frames and lost the last, because the other end's queue was full (veth has 256
    /// slots).
    Lost { took: u32 },
    /// The kernel silently sends nothing: the queue's number is beyond the transmit queues.
    Ignored,
    /// The interface is down or gone, or the call failed otherwise.
    Refused { errno: i32 },
}

/// A socket with its memory, used by one thread.
///
/// The rings come before the socket: mappings that outlive it would keep the queue busy.
#[derive(Debug)]
pub struct Xsk {
    supply: Supply,
    received: Consumer<Descriptor>,
    transmit: Producer<Descriptor>,
    frames: Frames,
    /// A frame's number is its address shifted right by this many bits.
    shift: u32,
    /// Frames with lower numbers are for receiving.
    receive_frames: u32,
    /// This socket's frames for sending.
    senders: Range<u32>,
    /// Receive frames that belonged to this process when the socket was taken over.
    vacant: Vec<u32>,
    recovered: Recovered,
    /// Invalid entries of the rings.
    strange: u64,
    /// The driver processes the rings itself, some time after a call.
    is_zero_copy: bool,
    socket: OwnedFd,
}

/// The rings by which slots go to the kernel and come back.
#[derive(Debug)]
enum Supply {
    Own {
        fill: Producer<u64>,
        completed: Consumer<u64>,
    },
    Shared(Sharer),
}

impl Xsk {
    /// Opens the only socket of a queue, new or left by a process that has ended. `memory` and `options` have to be
    /// those that it was made with. Several sockets are opened by [`XskPool`].
    pub fn open(socket: OwnedFd, memory: SharedMemory, options: &XskOptions) -> io::Result<Self> {
        options.memory_bytes()?;
        if options.sharers != 1 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let frame_bytes = options.frame_bytes as usize;
        let mut frames = Frames::inherited(memory, frame_bytes, options.frames())?;
        let rings = socket::Rings::of(socket.as_fd())?;
        let (mut fill, mut completed) = rings.common(options)?;
        let mut own = [rings.own(options)?];
        let recovered = recovery::recover(
            &mut frames,
            options.receivers(),
            (&mut fill, &mut completed),
            &mut own,
            recovery::is_exact(socket.as_fd()),
        );
        let share = options.receivers_of(0);
        let vacant = share
            .rev()
            .filter(|number| frames.is_ours(*number))
            .collect();
        let [(received, transmit)] = own;
        Ok(Self {
            supply: Supply::Own { fill, completed },
            received,
            transmit,
            frames,
            shift: options.frame_bytes.trailing_zeros(),
            receive_frames: options.receivers(),
            senders: options.senders_of(0),
            vacant,
            recovered,
            strange: 0,
            is_zero_copy: socket::is_zero_copy(socket.as_fd()).unwrap_or(false),
            socket,
        })
    }

    /// Opens one of several sockets of a queue.
    fn of_pool(
        mut sharer: Sharer,
        (received, transmit): pool::OwnRings,
        (mut frames, vacant, recovered): (Frames, Vec<u32>, Recovered),
        (place, options): (u32, &XskOptions),
        socket: OwnedFd,
    ) -> Self {
        let senders = options.senders_of(place);
        let out = senders.clone().filter(|number| !frames.is_ours(*number));
        sharer.begin(u32::try_from(out.count()).unwrap_or(u32::MAX));
        Self {
            supply: Supply::Shared(sharer),
            received,
            transmit,
            frames,
            shift: options.frame_bytes.trailing_zeros(),
            receive_frames: options.receivers(),
            senders,
            vacant,
            recovered,
            strange: 0,
            is_zero_copy: socket::is_zero_copy(socket.as_fd()).unwrap_or(false),
            socket,
        }
    }

    /// Bytes of a frame's slot.
    pub fn frame_bytes(&self) -> usize {
        self.frames.frame_bytes()
    }

    /// The numbers of this socket's frames for sending.
    pub fn senders(&self) -> Range<u32> {
        self.senders.clone()
    }

    /// The number of frames for receiving, which have the lower numbers. At a shared queue any of them may arrive at
    /// this socket.
    pub fn receivers(&self) -> u32 {
        self.receive_frames
    }

    /// The receive frames that belonged to this process when the socket was taken over, returned once; and how many
    /// frames this socket adds to the queue.
    pub fn take_vacant(&mut self) -> (Vec<u32>, u32) {
        let share = match &self.supply {
            Supply::Own { .. } => self.receive_frames,
            Supply::Shared(sharer) => sharer.receive_frames(),
        };
        (std::mem::take(&mut self.vacant), share)
    }

    /// Whether this process owns a frame now.
    pub fn is_ours(&mut self, number: u32) -> bool {
        self.frames.is_ours(number)
    }

    /// The bytes of adjacent frames, all of them owned by this process.
    pub fn run(&mut self, first: u32, count: u32) -> Option<&mut [u8]> {
        self.frames.run(first, count)
    }

    /// A part of a frame that this process owns.
    pub fn part(&mut self, number: u32, from: usize, len: usize) -> Option<&mut [u8]> {
        self.frames.part(number, from, len)
    }

    /// Takes the next received piece, which belongs to this process until [`Self::fill`].
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
            // What the kernel copies is its own; a driver without copies was seen to give a slot twice (igb, docs/cards.md).
            debug_assert!(self.is_zero_copy, "the kernel has no frame at {address}");
        }
    }

    /// The least number of pieces that wait, without reading the kernel's index again.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.received.known()
    }

    /// The number of slots that the kernel has for receiving, where several sockets give it some and none knows the
    /// sum.
    #[inline]
    pub fn filled_by_all(&self) -> Option<u32> {
        match &self.supply {
            Supply::Own { .. } => None,
            Supply::Shared(sharer) => Some(sharer.filled()),
        }
    }

    /// Gives a receive slot back to the kernel, which sees it after [`Self::publish_received`].
    #[inline]
    pub fn fill(&mut self, number: u32) {
        if number >= self.receive_frames || !self.frames.give(number) {
            debug_assert!(false, "{number} is no receive frame of this process");
            return;
        }
        let address = u64::from(number) << self.shift;
        match &mut self.supply {
            Supply::Own { fill, .. } => {
                let is_put = fill.put(address);
                debug_assert!(is_put, "the ring has room for all receive frames");
            }
            Supply::Shared(sharer) => sharer.give(address),
        }
    }

    /// Publishes what was taken and given back. No system call unless the driver sleeps.
    #[inline]
    pub fn publish_received(&mut self) {
        self.received.release();
        let wants_call = match &mut self.supply {
            Supply::Own { fill, .. } => {
                fill.publish();
                fill.needs_wakeup()
            }
            Supply::Shared(sharer) => sharer.publish(),
        };
        if wants_call {
            socket::wake_receiver(self.socket.as_fd());
        }
    }

    /// Queues a piece of a frame to be sent: the first `len` bytes of a send slot. The kernel sees it after
    /// [`Self::publish_transmit`], which must not be called before the last piece of a frame.
    #[inline]
    pub fn transmit(&mut self, number: u32, len: u32, continues: bool) {
        if !self.senders.contains(&number) || !self.frames.give(number) {
            debug_assert!(false, "{number} is no send frame of this process");
            return;
        }
        if let Supply::Shared(sharer) = &mut self.supply {
            sharer.transmitted();
        }
        let options = if continues { libc::XDP_PKT_CONTD } else { 0 };
        let is_put = self.transmit.put(Descriptor {
            address: u64::from(number) << self.shift,
            len,
            options,
        });
        debug_assert!(is_put, "the ring has room for all send frames");
    }

    /// Publishes the queued pieces.
    #[inline]
    pub fn publish_transmit(&mut self) {
        self.transmit.publish();
    }

    /// The number of published pieces that the kernel has not processed.
    #[inline]
    pub fn unsent(&mut self) -> u32 {
        self.transmit.pending()
    }

    /// Takes the number of a frame that was sent, which belongs to this process again.
    #[inline]
    pub fn complete(&mut self) -> Option<u32> {
        loop {
            let address = match &mut self.supply {
                Supply::Own { completed, .. } => {
                    let Some(address) = completed.take() else {
                        completed.release();
                        return None;
                    };
                    address
                }
                Supply::Shared(sharer) => sharer.complete()?,
            };
            if let Some(number) = self.number_of(address)
                && self.senders.contains(&number)
                && self.frames.take(number)
            {
                return Some(number);
            }
            self.strange += 1;
            debug_assert!(false, "the kernel has no send frame at {address}");
        }
    }

    /// Has the kernel send what was published, if it does not do so by itself. One system call; in copy mode it does
    /// all the work of sending.
    pub fn kick(&mut self) -> Kicked {
        let before = self.transmit.pending();
        if before == 0 || !self.transmit.needs_wakeup() {
            return Kicked::All;
        }
        let result = socket::send(self.socket.as_fd());
        let left = self.transmit.pending();
        let took = before.wrapping_sub(left);
        match result {
            Ok(()) if left == 0 || self.is_zero_copy || self.is_driver_sending() => Kicked::All,
            Ok(()) if took == 0 => Kicked::Ignored,
            Ok(()) => Kicked::Some { took },
            Err(error) => match error.raw_os_error().unwrap_or_default() {
                libc::EBUSY => Kicked::Lost { took },
                libc::EAGAIN | libc::ENOBUFS | libc::EINTR => Kicked::Some { took },
                errno => Kicked::Refused { errno },
            },
        }
    }

    /// Has a driver without copies process both rings. It does so by itself only while it has slots for receiving: one
    /// that found the fill ring empty, as when the program is attached before the ring is filled, waits for this call,
    /// and does not ask for it (`xp_assign_dev` of net/xdp/xsk_buff_pool.c sets the flag of the transmit ring alone).
    pub fn wake(&self) {
        if self.is_zero_copy {
            socket::wake_receiver(self.socket.as_fd());
            // The result does not matter: an interface that is down is woken when it is up.
            let _ = socket::send(self.socket.as_fd());
        }
    }

    /// Whether the driver polls the ring without a call.
    fn is_driver_sending(&self) -> bool {
        !self.transmit.needs_wakeup()
    }

    /// Whether the kernel copies neither received nor sent frames.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// The kernel's counters since the socket was made.
    pub fn statistics(&self) -> io::Result<XskStatistics> {
        socket::statistics(self.socket.as_fd())
    }

    /// What was recovered when the socket was taken over.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// The number of ring entries that named no frame of the kernel: always zero, unless the kernel has a bug.
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
