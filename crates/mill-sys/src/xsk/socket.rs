//! Making an AF_XDP socket, and reading its state.

use super::ring::{Descriptor, Layout};
use super::{Copying, XskOptions};
use crate::memory::SharedMemory;
use crate::memory::frames::Frames;
use crate::memory::mapping::Mapping;
use crate::process::check;
use crate::socket::set_option;
use std::io;
use std::ops::Add;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A call that failed, with its error.
#[derive(Debug)]
pub struct XskError {
    pub call: &'static str,
    pub error: io::Error,
}

/// The kernel's counters (xdp_statistics of if_xdp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskStatistics {
    /// Frames lost because they were too long, or because there was no slot for them.
    pub dropped: u64,
    /// Invalid entries of the fill ring.
    pub strange_filled: u64,
    /// Invalid entries of the transmit ring.
    pub strange_transmitted: u64,
    /// Further frames lost because the receive ring was full.
    pub ring_full: u64,
    /// Times that a frame found no slot.
    pub no_place: u64,
    /// Calls in which there was nothing to send.
    pub nothing_to_send: u64,
}

impl Add for XskStatistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            dropped: self.dropped + other.dropped,
            strange_filled: self.strange_filled + other.strange_filled,
            strange_transmitted: self.strange_transmitted + other.strange_transmitted,
            ring_full: self.ring_full + other.ring_full,
            no_place: self.no_place + other.no_place,
            nothing_to_send: self.nothing_to_send + other.nothing_to_send,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    Fill,
    Received,
    Transmit,
    Completed,
}

/// The kernel's offsets of the rings' parts.
pub(super) struct Rings<'a> {
    socket: BorrowedFd<'a>,
    offsets: libc::xdp_mmap_offsets,
}

/// Makes a socket at a queue of an interface, with its rings, over `memory`. Takes CAP_NET_RAW. It receives nothing
/// until a program redirects frames to it. EBUSY if the queue has a socket already, or had one a moment ago.
pub fn create(
    interface: u32,
    queue: u32,
    memory: &SharedMemory,
    options: &XskOptions,
) -> Result<OwnedFd, XskError> {
    let needed = options
        .memory_bytes()
        .and_then(|needed| {
            if needed > memory.len() {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            Ok(u64::from(options.frame_bytes) * u64::from(options.frames()))
        })
        .map_err(failed("XskOptions"))?;
    let socket = socket()?;
    let start = memory.start();
    let region = libc::xdp_umem_reg {
        addr: u64::try_from(start.expose_provenance().get()).unwrap_or_default(),
        len: needed,
        chunk_size: options.frame_bytes,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    let fd = socket.as_fd();
    set(fd, libc::XDP_UMEM_REG, &region).map_err(failed("setsockopt(XDP_UMEM_REG)"))?;
    set(fd, libc::XDP_UMEM_FILL_RING, &options.fill_ring())
        .map_err(failed("setsockopt(XDP_UMEM_FILL_RING)"))?;
    set(
        fd,
        libc::XDP_UMEM_COMPLETION_RING,
        &options.completion_ring(),
    )
    .map_err(failed("setsockopt(XDP_UMEM_COMPLETION_RING)"))?;
    make_own_rings(fd, options)?;
    fill_first(fd, memory, options).map_err(failed("mmap(AF_XDP)"))?;
    bind(fd, (interface, queue), flags_of(options), None).map_err(failed("bind(AF_XDP)"))?;
    allow_long_calls(fd, options);
    Ok(socket)
}

/// Gives the kernel slots for receiving before the driver looks for some: without copies it takes them when a program is
/// attached, and all frames of the queue, the kernel's too, are lost until it has any. Not every driver can be told
/// later that there are some: igb wakes the interrupt that sends (`igb_xsk_wakeup`), which only with half of its queues
/// or more is also the one that receives (`igb_set_flag_queue_pairs`).
fn fill_first(
    socket: BorrowedFd<'_>,
    memory: &SharedMemory,
    options: &XskOptions,
) -> io::Result<()> {
    let (mut fill, _) = Rings::of(socket)?.common(options)?;
    let memory = SharedMemory::open(memory.as_fd().try_clone_to_owned()?)?;
    let frame_bytes = options.frame_bytes as usize;
    let mut frames = Frames::inherited(memory, frame_bytes, options.frames())?;
    let first = options.receivers_of(0).take(FILLED_FIRST);
    for number in first {
        // They are the kernel's already where a former try to bind has failed: the rings went with its socket, and the
        // memory stayed.
        let _ = frames.give(number);
        let is_put = fill.put(u64::from(number) * u64::from(options.frame_bytes));
        debug_assert!(is_put, "the ring has room for all receive frames");
    }
    fill.publish();
    Ok(())
}

/// As many as the rings that most drivers begin with: 256 slots (igb, virtio_net) or 512 (i40e).
const FILLED_FIRST: usize = 512;

/// Makes a further socket at the queue of `first`, which [`create`] has made with the same `options`: over its memory,
/// with its fill and completion rings.
pub fn create_sharing(
    first: BorrowedFd<'_>,
    interface: u32,
    queue: u32,
    options: &XskOptions,
) -> Result<OwnedFd, XskError> {
    let socket = socket()?;
    let fd = socket.as_fd();
    make_own_rings(fd, options)?;
    // Everything else is taken from the first socket.
    bind(fd, (interface, queue), libc::XDP_SHARED_UMEM, Some(first))
        .map_err(failed("bind(AF_XDP)"))?;
    allow_long_calls(fd, options);
    Ok(socket)
}

fn socket() -> Result<OwnedFd, XskError> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes numbers.
    let number = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    check(number).map_err(failed("socket(AF_XDP)"))?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn make_own_rings(socket: BorrowedFd<'_>, options: &XskOptions) -> Result<(), XskError> {
    set(socket, libc::XDP_RX_RING, &options.receive_frames)
        .map_err(failed("setsockopt(XDP_RX_RING)"))?;
    set(socket, libc::XDP_TX_RING, &options.transmit_frames)
        .map_err(failed("setsockopt(XDP_TX_RING)"))
}

/// Linux before 6.17 lacks the option, and sends 32 frames a call.
fn allow_long_calls(socket: BorrowedFd<'_>, options: &XskOptions) {
    let _ = set(socket, XDP_MAX_TX_SKB_BUDGET, &options.transmit_frames);
}

/// The number of frames that a call may send in copy mode, up to the size of the ring (if_xdp.h, Linux 6.17).
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

fn flags_of(options: &XskOptions) -> u16 {
    let copying = match options.copying {
        Copying::AsDriverCan => 0,
        Copying::Always => libc::XDP_COPY,
        Copying::Never => libc::XDP_ZEROCOPY,
    };
    let pieces = if options.in_pieces {
        libc::XDP_USE_SG
    } else {
        0
    };
    libc::XDP_USE_NEED_WAKEUP | copying | pieces
}

fn bind(
    socket: BorrowedFd<'_>,
    (interface, queue): (u32, u32),
    flags: u16,
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let shared = shared.map_or(0, |shared| shared.as_raw_fd());
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).expect("AF_XDP is 44"),
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: u32::try_from(shared).map_err(io::Error::other)?,
    };
    let size = size_of::<libc::sockaddr_xdp>();
    let size = libc::socklen_t::try_from(size).expect("an address is small");
    let pointer = (&raw const address).cast();
    // SAFETY: pointer and size describe `address`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), pointer, size) })
}

impl<'a> Rings<'a> {
    pub(super) fn of(socket: BorrowedFd<'a>) -> io::Result<Self> {
        let nowhere = libc::xdp_ring_offset {
            producer: 0,
            consumer: 0,
            desc: 0,
            flags: 0,
        };
        let mut offsets = libc::xdp_mmap_offsets {
            rx: nowhere,
            tx: nowhere,
            fr: nowhere,
            cr: nowhere,
        };
        get(socket, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        Ok(Self { socket, offsets })
    }

    pub(super) fn layout(&self, ring: Ring, count: u32) -> io::Result<Layout> {
        let offsets = match ring {
            Ring::Fill => &self.offsets.fr,
            Ring::Received => &self.offsets.rx,
            Ring::Transmit => &self.offsets.tx,
            Ring::Completed => &self.offsets.cr,
        };
        let inside = |offset| usize::try_from(offset).map_err(io::Error::other);
        Ok(Layout {
            producer: inside(offsets.producer)?,
            consumer: inside(offsets.consumer)?,
            flags: inside(offsets.flags)?,
            entries: inside(offsets.desc)?,
            count,
        })
    }

    /// Fails if the ring has fewer entries.
    pub(super) fn map(&self, ring: Ring, count: u32) -> io::Result<Mapping> {
        let (at, entry_bytes) = match ring {
            Ring::Fill => (libc::XDP_UMEM_PGOFF_FILL_RING, size_of::<u64>()),
            Ring::Completed => (libc::XDP_UMEM_PGOFF_COMPLETION_RING, size_of::<u64>()),
            Ring::Received => (RECEIVED_AT, size_of::<Descriptor>()),
            Ring::Transmit => (TRANSMIT_AT, size_of::<Descriptor>()),
        };
        let len = self.layout(ring, count)?.entries + count as usize * entry_bytes;
        Mapping::new(self.socket, at, len, true)
    }
}

/// Offsets of the receive and transmit rings for mmap(2) (XDP_PGOFF_RX_RING and XDP_PGOFF_TX_RING of if_xdp.h).
const RECEIVED_AT: u64 = 0;
const TRANSMIT_AT: u64 = 0x8000_0000;

/// Has the kernel process the transmit ring.
pub(super) fn send(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no bytes and no address are handed over.
    check(unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    })
}

/// Wakes a sleeping driver to process the fill ring. The result does not matter.
#[cold]
pub(super) fn wake_receiver(socket: BorrowedFd<'_>) {
    // SAFETY: no bytes and no address are handed over.
    unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
}

pub(super) fn is_zero_copy(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut options = libc::xdp_options { flags: 0 };
    get(socket, libc::XDP_OPTIONS, &mut options)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

pub(super) fn statistics(socket: BorrowedFd<'_>) -> io::Result<XskStatistics> {
    let mut counted = libc::xdp_statistics {
        rx_dropped: 0,
        rx_invalid_descs: 0,
        tx_invalid_descs: 0,
        rx_ring_full: 0,
        rx_fill_ring_empty_descs: 0,
        tx_ring_empty_descs: 0,
    };
    get(socket, libc::XDP_STATISTICS, &mut counted)?;
    Ok(XskStatistics {
        dropped: counted.rx_dropped,
        strange_filled: counted.rx_invalid_descs,
        strange_transmitted: counted.tx_invalid_descs,
        ring_full: counted.rx_ring_full,
        no_place: counted.rx_fill_ring_empty_descs,
        nothing_to_send: counted.tx_ring_empty_descs,
    })
}

fn set<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    set_option(socket, libc::SOL_XDP, option, value)
}

/// Reads an option. Fields that an older kernel lacks keep their values.
fn get<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut size = libc::socklen_t::try_from(size_of::<T>()).expect("options are small");
    let pointer = std::ptr::from_mut(value).cast();
    let size = &raw mut size;
    // SAFETY: pointer and size describe `value`, plain numbers, which outlives the call.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, pointer, size) })
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> XskError {
    move |error| XskError { call, error }
}
