//! Several sockets at one queue (XDP_SHARED_UMEM): each has a receive ring and a transmit ring of its own, and all
//! share the fill ring, the completion ring and the memory.
//!
//! The shared rings allow a single user each, so a lock protects them: it is taken at most twice a burst, by the
//! threads of one process. A receive slot belongs to no socket: the socket that receives into it gives it back. A send
//! slot belongs to one socket, and a socket that finds another's slot in the completion ring sets it aside for its
//! owner.

use super::ring::{Consumer, Descriptor, Gauge, Producer};
use super::socket::{Ring, Rings};
use super::{Recovered, Xsk, XskOptions, recovery};
use crate::memory::SharedMemory;
use crate::memory::frames::Frames;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rings that the sockets of a queue share. Clones refer to the same rings, for other threads.
#[derive(Clone, Debug)]
pub struct XskPool(Arc<Mutex<Common>>);

#[derive(Debug)]
struct Common {
    fill: Producer<u64>,
    completed: Consumer<u64>,
    shift: u32,
    options: XskOptions,
    places: Box<[SharerState]>,
    recovered: Recovered,
}

/// What the pool holds for a socket.
#[derive(Debug, Default)]
struct SharerState {
    /// Receive frames that belonged to this process when the pool was opened, until the socket is opened.
    vacant: Vec<u32>,
    /// Addresses of its frames that were sent.
    sent: Vec<u64>,
    /// Until the socket is opened.
    fill: Option<Gauge>,
}

/// A socket's access to the shared rings.
#[derive(Debug)]
pub(super) struct Sharer {
    pool: XskPool,
    place: usize,
    /// The number of slots that the kernel has for receiving, from all sockets.
    fill: Gauge,
    /// Slots to be filled that were not published yet, and completions that were not taken yet.
    filling: Vec<u64>,
    sent: Vec<u64>,
    /// Frames given to the kernel to send and not returned yet.
    out: u32,
}

impl XskPool {
    /// Opens the rings, new or left by a process that has ended. `sockets` are all of the queue's, in the order in
    /// which they were made; `memory` and `options` those that they were made with.
    pub fn open(
        sockets: &[BorrowedFd<'_>],
        memory: SharedMemory,
        options: &XskOptions,
    ) -> io::Result<Self> {
        options.memory_bytes()?;
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let first = sockets.first().ok_or_else(invalid)?;
        if sockets.len() != options.sharers as usize {
            return Err(invalid());
        }
        let rings = Rings::of(*first)?;
        let (mut fill, mut completed) = rings.common(options)?;
        let mut frames = Frames::inherited(memory, options.frame_bytes as usize, options.frames())?;
        let mut own = Vec::with_capacity(sockets.len());
        let mut is_exact = true;
        for socket in sockets {
            own.push(Rings::of(*socket)?.own(options)?);
            is_exact &= recovery::is_exact(*socket);
        }
        let boundary = options.receivers();
        let recovered = recovery::recover(
            &mut frames,
            boundary,
            (&mut fill, &mut completed),
            &mut own,
            is_exact,
        );
        let places: io::Result<Box<[SharerState]>> = (0..options.sharers)
            .map(|place| {
                let ring = rings.map(Ring::Fill, options.fill_ring())?;
                let layout = rings.layout(Ring::Fill, options.fill_ring())?;
                let share = options.receivers_of(place);
                let sent = options.transmit_frames as usize;
                Ok(SharerState {
                    vacant: share
                        .rev()
                        .filter(|number| frames.is_ours(*number))
                        .collect(),
                    sent: Vec::with_capacity(sent),
                    fill: Some(Gauge::new(ring, layout)?),
                })
            })
            .collect();
        Ok(Self(Arc::new(Mutex::new(Common {
            fill,
            completed,
            shift: options.frame_bytes.trailing_zeros(),
            options: *options,
            places: places?,
            recovered,
        }))))
    }

    /// Opens a socket, once, by its index among those that the pool was opened with.
    pub fn take(&self, place: u32, socket: OwnedFd, memory: SharedMemory) -> io::Result<Xsk> {
        let (options, vacant, fill, recovered) = {
            let mut common = self.lock();
            let (options, recovered) = (common.options, common.recovered);
            let place = common.places.get_mut(place as usize);
            let taken = place.and_then(|place| Some((place.fill.take()?, &mut place.vacant)));
            let (fill, vacant) = taken.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            (options, std::mem::take(vacant), fill, recovered)
        };
        let frames = Frames::inherited(memory, options.frame_bytes as usize, options.frames())?;
        let (received, transmit) = Rings::of(socket.as_fd())?.own(&options)?;
        let sharer = Sharer {
            pool: self.clone(),
            place: place as usize,
            fill,
            filling: Vec::with_capacity(options.receive_frames as usize),
            sent: Vec::with_capacity(options.transmit_frames as usize),
            out: 0,
        };
        Ok(Xsk::of_pool(
            sharer,
            (received, transmit),
            (frames, vacant, recovered),
            (place, &options),
            socket,
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Common> {
        // A thread that panicked has ended the process, or has left the rings as they are between two entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sharer {
    /// Sets how many frames the kernel had when the socket was taken over.
    pub(super) fn begin(&mut self, out: u32) {
        self.out = out;
    }

    /// The number of slots that the kernel has for receiving, from all sockets.
    pub(super) fn filled(&self) -> u32 {
        self.fill.count()
    }

    /// The receive frames that this socket adds to the queue.
    pub(super) fn receive_frames(&self) -> u32 {
        self.pool.lock().options.receive_frames
    }

    pub(super) fn give(&mut self, address: u64) {
        self.filling.push(address);
    }

    /// Publishes the slots to be filled; returns whether the kernel wants a call.
    pub(super) fn publish(&mut self) -> bool {
        if self.filling.is_empty() {
            return false;
        }
        let mut common = self.pool.lock();
        for address in self.filling.drain(..) {
            let is_put = common.fill.put(address);
            debug_assert!(is_put, "the ring has room for all receive frames");
        }
        common.fill.publish();
        common.fill.needs_wakeup()
    }

    pub(super) fn transmitted(&mut self) {
        self.out += 1;
    }

    /// The address of a frame of this socket that was sent.
    pub(super) fn complete(&mut self) -> Option<u64> {
        if self.out == 0 {
            return None;
        }
        if self.sent.is_empty() {
            self.collect();
        }
        let address = self.sent.pop()?;
        self.out -= 1;
        Some(address)
    }

    #[inline(never)]
    fn collect(&mut self) {
        let mut common = self.pool.lock();
        let Common {
            completed,
            shift,
            options,
            places,
            ..
        } = &mut *common;
        let receivers = u64::from(options.receivers());
        while let Some(address) = completed.take() {
            let number = (address >> *shift).checked_sub(receivers);
            let owner = number.map(|number| number / u64::from(options.transmit_frames));
            let owner = owner.and_then(|owner| usize::try_from(owner).ok());
            match owner.and_then(|owner| places.get_mut(owner)) {
                Some(place) => place.sent.push(address),
                None => debug_assert!(false, "the kernel has no send frame at {address}"),
            }
        }
        completed.release();
        if let Some(place) = places.get_mut(self.place) {
            std::mem::swap(&mut place.sent, &mut self.sent);
        }
    }
}

/// The rings that a socket does not share.
pub(super) type OwnRings = (Consumer<Descriptor>, Producer<Descriptor>);

impl Rings<'_> {
    pub(super) fn own(&self, options: &XskOptions) -> io::Result<OwnRings> {
        Ok((
            Consumer::new(
                self.map(Ring::Received, options.receive_frames)?,
                self.layout(Ring::Received, options.receive_frames)?,
            )?,
            Producer::new(
                self.map(Ring::Transmit, options.transmit_frames)?,
                self.layout(Ring::Transmit, options.transmit_frames)?,
            )?,
        ))
    }

    pub(super) fn common(
        &self,
        options: &XskOptions,
    ) -> io::Result<(Producer<u64>, Consumer<u64>)> {
        Ok((
            Producer::new(
                self.map(Ring::Fill, options.fill_ring())?,
                self.layout(Ring::Fill, options.fill_ring())?,
            )?,
            Consumer::new(
                self.map(Ring::Completed, options.completion_ring())?,
                self.layout(Ring::Completed, options.completion_ring())?,
            )?,
        ))
    }
}
