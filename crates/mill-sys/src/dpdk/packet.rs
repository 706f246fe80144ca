//! A frame in DPDK's memory (`rte_mbuf`): one piece, or a chain of them.

use super::layout::{HEADROOM, flag, mbuf, tx_offload};
use super::library::Library;
use std::ffi::c_void;
use std::ptr::NonNull;

/// A packet, which is this process's alone until it is sent. It goes back to its pool when dropped.
#[derive(Debug)]
#[repr(transparent)]
pub struct Packet(NonNull<c_void>);

// SAFETY: a packet is memory that any thread of the process may use, one at a time; pools take it from any.
unsafe impl Send for Packet {}

/// What the driver knows of a received packet's checksum of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    Unknown,
    Bad,
    Good,
    /// It is not in the packet, whose data are whole.
    Absent,
}

/// What the device is to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub is_ipv6: bool,
    pub is_tcp: bool,
    /// Bytes of the Ethernet header, of the IP header, and of TCP's.
    pub header_lens: [u16; 3],
    /// Payload bytes of the pieces that the device cuts it into; 0: it stays whole.
    pub segment_bytes: u16,
}

impl Packet {
    /// # Safety
    ///
    /// The pointer has to be to an initialised mbuf that is no other value's, with its chain.
    pub(super) unsafe fn from_raw(mbuf: NonNull<c_void>) -> Self {
        Self(mbuf)
    }

    /// For a driver, which owns it from then on.
    pub(super) fn into_raw(self) -> NonNull<c_void> {
        let mbuf = self.0;
        std::mem::forget(self);
        mbuf
    }

    #[inline]
    fn at<T>(&self, offset: usize) -> *mut T {
        self.0.as_ptr().wrapping_byte_add(offset).cast()
    }

    #[inline]
    fn field<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: an mbuf has a number of this size at the offset, aligned (`layout`).
        unsafe { self.at::<T>(offset).read() }
    }

    #[inline]
    fn set_field<T: Copy>(&mut self, offset: usize, value: T) {
        // SAFETY: as above, and the mbuf is this value's alone.
        unsafe { self.at::<T>(offset).write(value) };
    }

    /// Bytes in all of its pieces.
    pub fn total_len(&self) -> usize {
        self.field::<u32>(mbuf::PKT_LEN) as usize
    }

    /// Whether it is in one piece.
    pub fn is_whole(&self) -> bool {
        self.field::<u16>(mbuf::NB_SEGS) == 1
    }

    /// The bytes of its first piece.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.field::<u16>(mbuf::DATA_LEN);
        self.place(len)
    }

    /// The room of its first piece, from where its bytes begin. What is in it is undefined, but initialised.
    #[inline]
    pub fn room_mut(&mut self) -> &mut [u8] {
        let all = self.field::<u16>(mbuf::BUF_LEN);
        let len = all.saturating_sub(self.field::<u16>(mbuf::DATA_OFF));
        self.place(len)
    }

    /// So many bytes from where those of the first piece begin; none if they are not all in its memory.
    #[inline]
    fn place(&mut self, len: u16) -> &mut [u8] {
        let (start, all) = (
            self.field::<u16>(mbuf::DATA_OFF),
            self.field::<u16>(mbuf::BUF_LEN),
        );
        if usize::from(start) + usize::from(len) > usize::from(all) {
            return &mut [];
        }
        let memory = self
            .field::<*mut u8>(mbuf::BUF_ADDR)
            .wrapping_add(usize::from(start));
        // SAFETY: the memory of a piece, BUF_LEN bytes at BUF_ADDR, is mapped and the piece's alone, and the range is inside.
        unsafe { std::slice::from_raw_parts_mut(memory, usize::from(len)) }
    }

    /// Appends the bytes of all of its pieces.
    pub fn gather(&self, into: &mut Vec<u8>) {
        let mut next = Some(self.0);
        for _ in 0..self.field::<u16>(mbuf::NB_SEGS) {
            let Some(piece) = next else { return };
            // SAFETY: a piece of this packet's chain; the value is not dropped.
            let mut piece = std::mem::ManuallyDrop::new(unsafe { Self::from_raw(piece) });
            into.extend_from_slice(piece.bytes_mut());
            next = NonNull::new(piece.field::<*mut c_void>(mbuf::NEXT));
        }
    }

    /// What the driver knows of its checksum.
    pub fn checksum(&self) -> Checksum {
        let flags = self.field::<u64>(mbuf::OL_FLAGS);
        match (flags & flag::RX_L4_GOOD != 0, flags & flag::RX_L4_BAD != 0) {
            (false, false) => Checksum::Unknown,
            (false, true) => Checksum::Bad,
            (true, false) => Checksum::Good,
            (true, true) => Checksum::Absent,
        }
    }

    /// Makes it an empty packet in one piece, as `rte_pktmbuf_reset` does with one from a pool.
    pub(super) fn reset(&mut self) {
        self.set_field::<u32>(mbuf::PKT_LEN, 0);
        self.set_field::<u64>(mbuf::TX_OFFLOAD, 0);
        self.set_field::<u16>(mbuf::VLAN_TCI, 0);
        self.set_field::<u16>(mbuf::VLAN_TCI_OUTER, 0);
        self.set_field::<u16>(mbuf::NB_SEGS, 1);
        self.set_field::<u16>(mbuf::PORT, u16::MAX);
        self.set_field::<u64>(mbuf::OL_FLAGS, 0);
        self.set_field::<u32>(mbuf::PACKET_TYPE, 0);
        let room = self.field::<u16>(mbuf::BUF_LEN);
        self.set_field::<u16>(mbuf::DATA_OFF, HEADROOM.min(room));
        self.set_field::<u16>(mbuf::DATA_LEN, 0);
    }

    /// Says how many bytes of the room are the packet's; no more than there are.
    pub fn set_len(&mut self, len: usize) {
        let len = len.min(self.room_mut().len());
        self.set_field(mbuf::DATA_LEN, u16::try_from(len).unwrap_or(u16::MAX));
        self.set_field(mbuf::PKT_LEN, u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// One packet of pieces, each of which is a packet in one piece; `None` of none.
    pub fn chained(pieces: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut pieces = pieces.into_iter();
        let mut first = pieces.next()?;
        let mut last = first.0;
        for piece in pieces {
            let (count, len) = (
                first.field::<u16>(mbuf::NB_SEGS),
                first.field::<u32>(mbuf::PKT_LEN),
            );
            first.set_field(mbuf::NB_SEGS, count + 1);
            first.set_field(
                mbuf::PKT_LEN,
                len + u32::from(piece.field::<u16>(mbuf::DATA_LEN)),
            );
            let piece = piece.into_raw();
            let next = last.as_ptr().wrapping_byte_add(mbuf::NEXT);
            // SAFETY: the last piece of the chain, whose `next` is null so far; the chain owns the new one.
            unsafe { next.cast::<NonNull<c_void>>().write(piece) };
            last = piece;
        }
        Some(first)
    }

    /// Says what the device is to do with it.
    pub fn set_work(&mut self, work: Work) {
        let [l2, l3, l4] = work.header_lens.map(u64::from);
        let segment = u64::from(work.segment_bytes);
        self.set_field(
            mbuf::TX_OFFLOAD,
            l2 << tx_offload::L2_SHIFT
                | l3 << tx_offload::L3_SHIFT
                | l4 << tx_offload::L4_SHIFT
                | segment << tx_offload::SEGMENT_SHIFT,
        );
        let mut flags = match work.is_tcp {
            true => flag::TX_TCP_CKSUM,
            false => flag::TX_UDP_CKSUM,
        };
        flags |= match work.is_ipv6 {
            true => flag::TX_IPV6,
            false => flag::TX_IPV4,
        };
        if segment > 0 {
            flags |= flag::TX_TCP_SEG;
            // Each piece has a length of its own, which the checksum of an IPv4 header covers.
            flags |= if work.is_ipv6 { 0 } else { flag::TX_IP_CKSUM };
        }
        self.set_field(mbuf::OL_FLAGS, flags);
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        if let Ok(library) = Library::get() {
            let mut mbuf = self.0.as_ptr();
            // SAFETY: one packet, which is this value's alone.
            unsafe { (library.free_packets)(&raw mut mbuf, 1) };
        }
    }
}

/// Gives packets back to their pools.
pub fn release(packets: &mut Vec<Packet>) {
    let count = packets.len();
    if count > 0
        && let Ok(library) = Library::get()
    {
        // SAFETY: an empty vector's elements are not dropped, which the pools own from here on.
        unsafe { packets.set_len(0) };
        let first = packets.as_mut_ptr().cast::<*mut c_void>();
        // SAFETY: so many packets lie there, each a pointer, that were this vector's.
        unsafe { (library.free_packets)(first, u32::try_from(count).unwrap_or(u32::MAX)) };
    }
}
