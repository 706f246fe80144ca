//! What was sent and is not acknowledged, segment by segment (RFC 6675 2, RFC 8985 5).
//!
//! ```text
//!   front = SND.UNA                                              back = SND.NXT
//!   | sacked | lost | in flight (again) | lost | sacked | in flight | in flight |
//!                     ^ in `resent` too  ^ lost_at        ^ fresh_at
//! ```
//!
//! An entry is what left at one instant: a segment, a super-segment, or several of them in a row. It is split where
//! an acknowledgement or a retransmission takes only a part of it. Two cursors and a queue keep the work of an
//! acknowledgement independent of how much is in flight: before `lost_at` nothing is lost, before `fresh_at` nothing
//! is in flight for the first time, and `resent` holds what is in flight again, in the order of time.

use alloc::collections::VecDeque;
use mill_wire::seq::SeqNumber;

/// A point in time, fine enough for round trips.
pub mod moment;

/// Ranges that the peer has reported.
pub mod ranges;

/// The ranges that acknowledgements report.
pub mod delivery;

/// Marks: reported, lost, sent again.
mod mark;

#[cfg(test)]
mod tests;

pub use delivery::Delivery;
pub use mark::Losses;
pub use moment::Moment;

/// A run of bytes (SYN never, FIN as its last one possible) that left together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub start: SeqNumber,
    pub end: SeqNumber,
    /// When it left last.
    pub at: Moment,
    pub mark: Mark,
    /// How often it was sent again; stays at the largest number.
    pub retransmits: u8,
}

const _: () = assert!(size_of::<Sent>() == 16);

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// On its way, as far as we know.
    InFlight,
    /// Reported by the peer.
    Sacked,
    /// Held for lost, and not sent again yet.
    Lost,
}

impl Sent {
    pub fn len(&self) -> u32 {
        self.end - self.start
    }

    pub const fn is_empty(&self) -> bool {
        self.end.0 == self.start.0
    }

    /// In flight, and for the first time.
    const fn is_fresh(&self) -> bool {
        matches!(self.mark, Mark::InFlight) && self.retransmits == 0
    }
}

/// What was sent again, in the order of time; entries that are no longer so are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resent {
    start: SeqNumber,
    end: SeqNumber,
    at: Moment,
}

impl Resent {
    const fn of(entry: &Sent) -> Self {
        Self {
            start: entry.start,
            end: entry.end,
            at: entry.at,
        }
    }
}

/// The segments in flight in the order of their sequence numbers, each with when it was sent last and what is known
/// of it.
#[derive(Debug, Default)]
pub struct Scoreboard {
    sent: VecDeque<Sent>,
    sacked: ranges::Ranges,
    resent: VecDeque<Resent>,
    sacked_bytes: u32,
    lost_bytes: u32,
    lost_at: usize,
    fresh_at: usize,
    /// The highest end of what was ever delivered while this was not empty (RACK.fack, RFC 8985 6.2 step 3).
    highest: SeqNumber,
    /// When the last segment left, and where it ended.
    last_at: Moment,
    last_end: SeqNumber,
    /// The last entry was whole segments when it was made.
    is_last_whole: bool,
}

impl Scoreboard {
    /// Forgets everything; keeps memory for a modest number of entries.
    pub fn clear(&mut self) {
        self.sent.clear();
        self.sent.shrink_to(Self::ENTRIES_KEPT);
        self.resent.clear();
        self.resent.shrink_to(Self::ENTRIES_KEPT);
        self.sacked.clear();
        self.sacked_bytes = 0;
        self.lost_bytes = 0;
        self.lost_at = 0;
        self.fresh_at = 0;
        self.highest = SeqNumber::default();
    }

    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub fn front(&self) -> Option<&Sent> {
        self.sent.front()
    }

    pub fn back(&self) -> Option<&Sent> {
        self.sent.back()
    }

    /// Entries; each costs 16 bytes.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether no more should be sent, however wide the windows are, until something is acknowledged.
    pub fn is_full(&self) -> bool {
        self.sent.len() >= Self::ENTRIES_MAX
    }

    /// Bytes from the first unacknowledged to the last sent one.
    pub fn outstanding_bytes(&self) -> u32 {
        match (self.sent.front(), self.sent.back()) {
            (Some(front), Some(back)) => back.end - front.start,
            _ => 0,
        }
    }

    pub const fn sacked_bytes(&self) -> u32 {
        self.sacked_bytes
    }

    /// Bytes that wait to be sent again.
    pub const fn lost_bytes(&self) -> u32 {
        self.lost_bytes
    }

    /// Bytes that were sent again and are on their way, as far as is known. Scans every entry: for status reports,
    /// not for each segment.
    pub fn resent_bytes(&self) -> u32 {
        let resent = self
            .sent
            .iter()
            .filter(|entry| entry.mark == Mark::InFlight && entry.retransmits > 0);
        resent.map(Sent::len).sum()
    }

    /// RFC 6675 4 (3): what is assumed to be in the network. An entry sent again counts once, as its earlier
    /// transmission is lost.
    pub fn pipe(&self) -> u32 {
        self.outstanding_bytes() - self.sacked_bytes - self.lost_bytes
    }

    /// The moment to note for what leaves now. Of two segments that leave at the same moment the one that ends later
    /// counts as the later one (RFC 8985 6.2); where the order is another, the clock is a microsecond ahead.
    fn stamp(&mut self, start: SeqNumber, end: SeqNumber, now: Moment) -> Moment {
        let mut at = if self.last_at.is_after(now) {
            self.last_at
        } else {
            now
        };
        if at == self.last_at && start.is_before(self.last_end) {
            at = Moment(at.0.wrapping_add(1));
        }
        self.last_at = at;
        self.last_end = end;
        at
    }

    /// New data leaves. What `is_whole` segments joins the entry before it, if that is so too and left at the same
    /// instant. Returns the moment that is noted.
    #[inline]
    pub fn push(
        &mut self,
        start: SeqNumber,
        end: SeqNumber,
        is_whole: bool,
        now: Moment,
    ) -> Moment {
        debug_assert!(end.is_after(start), "an entry has bytes");
        if self.sent.is_empty() {
            self.last_at = now;
            self.last_end = start;
        }
        let at = self.stamp(start, end, now);
        let was_whole = core::mem::replace(&mut self.is_last_whole, is_whole);
        let may_join = is_whole && was_whole;
        match self.sent.back_mut() {
            Some(back) if may_join && back.at == at && back.is_fresh() => {
                debug_assert_eq!(back.end, start);
                back.end = end;
                return at;
            }
            Some(back) => debug_assert_eq!(back.end, start),
            None => {
                self.highest = start;
                self.lost_at = 0;
                self.fresh_at = 0;
            }
        }
        self.sent.push_back(Sent {
            start,
            end,
            at,
            mark: Mark::InFlight,
            retransmits: 0,
        });
        at
    }

    /// Everything before `ack` has arrived (RFC 9293 3.10.7.4, fifth).
    #[inline]
    pub fn acknowledge(&mut self, ack: SeqNumber, delivery: &mut Delivery) {
        while let Some(front) = self.sent.front_mut() {
            if !ack.is_after(front.start) {
                break;
            }
            let part = Sent {
                end: front.end.min(ack),
                ..*front
            };
            match part.mark {
                Mark::Sacked => self.sacked_bytes -= part.len(),
                Mark::Lost => {
                    self.lost_bytes -= part.len();
                    delivery.take(&part, &mut self.highest);
                }
                Mark::InFlight => delivery.take(&part, &mut self.highest),
            }
            if front.end.is_after(ack) {
                front.start = ack;
                break;
            }
            self.sent.pop_front();
            self.lost_at = self.lost_at.saturating_sub(1);
            self.fresh_at = self.fresh_at.saturating_sub(1);
        }
        self.highest = self.highest.max(ack);
        if !self.sacked.is_empty() {
            self.sacked.forget_before(ack);
        }
        while let Some(first) = self.resent.front() {
            if first.end.is_after(ack) && !self.sent.is_empty() {
                break;
            }
            self.resent.pop_front();
        }
        self.check();
    }

    /// Entries kept in memory by an empty scoreboard: 4 KiB, enough for 64 KiB a round trip in tiny segments.
    const ENTRIES_KEPT: usize = 256;

    /// Entries made by sending: 256 KiB of memory. With two full segments an entry that is 48 MB in flight, with
    /// super-segments a gigabyte.
    pub(crate) const ENTRIES_MAX: usize = 16_384;

    /// Recounts, in debug builds and while short.
    fn check(&self) {
        if !cfg!(debug_assertions) || self.sent.len() > 64 {
            return;
        }
        let count = |mark| {
            let of_mark = self.sent.iter().filter(|entry| entry.mark == mark);
            of_mark.map(Sent::len).sum::<u32>()
        };
        debug_assert_eq!(count(Mark::Sacked), self.sacked_bytes);
        debug_assert_eq!(count(Mark::Lost), self.lost_bytes);
        let ahead_of_lost = self.sent.iter().take(self.lost_at);
        debug_assert!(ahead_of_lost.clone().all(|entry| entry.mark != Mark::Lost));
        debug_assert!(!self.sent.iter().take(self.fresh_at).any(Sent::is_fresh));
        debug_assert!(
            self.sent
                .iter()
                .zip(self.sent.iter().skip(1))
                .all(|(a, b)| a.end == b.start && !a.is_empty())
        );
    }
}
