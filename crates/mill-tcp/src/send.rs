//! Data: new, lost, or to probe with.

use crate::config::Algorithm;
use crate::connection::{Cold, Connection, ConnectionFlags};
use crate::env::Env;
use crate::nagle::{Plan, Room};
use crate::recovery::Phase;
use crate::rto::timer::TimerKind;
use crate::scoreboard::Moment;
use crate::segment::{Ecn, SegmentOut};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;

/// Messages that share no segment with the next one.
mod message;

#[cfg(test)]
mod tests;

/// The sender's part of a segment; the fields of the receiving side are added to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    pub(crate) seq: SeqNumber,
    /// Payload bytes.
    pub(crate) len: u32,
    pub(crate) flags: Flags,
    pub(crate) is_retransmission: bool,
}

impl Connection {
    /// The next segment with data or FIN, or a probe: what is lost first, then what is new. `queued` are the bytes
    /// of the owner's queue, whose first one is the first that is not acknowledged.
    #[inline]
    pub(crate) fn next_data(&mut self, queued: u64, env: &mut Env<'_>) -> Option<Draft> {
        if !self.state.may_retransmit() && !self.is_fast_open() {
            return None;
        }
        let unsent = self.unsent(queued);
        // Of them, those that one segment may have in common.
        let together = self.until_message_end(unsent);
        if self.flags.has(ConnectionFlags::PROBE_DUE) {
            return Some(self.next_window_probe(unsent, env));
        }
        if let Some(draft) = self.next_retransmission(together, env) {
            return Some(draft);
        }
        if let Some(draft) = self.next_new_data(unsent, together, env) {
            return Some(draft);
        }
        self.give_up_frto(unsent, env)
    }

    /// Bytes of the queue that were never sent; more than 32 bits of them are as good as 2^30.
    pub(crate) fn unsent(&self, queued: u64) -> u32 {
        let fin = u64::from(self.flags.has(ConnectionFlags::FIN_SENT));
        let sent = u64::from(self.snd.in_flight()) - fin;
        debug_assert!(
            queued >= sent,
            "{queued} queued, {sent} sent and not acknowledged"
        );
        u32::try_from(queued.saturating_sub(sent)).unwrap_or(1 << 30)
    }

    /// FIN is to be sent behind the queue, and was not.
    pub(crate) fn fin_waits(&self) -> bool {
        self.flags.has(ConnectionFlags::FIN_QUEUED) && !self.flags.has(ConnectionFlags::FIN_SENT)
    }

    /// The sender's part with all fields of the receiving side.
    pub(crate) fn finish(&mut self, draft: &Draft, env: &mut Env<'_>) -> SegmentOut {
        let offset = draft.seq.since(self.snd.una());
        let offset = u32::try_from(offset).unwrap_or(0);
        let mut segment = self.make_segment(draft.seq, draft.flags, draft.len, offset, env);
        segment.is_retransmission = draft.is_retransmission;
        if draft.len > u32::from(self.snd_mss) && !draft.is_retransmission {
            segment.mss = self.frame_mss(draft);
        }
        // RFC 3168 6.1.4 to 6.1.6: neither retransmissions, probes nor acknowledgements are marked as capable.
        if draft.len > 0 && !draft.is_retransmission && self.is_ecn_capable() {
            segment.ecn = Ecn::Capable0;
        }
        segment
    }

    /// What is lost (RFC 6675 4, NextSeg (1)), or a loss probe.
    #[inline]
    fn next_retransmission(&mut self, unsent: u32, env: &mut Env<'_>) -> Option<Draft> {
        let cold = self.cold.as_ref()?;
        let is_probe_due = cold.recovery.is_loss_probe_due();
        if !is_probe_due && (cold.scoreboard.lost_bytes() == 0 || self.is_paced_out(env)) {
            return None;
        }
        let mut cold = self.cold.take()?;
        // A probe whose time has passed, because losses were found before it left, gives way to them.
        let mut draft = None;
        if is_probe_due {
            draft = self.next_loss_probe(&mut cold, unsent, env);
        }
        if draft.is_none() && cold.scoreboard.lost_bytes() > 0 {
            draft = self.resend_lost(&mut cold, unsent, env);
        }
        self.cold = Some(cold);
        draft
    }

    fn resend_lost(&mut self, cold: &mut Cold, unsent: u32, env: &mut Env<'_>) -> Option<Draft> {
        if cold.recovery.is_frto_sending() {
            // RFC 5682 2.1 step 2 (b): new data in place of retransmissions, if there is any that may be sent; then
            // step 3 waits for what becomes of it.
            let may_send = unsent > 0 && self.snd.window_room() > 0;
            if may_send || cold.recovery.has_sent_since(self.snd.nxt()) {
                return None;
            }
            cold.recovery.end_frto();
        }
        let mss = u32::from(self.snd_mss);
        let entry = cold.scoreboard.next_lost()?;
        let in_flight = self.pipe(cold);
        let room = self.congestion.room(in_flight);
        let segment_max = match self.may_not_be_cut() {
            true => mss,
            false => env.segment_bytes_max.max(mss),
        };
        let len = whole_segments(entry.len(), room.min(segment_max), mss)?;
        let window = self.snd.window_end().since(entry.start);
        let len = match u32::try_from(window) {
            Ok(window) if window > 0 => len.min(window),
            // A window that shrank: its first byte is asked for all the same (RFC 9293 3.8.6).
            _ if entry.start == self.snd.una() => len.min(mss),
            _ => return None,
        };
        if entry.start == self.snd.una() {
            cold.recovery.on_front_resent(entry.at);
        }
        cold.scoreboard.resend_lost(len, Moment::of(env.now));
        if cold.congestion.bbr.is_some() {
            let sent = (entry.start, entry.start + len);
            self.note_departure(cold, sent, in_flight, env);
        }
        if Self::is_paced(env) {
            self.pace(cold, len, in_flight, env);
        }
        self.note_usage(cold, self.pipe(cold), false);
        cold.recovery.on_sent(len);
        let counters = &mut env.shared.counters;
        counters.fast_retransmits += u64::from(cold.recovery.phase() == Phase::Recovery);
        if entry.start == self.snd.una() && !self.timer.runs_as(TimerKind::Reordering) {
            self.arm_timeout(env);
        }
        Some(self.draft_again(cold, entry.start, len, unsent, env))
    }

    /// New data was to tell whether the timeout was spurious (RFC 5682 2.1 step 2), but none may leave, and
    /// nothing is in flight that would be acknowledged.
    #[inline]
    fn give_up_frto(&mut self, unsent: u32, env: &mut Env<'_>) -> Option<Draft> {
        let cold = self.cold.as_ref()?;
        if !cold.recovery.is_frto_sending() || cold.scoreboard.pipe() > 0 {
            return None;
        }
        let mut cold = self.cold.take()?;
        cold.recovery.end_frto();
        let draft = self.resend_lost(&mut cold, unsent, env);
        self.cold = Some(cold);
        draft
    }

    /// A segment of `len` sequence numbers once more; FIN is the last of them if it was sent there.
    pub(crate) fn draft_again(
        &self,
        cold: &mut Cold,
        seq: SeqNumber,
        len: u32,
        unsent: u32,
        env: &mut Env<'_>,
    ) -> Draft {
        self.note_resent(cold, len, env);
        let mss = u32::from(self.snd_mss);
        env.shared.counters.retransmitted += u64::from(len.div_ceil(mss));
        let is_last = seq + len == self.snd.nxt();
        let has_fin = is_last && self.flags.has(ConnectionFlags::FIN_SENT);
        let payload = len - u32::from(has_fin);
        let mut flags = Flags::default();
        if self.is_pushed(payload, is_last && unsent == 0) {
            flags |= Flags::PSH;
        }
        if has_fin {
            flags |= Flags::FIN;
        }
        Draft {
            seq,
            len: payload,
            flags,
            is_retransmission: true,
        }
    }

    /// RFC 9293 3.9.1.2: PSH is set at least on the last of the queue. As in Linux it also ends what leaves as
    /// several segments at once: no more of them follow directly, so that receive offload may pass them up.
    fn is_pushed(&self, len: u32, is_last: bool) -> bool {
        len > u32::from(self.snd_mss) || (is_last && len > 0)
    }

    /// New data within the windows (RFC 5681 3.1, RFC 9293 3.7.4), FIN with the last of it where possible.
    #[inline]
    fn next_new_data(&mut self, unsent: u32, together: u32, env: &mut Env<'_>) -> Option<Draft> {
        let fin_waits = self.fin_waits();
        self.flags.set(ConnectionFlags::APP_LIMITED, unsent == 0);
        if unsent == 0 {
            self.flags.set(ConnectionFlags::PUSH_DUE, false);
        }
        let is_paced = Self::is_paced(env);
        if unsent == 0 && env.config.congestion == Algorithm::Bbr {
            self.note_limited();
        }
        if unsent == 0 && !fin_waits {
            return None;
        }
        if is_paced && unsent > 0 && self.is_paced_out(env) {
            return None;
        }
        let is_first = self.snd.is_all_acknowledged();
        let pipe = self.cold.as_ref().map_or(0, |cold| self.pipe(cold));
        let mut room = Room {
            unsent: together,
            is_message: together < unsent,
            window: self.snd.window_room(),
            congestion: self.congestion.room(pipe),
            segment_max: env.segment_bytes_max,
        };
        if is_paced && room.window < self.snd_mss.into() && room.congestion > 0 {
            self.note_peer_limited();
        }
        if is_paced && let Some(quantum) = self.pacing_quantum(env) {
            room.segment_max = room.segment_max.min(quantum).max(self.snd_mss.into());
        }
        if self.may_not_be_cut() {
            room.segment_max = self.snd_mss.into();
        }
        let mut may_be_idle = is_first;
        if self.path_probe_bytes(&room).is_some() {
            if core::mem::take(&mut may_be_idle) {
                room.congestion = self.restart_after_idle(env);
            }
            if let Some(len) = self.path_probe_bytes(&room) {
                return Some(self.send_path_probe(len, env));
            }
        }
        let cold = self.cold.as_deref();
        if cold.is_some_and(|cold| cold.scoreboard.is_full()) {
            return None;
        }
        let mut plan = match unsent {
            // FIN alone does not wait for the congestion window, as in Linux.
            0 if room.window > 0 => Plan::Send(0),
            0 => Plan::Wait,
            _ => self.plan(cold, &room),
        };
        if may_be_idle && matches!(plan, Plan::Send(len) if len > 0) {
            room.congestion = self.restart_after_idle(env);
            plan = self.plan(self.cold.as_deref(), &room);
        }
        match plan {
            Plan::Send(len) => {
                let has_fin = fin_waits && len == unsent && room.window > len;
                Some(self.send_new(len, has_fin, unsent - len, env))
            }
            Plan::Congested => {
                if let Some(mut cold) = self.cold.take() {
                    self.note_usage(&mut cold, pipe, true);
                    self.cold = Some(cold);
                }
                None
            }
            Plan::Wait => {
                if is_first {
                    self.arm_persist(env);
                }
                None
            }
        }
    }

    /// `len` bytes of new data leave, and FIN behind them; so many bytes are left.
    pub(crate) fn send_new(
        &mut self,
        len: u32,
        has_fin: bool,
        left: u32,
        env: &mut Env<'_>,
    ) -> Draft {
        let seq = self.snd.nxt();
        let end = seq + len + u32::from(has_fin);
        debug_assert!(end.is_after(seq));
        if self.is_persisting() {
            // From here on the acknowledgement of this is what is waited for.
            self.timer.disarm();
            self.timer.end_backoff();
        }
        let mut flags = Flags::default();
        let is_last = left == 0;
        let ends_message = self.is_message_end(end);
        if self.is_pushed(len, is_last || ends_message) {
            flags |= Flags::PSH;
        }
        if has_fin {
            flags |= Flags::FIN;
            self.flags.set(ConnectionFlags::FIN_SENT, true);
        }
        if len > 0 {
            flags |= self.take_reduction();
        }
        let mut cold = self.cold.take().unwrap_or_else(|| env.shared.pool.take());
        let is_probe = cold.path.is_probe_end(end);
        let is_small = has_fin || !len.is_multiple_of(self.snd_mss.into());
        // A message does not share an entry with the next, so that they are not sent again together either.
        let may_join = !is_small && !is_probe && !ends_message;
        let is_paced = Self::is_paced(env);
        let in_flight = if is_paced { self.pipe(&cold) } else { 0 };
        cold.scoreboard
            .push(seq, end, may_join, Moment::of(env.now));
        if env.config.congestion == Algorithm::Bbr && !is_probe {
            self.note_departure(&mut cold, (seq, end), in_flight, env);
        }
        if is_paced && !is_probe {
            self.pace(&mut cold, end - seq, in_flight, env);
        }
        self.snd.on_sent(end);
        self.sent_at = env.tick();
        if is_small && !is_probe {
            cold.small_end = Some(end);
        }
        if is_last {
            // What is written from now on is held again.
            self.flags.set(ConnectionFlags::PUSH_DUE, false);
        }
        cold.recovery.on_sent(len);
        let flight_bytes = self.pipe(&cold);
        self.note_usage(&mut cold, flight_bytes, false);
        self.arm_after_send(&cold, env);
        self.cold = Some(cold);
        Draft {
            seq,
            len,
            flags,
            is_retransmission: false,
        }
    }

    /// The path takes only smaller segments now: what is in flight is sent again in such ones. That says nothing of
    /// congestion (RFC 1191 6.3, RFC 8201 5.4).
    pub(crate) fn on_smaller_mss(&mut self, _env: &mut Env<'_>) {
        let Some(mut cold) = self.cold.take() else {
            return;
        };
        cold.scoreboard.mark_larger_lost(self.snd_mss.into());
        if cold.scoreboard.lost_bytes() > 0 {
            cold.recovery.forget_loss_probe();
            if cold.recovery.phase() == Phase::Open {
                cold.recovery.enter_loss_by_size(self.snd.nxt());
            }
        }
        self.congestion.on_mss(self.snd_mss.into());
        self.cold = Some(cold);
    }
}

/// As many of `len` bytes as `room` takes in whole segments, or the rest of them; `None` if there is no room for one.
fn whole_segments(len: u32, room: u32, mss: u32) -> Option<u32> {
    if len <= room {
        return Some(len);
    }
    let whole = room - room % mss;
    (whole > 0).then_some(whole)
}
