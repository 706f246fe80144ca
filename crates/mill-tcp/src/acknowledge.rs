//! Acknowledgements: when (RFC 9293 3.8.6.3, RFC 5681 4.2), and the receiver's fields of every segment.

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::receive_space::MSS_INITIAL;
use crate::segment::SegmentOut;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{SackBlocks, TcpOptions};

impl Connection {
    /// A segment with all fields of the receiving side; it counts as sent.
    pub(crate) fn make_segment(
        &mut self,
        seq: SeqNumber,
        flags: Flags,
        len: u32,
        offset: u32,
        env: &mut Env<'_>,
    ) -> SegmentOut {
        let mut options = TcpOptions {
            timestamps: self.timestamps_option(env),
            ..TcpOptions::default()
        };
        let acknowledges = len > 0 || !self.is_probe(seq, flags);
        let says_all = acknowledges && self.attach_sack(&mut options, len);
        let flags = flags | Flags::ACK | self.congestion_echo();
        let window = self.rcv.offer_window(self.shifts.rcv());
        if acknowledges {
            self.rcv.on_ack_sent();
            self.marks.on_told();
        }
        if says_all {
            self.flags.set(ConnectionFlags::ACK_NOW, false);
            self.flags.set(ConnectionFlags::DELAYED_ACK_ARMED, false);
        }
        env.shared.counters.segments_out += 1;
        SegmentOut {
            seq,
            ack: self.rcv.nxt(),
            flags,
            window,
            options,
            offset,
            len,
            mss: self.snd_mss,
            ..SegmentOut::default()
        }
    }

    /// Whether a segment without payload only asks for an answer: its number was acknowledged already. What it says
    /// besides is dropped with it, acknowledgement and blocks too (RFC 9293 3.10.7.4, first), if the window that we offer
    /// is the peer's. So it stands for no acknowledgement: if it did, two ends whose windows are both closed, and whose
    /// timers run in step, would each throw away what the other waits for.
    fn is_probe(&self, seq: SeqNumber, flags: Flags) -> bool {
        seq.is_before(self.snd.nxt()) && !flags.has_any(Flags::SYN | Flags::FIN)
    }

    /// An acknowledgement alone, if one is due.
    pub(crate) fn next_ack(&mut self, env: &mut Env<'_>) -> Option<SegmentOut> {
        if !self.flags.has(ConnectionFlags::ACK_NOW) {
            return None;
        }
        env.shared.counters.acks_out += 1;
        Some(self.make_segment(self.snd.nxt(), Flags::ACK, 0, 0, env))
    }

    /// Data arrived in order: the acknowledgement goes out now or soon.
    ///
    /// `segment_bytes` is the size of the segments that it came in.
    pub(crate) fn schedule_ack(&mut self, segment_bytes: u16, env: &Env<'_>) {
        // RFC 5681 4.2: at least every second full segment. More than one full segment is enough, as in Linux; and
        // so are two that are not small, because the path may take smaller ones by now than it did.
        let unacknowledged = self.rcv.unacknowledged();
        let is_second = segment_bytes >= MSS_INITIAL && unacknowledged > u32::from(segment_bytes);
        let is_due = unacknowledged > u32::from(self.rcv.mss()) || is_second;
        let is_quick = self.quick_acks > 0;
        self.quick_acks -= u8::from(is_quick);
        if is_due {
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        } else if is_quick {
            self.acknowledge_soon(env);
        } else {
            self.delay_ack(env);
        }
    }

    /// An acknowledgement is due: at once, or when the owner has had the opportunity to say something.
    pub(crate) fn acknowledge_soon(&mut self, env: &Env<'_>) {
        match env.config.lazy_acks {
            true => self.delay_ack(env),
            false => self.flags.set(ConnectionFlags::ACK_NOW, true),
        }
    }

    fn delay_ack(&mut self, env: &Env<'_>) {
        if !self.flags.has(ConnectionFlags::DELAYED_ACK_ARMED) {
            self.delayed_ack_at = env.tick().after(env.config.delayed_ack);
            self.flags.set(ConnectionFlags::DELAYED_ACK_ARMED, true);
        }
    }

    /// The owner has nothing to say now: an acknowledgement that waits is due. Says whether one does.
    pub fn acknowledge_now(&mut self) -> bool {
        let waits = self.flags.has(ConnectionFlags::DELAYED_ACK_ARMED);
        if waits {
            self.flags.set(ConnectionFlags::DELAYED_ACK_ARMED, false);
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
        waits
    }

    /// Adds the blocks that fit beside the payload. Says whether nothing had to be left out: otherwise an
    /// acknowledgement of its own is still due.
    fn attach_sack(&mut self, options: &mut TcpOptions, len: u32) -> bool {
        if !self.flags.has(ConnectionFlags::SACK) {
            return true;
        }
        let Some(cold) = &mut self.cold else {
            return true;
        };
        if !cold.reassembly.has_blocks() {
            return true;
        }
        // A data segment that is full has no room for options beyond those of every segment.
        let room = u32::from(self.snd_mss).saturating_sub(len);
        if len > 0 && room < SACK_BYTES_MAX {
            return false;
        }
        // RFC 2018 3: three blocks beside timestamps, else four.
        let count_max = if options.timestamps.is_some() {
            3
        } else {
            SackBlocks::COUNT_MAX
        };
        options.sack = cold.reassembly.take_blocks(count_max);
        true
    }
}

/// Bytes that blocks may take beside timestamps; without, one block more.
const SACK_BYTES_MAX: u32 = 4 + 8 * 4;

#[cfg(test)]
mod tests;
