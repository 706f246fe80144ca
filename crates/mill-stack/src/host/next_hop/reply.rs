//! Replies are sent to where the request came from, where the kernel resolves neighbours: it may send and receive
//! through different routers, of which the host knows none. Where the host resolves them itself, that is so for the answer to a SYN until
//! the next hop is resolved.

use super::{NextHops, Recent, Source, Way, recent_place};
use crate::host::Host;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use core::net::IpAddr;
use mill_tcp::time::Instant;
use mill_wire::ethernet::MacAddress;

impl NextHops {
    /// A frame has come from this Ethernet address.
    #[inline]
    pub(crate) const fn hear(&mut self, mac: MacAddress) {
        self.heard_from = mac;
    }

    /// The frame received last is from `remote`; replies go back to its Ethernet address, unless the kernel has
    /// resolved `remote` itself.
    pub(crate) fn note(&mut self, remote: IpAddr) {
        let mac = self.heard_from;
        let is_of_kernel = self.neighbors.is_of_kernel();
        if !is_of_kernel || !mac.is_unicast() || self.neighbors.known(remote).is_some() {
            return;
        }
        self.set_recent(remote, mac, Source::Found);
    }

    /// The frame received last is from `remote`, which opens a connection. While its next hop is asked for, answers go back to the
    /// frame's Ethernet address: a process that takes a device over has no neighbours yet, and what they say may come to another process.
    /// Nothing is learnt of it, for a router passes on segments from any address (RFC 826 and RFC 4861 questions come through none).
    pub(crate) fn answer_by_the_same_way(&mut self, remote: IpAddr, now: Instant) {
        let mac = self.heard_from;
        if self.neighbors.is_of_kernel() || !mac.is_unicast() {
            return;
        }
        let way = match self.way(remote, now) {
            // A guess of an earlier SYN, or the resolved one of a host that is reached by another way than it comes by.
            Way::To(other) if other != mac => self.look_up(remote, now),
            way => way,
        };
        if let Way::Asking(_) = way {
            self.set_recent(remote, mac, Source::Frame);
        }
    }

    /// Packets to `remote` go there until any neighbour changes, or another target takes the place.
    pub(super) fn set_recent(&mut self, remote: IpAddr, mac: MacAddress, source: Source) {
        let version = self.version();
        if let Some(recent) = self.recent.get_mut(recent_place(remote)) {
            *recent = Recent {
                target: remote,
                mac,
                version,
                source,
            };
        }
    }

    /// The next hop that was noted for `remote` a moment ago.
    fn noted(&self, remote: IpAddr) -> Option<MacAddress> {
        let recent = self.recent.get(recent_place(remote))?;
        let is_noted = recent.target == remote && recent.version == self.version();
        (is_noted && self.neighbors.is_of_kernel()).then_some(recent.mac)
    }

    /// The next hop of `remote` is looked up the next time.
    fn forget(&mut self, remote: IpAddr) {
        if let Some(recent) = self.recent.get_mut(recent_place(remote)) {
            *recent = Recent::NONE;
        }
    }
}

impl<Q: SendQueue> Host<Q> {
    /// A connection that was opened by the segment at hand: what it sends goes to where that came from, if that is known.
    pub(crate) fn reply_by_the_same_way(&mut self, index: u32) {
        if let Some(slot) = self.slots.at_mut(index)
            && let Some(mac) = self.next_hops.noted(slot.flow.remote)
        {
            slot.next_hop = mac.0;
            slot.next_hop_version = self.next_hops.version();
            slot.flags.set(SlotFlags::REPLIES);
        }
    }

    /// No answers come to the segments that the connection sends through its next hop: from now on the routes choose
    /// it.
    pub(crate) fn doubt_the_way(&mut self, index: u32) {
        if let Some(slot) = self.slots.at_mut(index)
            && slot.flags.has(SlotFlags::REPLIES)
            && slot
                .connection
                .info(self.tcp_context.config(slot.config))
                .backoff
                >= BACKOFF_TO_DOUBT
        {
            slot.flags.clear(SlotFlags::REPLIES);
            slot.next_hop_version = 0;
            self.next_hops.forget(slot.flow.remote);
        }
    }
}

/// Timeouts without an answer after which a connection's next hop is no longer trusted (Linux: `tcp_retries1`).
const BACKOFF_TO_DOUBT: u8 = 3;
