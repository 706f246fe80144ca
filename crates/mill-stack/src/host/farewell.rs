//! Tells the peers of connections that another host had at this address, and that ended without a word: its process was killed.

use super::Host;
use super::tables::NextNumbers;
use crate::queue::SendQueue;
use mill_tcp::segment::SegmentOut;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::Timestamps;

impl<Q: SendQueue> Host<Q> {
    /// Sends two segments for a connection of which this is known, unless its flow is this host's meanwhile:
    ///
    /// - RST with the number that the peer expects, as far as it is known. A connection that was idle ends with it (RFC 5961 3.2).
    /// - An acknowledgement of a number before the window, as a keep-alive probe has it (RFC 9293 3.8.4). A peer that has exchanged
    ///   something since then answers it, and gets a reset with the number that it has said. It has timestamps: a peer that has
    ///   agreed on them drops a segment without (RFC 7323 3.2).
    ///
    /// Some peers (FreeBSD) also drop one without text whose timestamp is old, and the last one of ours is not known: `timestamp` is to
    /// be 0 at one time and [`OTHER_TIMESTAMP`] at another, one of which is not old.
    pub fn tell_ended(&mut self, numbers: &NextNumbers, timestamp: u32) {
        let flow = numbers.flow;
        let hash = self.flows.hash(&flow);
        if self.flows.find(&self.slots, &flow, hash).is_some() {
            return;
        }
        let reset = SegmentOut {
            seq: numbers.snd_nxt,
            flags: Flags::RST,
            ..SegmentOut::default()
        };
        let mut probe = SegmentOut {
            seq: numbers.snd_nxt - PROBE_BEFORE,
            ack: numbers.rcv_nxt,
            flags: Flags::ACK,
            ..SegmentOut::default()
        };
        probe.options.timestamps = Some(Timestamps {
            value: timestamp,
            echo: 0,
        });
        self.tcp_context.shared.counters.resets_out += 1;
        self.send_own_reset(flow, reset);
        self.answers.push_own(flow, probe);
    }
}

/// Half of all values after 0.
pub const OTHER_TIMESTAMP: u32 = 1 << 31;

/// How far before what was sent last the number of a probe lies: outside of any window, however much was sent since.
const PROBE_BEFORE: u32 = 1 << 30;
