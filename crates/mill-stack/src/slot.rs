//! The state that a host keeps for each connection.
//!
//! Bytes of an idle connection:
//!
//! | bytes | what |
//! | ---: | --- |
//! | 128 | `Connection`: the variables of TCP |
//! | 38 | `Flow`: both addresses and ports |
//! | 74 | token, generation, acknowledged bytes, pointers to what is unread and to be sent, next hop, flags |
//! | 16 | its link in the timer wheel |
//! | 4 | its place in the list of vacant slots |
//! | 11 to 21 | its entry of 8 bytes in the flow table, which is 3/8 to 3/4 full |
//! | 271 to 281 | together |
//!
//! What waits to be sent or read, and TCP's cold part, lie in pooled boxes that a connection has only while there is
//! something.

use crate::flow::Flow;
use crate::socket::{SocketError, SocketId};
use crate::unread::Unread;
use alloc::boxed::Box;
use mill_tcp::connection::Connection;

/// All of them.
mod table;

pub(crate) use table::Slots;

/// One connection of a host.
#[derive(Debug)]
pub(crate) struct Slot<Q> {
    pub(crate) connection: Connection,
    pub(crate) flow: Flow,
    pub(crate) flags: SlotFlags,
    pub(crate) token: u64,
    /// Bytes that the peer has acknowledged.
    pub(crate) acked: u64,
    pub(crate) queue: Option<Box<Q>>,
    pub(crate) unread: Unread,
    pub(crate) generation: u32,
    /// The neighbours' version in which `next_hop` was looked up.
    pub(crate) next_hop_version: u32,
    pub(crate) next_hop: [u8; 6],
    /// Bytes out of order that are counted as the host's.
    pub(crate) reassembly_bytes: u32,
    /// Which of the host's configurations is its own.
    pub(crate) config: u16,
    /// Bytes of payload in a full segment, as agreed on with the peer; 0 before that.
    pub(crate) mss_agreed: u16,
    /// The listener that accepted it.
    pub(crate) listener: u32,
    pub(crate) error: Option<SocketError>,
}

/// Bytes of a slot, by the table above.
pub(crate) const SLOT_BYTES: usize = 240;

const _: () = assert!(size_of::<Slot<crate::queue::ByteQueue>>() == SLOT_BYTES);

/// Bits of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotFlags(u16);

impl SlotFlags {
    /// The slot holds a connection.
    pub(crate) const IN_USE: u16 = 1;
    /// In the list of those that may have something to send.
    const SENDING: u16 = 1 << 1;
    /// In the list of those with changes to report to the owner.
    const READY: u16 = 1 << 2;
    /// The owner has dropped its identifier; the slot is freed when TCP has finished.
    pub(crate) const ORPHAN: u16 = 1 << 3;
    /// Not accepted yet.
    pub(crate) const UNACCEPTED: u16 = 1 << 4;
    /// The handshake is complete.
    pub(crate) const ESTABLISHED: u16 = 1 << 5;
    /// The peer has finished.
    pub(crate) const FINISHED: u16 = 1 << 6;
    /// TCP is done with it: no flow, no timer.
    pub(crate) const ENDED: u16 = 1 << 7;
    /// Waits for the address of its next hop.
    pub(crate) const PARKED: u16 = 1 << 8;

    /// Opened by a Fast Open cookie alone; the handshake is not complete.
    pub(crate) const FAST_OPEN: u16 = 1 << 9;

    /// Its frames are sent to where its first segment came from.
    pub(crate) const REPLIES: u16 = 1 << 10;

    /// Its SYN asks for a Fast Open cookie, or has one; the handshake is not complete.
    pub(crate) const FAST_OPEN_ASKED: u16 = 1 << 11;
    /// The path carries less than was agreed on.
    pub(crate) const SMALL_PATH: u16 = 1 << 12;

    pub(crate) const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    pub(crate) const fn set(&mut self, bit: u16) {
        self.0 |= bit;
    }

    pub(crate) const fn clear(&mut self, bit: u16) {
        self.0 &= !bit;
    }
}

impl<Q> Slot<Q> {
    fn vacant() -> Self {
        Self {
            connection: Connection::default(),
            flow: NO_FLOW,
            flags: SlotFlags::default(),
            token: 0,
            acked: 0,
            queue: None,
            unread: Unread::Nothing,
            generation: 0,
            next_hop_version: 0,
            next_hop: [0; 6],
            reassembly_bytes: 0,
            config: 0,
            mss_agreed: 0,
            listener: NO_LISTENER,
            error: None,
        }
    }

    pub(crate) const fn id(&self, index: u32) -> SocketId {
        SocketId {
            index,
            generation: self.generation,
        }
    }

    /// In the list of those that may have something to send, and not only because it was when it ended.
    pub(crate) const fn is_sending(&self) -> bool {
        self.flags.has(SlotFlags::SENDING) && !self.flags.has(SlotFlags::ENDED)
    }

    /// The owner drops its identifier: it is stale, and nothing more is reported.
    pub(crate) const fn abandon(&mut self) {
        self.flags.set(SlotFlags::ORPHAN);
        self.flags.clear(SlotFlags::READY);
        self.generation = self.generation.wrapping_add(1);
    }
}

/// No listener has this number.
pub(crate) const NO_LISTENER: u32 = u32::MAX;

const NO_FLOW: Flow = Flow {
    local: core::net::IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
    remote: core::net::IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
    local_port: 0,
    remote_port: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_takes_less_than_400_bytes() {
        let entry_of_flow_table = 8 * 8 / 3;
        let link_in_wheel = crate::timer::ENTRY_BYTES;
        let place_among_vacant = 4;
        let sum = SLOT_BYTES + link_in_wheel + place_among_vacant + entry_of_flow_table;
        assert_eq!(sum, 281);
        assert!(sum <= 400);
    }
}
