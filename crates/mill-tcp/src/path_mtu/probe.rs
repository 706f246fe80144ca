//! Larger segments are tried with data, one at a time (RFC 4821 7).
//!
//! ```text
//! want_larger          next_new_data            acknowledged: PathNews::Arrived, segments are larger from now on
//!    wanted   ------------>   out   ------------>
//!                                               lost: PathNews::Lost, and nothing is concluded about congestion
//! ```

use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::nagle::Room;
use crate::path_mtu::{PathNews, options_bytes};
use crate::recovery::{Phase, Progress};
use crate::send::Draft;
use mill_wire::seq::SeqNumber;

/// The search of one connection, while it has data in flight.
#[derive(Debug, Default)]
pub(crate) struct PathSearch {
    /// Payload bytes of the probe that is to leave, or is out; 0 is none.
    pub(super) probe_bytes: u16,
    /// Where the probe that is out ends.
    pub(super) probe_end: Option<SeqNumber>,
    /// Segments of so many bytes of payload seem not to arrive: smaller ones are being tried.
    pub(super) suspected: Option<u16>,
    /// For the owner.
    pub(super) news: Option<PathNews>,
}

impl PathSearch {
    /// The owner has an event to handle.
    #[inline]
    pub(crate) const fn has_news(&self) -> bool {
        self.news.is_some()
    }

    /// Smaller segments are being tried.
    #[inline]
    pub(crate) const fn is_suspicious(&self) -> bool {
        self.suspected.is_some()
    }

    #[inline]
    pub(crate) const fn is_probe_out(&self) -> bool {
        self.probe_end.is_some()
    }

    /// Whether what ends there is the probe.
    #[inline]
    pub(crate) fn is_probe_end(&self, end: SeqNumber) -> bool {
        self.probe_end == Some(end)
    }
}

impl Connection {
    /// Asks for a probe of `mss` (the MTU less all headers but TCP options), which leaves when the windows have room for it.
    /// It is no longer than `agreed`, what `mss()` gave when the connection was established: the peer takes no more.
    /// `queued` are the bytes of the owner's queue: so many have to follow the probe that its loss would be noticed at
    /// once. Says whether there is to be one.
    pub fn want_larger(&mut self, mss: u16, agreed: u16, queued: u64, env: &mut Env<'_>) -> bool {
        let probe_bytes = mss.saturating_sub(options_bytes(self)).min(agreed);
        if !env.config.mtu_probing || probe_bytes <= self.snd_mss || !self.state.may_retransmit() {
            return false;
        }
        if self.unsent(queued) < u32::from(probe_bytes) + self.bytes_behind_probe() {
            return false;
        }
        let cold = self.cold_part(env);
        let is_calm = cold.recovery.phase() == Phase::Open;
        let search = &mut cold.path;
        let is_busy = search.probe_bytes > 0 || search.suspected.is_some();
        if !is_calm || is_busy || search.news.is_some() {
            return false;
        }
        search.probe_bytes = probe_bytes;
        true
    }

    /// RFC 4821 7.4: bytes that follow a probe, for its loss to be found without a timeout.
    const fn bytes_behind_probe(&self) -> u32 {
        SEGMENTS_BEHIND * self.snd_mss as u32
    }

    /// Bytes of the probe that may leave now.
    #[inline]
    pub(crate) fn path_probe_bytes(&self, room: &Room) -> Option<u32> {
        let cold = self.cold.as_deref()?;
        let search = &cold.path;
        // What ends a message shares no segment with the next one.
        if search.probe_bytes == 0 || search.probe_end.is_some() || room.is_message {
            return None;
        }
        let len = u32::from(search.probe_bytes);
        let behind = self.bytes_behind_probe();
        let has_room = room.window >= len + behind && room.congestion >= len;
        let may_leave = cold.recovery.phase() == Phase::Open
            && !cold.scoreboard.is_full()
            && room.unsent >= len + behind
            && has_room
            && self.congestion.cwnd() >= len + behind;
        may_leave.then_some(len)
    }

    /// The probe leaves.
    pub(crate) fn send_path_probe(&mut self, len: u32, env: &mut Env<'_>) -> Draft {
        let end = self.snd.nxt() + len;
        if let Some(cold) = &mut self.cold {
            cold.path.probe_end = Some(end);
        }
        env.shared.counters.path_probes += 1;
        // More is behind it: that is how its loss is found.
        self.send_new(len, false, 1, env)
    }

    /// The MSS that a segment's frames have: a probe is one frame.
    pub(crate) fn frame_mss(&self, draft: &Draft) -> u16 {
        let probe = self.cold.as_ref().map(|cold| &cold.path);
        match probe {
            Some(search)
                if search.probe_end == Some(draft.seq + draft.len)
                    && u32::from(search.probe_bytes) == draft.len =>
            {
                search.probe_bytes
            }
            _ => self.snd_mss,
        }
    }

    /// What has become of the probe, after losses were looked for; `lost_bytes` are those found, and what is given are
    /// those that mean congestion.
    pub(crate) fn judge_path_probe(
        &mut self,
        cold: &mut Cold,
        progress: &Progress,
        lost_bytes: u32,
        env: &mut Env<'_>,
    ) -> u32 {
        let search = &mut cold.path;
        let Some(end) = search.probe_end else {
            return lost_bytes;
        };
        let len = search.probe_bytes;
        let start = end - u32::from(len);
        if progress.ack.is_at_or_after(end) {
            search.probe_end = None;
            search.probe_bytes = 0;
            search.news = Some(PathNews::Arrived(len + options_bytes(self)));
            env.shared.counters.path_probes_arrived += 1;
            self.take_larger(self.snd_mss.max(len));
            return lost_bytes;
        }
        if !cold.scoreboard.is_lost(start) {
            return lost_bytes;
        }
        self.end_path_probe(cold, env);
        cold.scoreboard.lose(start, end);
        // RFC 4821 7.6.1: the loss of a probe alone says nothing of congestion.
        if lost_bytes <= u32::from(len) && cold.recovery.phase() == Phase::Open {
            cold.recovery.enter_loss_by_size(self.snd.nxt());
            return 0;
        }
        lost_bytes
    }

    /// The probe that is out has not arrived.
    pub(crate) fn end_path_probe(&mut self, cold: &mut Cold, env: &mut Env<'_>) -> bool {
        let search = &mut cold.path;
        if search.probe_end.take().is_none() {
            return false;
        }
        let len = core::mem::take(&mut search.probe_bytes);
        search.news = Some(PathNews::Lost(len + options_bytes(self)));
        env.shared.counters.path_probes_lost += 1;
        true
    }
}

/// RFC 4821 7.4: as many as make a loss known (RFC 5681 3.2).
const SEGMENTS_BEHIND: u32 = 3;

#[cfg(test)]
mod tests;
