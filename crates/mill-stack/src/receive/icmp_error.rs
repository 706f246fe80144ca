//! ICMP errors about connections: a path carries less, or a target is unreachable (RFC 1191, RFC 8201, RFC 5461, RFC
//! 5927).

use crate::flow::Flow;
use crate::flow_table::Target;
use crate::host::Host;
use crate::host::path::headers;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::SocketError;
use mill_wire::seq::SeqNumber;

impl<Q: SendQueue> Host<Q> {
    /// A router reports that a packet of this flow, with the segment of this number, was longer than the `mtu` bytes
    /// of the next link. Returns whether it was believed: only if that segment is in flight (RFC 5927 7.2).
    pub(crate) fn on_too_big(&mut self, flow: &Flow, seq: SeqNumber, mtu: u32) -> bool {
        // RFC 8201 4: every link of IPv6 carries that much; a message with less is forged.
        if flow.remote.is_ipv6() && mtu < u32::from(mill_wire::ipv6::MTU_MIN) {
            self.counters.paths_doubted += 1;
            return false;
        }
        let Some(index) = self.connection_of(flow) else {
            return false;
        };
        let mss = u16::try_from(mtu)
            .unwrap_or(u16::MAX)
            .saturating_sub(headers(flow.remote));
        let Some(slot) = self.slots.at_mut(index) else {
            return false;
        };
        let env = &mut self.tcp_context.env(slot.config, self.now);
        if !slot.connection.on_packet_too_big(seq, mss, env) {
            self.counters.paths_doubted += 1;
            return false;
        }
        let paths = &mut self.next_hops.paths;
        if paths
            .on_packet_too_big(flow.remote, mtu, self.now)
            .is_some()
        {
            self.counters.paths_told += 1;
            // Other connections to this target see it when they send next.
            self.next_hops.outdate();
        }
        self.on_path_news(index);
        self.fit_to_path(index);
        self.slots.want_transmit(index);
        self.arm(index);
        true
    }

    /// A router or the peer says that the peer or its port can't be reached; `hard` if that is for good
    /// (RFC 1122 4.2.3.9). Says whether the flow is ours.
    pub(crate) fn on_unreachable(&mut self, flow: &Flow, seq: SeqNumber, hard: bool) -> bool {
        let Some(index) = self.connection_of(flow) else {
            return false;
        };
        let Some(slot) = self.slots.at_mut(index) else {
            return false;
        };
        let env = &mut self.tcp_context.env(slot.config, self.now);
        if slot.connection.on_unreachable(seq, hard, env) {
            slot.error = slot.error.or(Some(SocketError::Refused));
            if !slot.flags.has(SlotFlags::ESTABLISHED) {
                self.counters.failed_opens += 1;
            }
            self.slots.mark_ready(index);
            self.end(index, false);
        }
        true
    }

    pub(super) fn connection_of(&self, flow: &Flow) -> Option<u32> {
        match self.find(flow, self.flows.hash(flow)) {
            Some(Target::Connection(index)) => Some(index),
            _ => None,
        }
    }
}
