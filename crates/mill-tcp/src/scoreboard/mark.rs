//! Marks: reported by the peer, lost, sent again.

use super::delivery::{Newest, is_sent_after};
use super::{Delivery, Mark, Moment, Resent, Scoreboard, Sent};
use mill_wire::seq::SeqNumber;

/// What was found by the time that segments have been away (RFC 8985 6.2 step 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub bytes: u32,
    /// Retransmissions among them.
    pub retransmissions: u32,
    /// Something may yet turn out to be lost when more time has gone by.
    pub is_pending: bool,
}

impl Scoreboard {
    /// The peer has reported `start .. end` (RFC 2018 4). The caller has checked that it was sent.
    pub fn sack(&mut self, start: SeqNumber, end: SeqNumber, delivery: &mut Delivery) {
        let (Some(front), Some(back)) = (self.sent.front(), self.sent.back()) else {
            return;
        };
        let (start, end) = (start.max(front.start), end.min(back.end));
        if !end.is_after(start) {
            return;
        }
        let mut from = start;
        while let Some((gap_start, gap_end)) = self.sacked.first_gap(from, end) {
            // Room is asked for before anything is marked; where there is none, the report is as if lost.
            if !self.sacked.insert(gap_start, gap_end) {
                return;
            }
            self.mark_sacked(gap_start, gap_end, delivery);
            from = gap_end;
        }
        self.check();
    }

    /// Marks what no range held before.
    fn mark_sacked(&mut self, start: SeqNumber, end: SeqNumber, delivery: &mut Delivery) {
        let mut index = self.index_of(start);
        while let Some(&entry) = self.sent.get(index) {
            let part = Sent {
                start: entry.start.max(start),
                end: entry.end.min(end),
                ..entry
            };
            if !part.end.is_after(part.start) {
                break;
            }
            debug_assert_ne!(entry.mark, Mark::Sacked, "gaps are not marked yet");
            if entry.mark == Mark::Lost {
                self.lost_bytes -= part.len();
            }
            self.sacked_bytes += part.len();
            delivery.take(&part, &mut self.highest);
            index = self.carve(index, part.start, part.end, Mark::Sacked, entry.at) + 1;
        }
    }

    /// Gives `start .. end` of the entry at `index` another mark; it becomes an entry of its own, or part of a
    /// neighbour that is marked so already. Returns where it is now.
    fn carve(
        &mut self,
        index: usize,
        start: SeqNumber,
        end: SeqNumber,
        mark: Mark,
        at: Moment,
    ) -> usize {
        let Some(&entry) = self.sent.get(index) else {
            return index;
        };
        let part = Sent {
            start,
            end,
            at,
            mark,
            ..entry
        };
        let mut index = index;
        if start != entry.start && end != entry.end {
            index = self.carve_middle(index, entry, part);
        } else if end != entry.end {
            // Its beginning.
            self.set(
                index,
                Sent {
                    start: end,
                    ..entry
                },
            );
            match index
                .checked_sub(1)
                .and_then(|before| self.sent.get_mut(before))
            {
                Some(before) if before.mark == mark && mark == Mark::Sacked => {
                    before.end = end;
                    return index - 1;
                }
                _ => self.insert(index, part),
            }
        } else if start != entry.start {
            // Its end.
            self.set(
                index,
                Sent {
                    end: start,
                    ..entry
                },
            );
            index += 1;
            match self.sent.get_mut(index) {
                Some(after) if after.mark == mark && mark == Mark::Sacked => after.start = start,
                _ => self.insert(index, part),
            }
        } else {
            self.set(index, part);
        }
        index
    }

    /// Leaves something of the entry on both sides of the part.
    fn carve_middle(&mut self, index: usize, entry: Sent, part: Sent) -> usize {
        let end = part.start;
        self.insert(index, Sent { end, ..entry });
        self.insert(index + 1, part);
        let start = part.end;
        self.set(index + 2, Sent { start, ..entry });
        index + 1
    }

    fn set(&mut self, index: usize, entry: Sent) {
        if let Some(place) = self.sent.get_mut(index) {
            *place = entry;
        }
    }

    /// Inserts one half of an entry that was split; the cursors stay before everything they look for.
    fn insert(&mut self, index: usize, entry: Sent) {
        self.sent.insert(index, entry);
        self.lost_at += usize::from(index < self.lost_at);
        self.fresh_at += usize::from(index < self.fresh_at);
    }

    /// The entry that holds `seq`, or the first behind it.
    fn index_of(&self, seq: SeqNumber) -> usize {
        self.sent
            .partition_point(|entry| entry.end.is_at_or_before(seq))
    }

    /// Marks as lost what left before `newest` and has been away for `away_us_max` or longer.
    pub fn detect_losses(&mut self, newest: Newest, away_us_max: u32, now: Moment) -> Losses {
        let mut losses = Losses::default();
        let newest = (newest.at, newest.end);
        while let Some(&entry) = self.sent.get(self.fresh_at) {
            if entry.is_fresh() {
                if !is_sent_after(newest, (entry.at, entry.end)) {
                    break;
                }
                if now.since(entry.at) < away_us_max {
                    losses.is_pending = true;
                    break;
                }
                losses.bytes += self.mark_lost(self.fresh_at);
            }
            self.fresh_at += 1;
        }
        let mut index = 0;
        while let Some(&resent) = self.resent.get(index) {
            if resent.at.is_after(newest.0) {
                break;
            }
            let is_due = now.since(resent.at) >= away_us_max;
            let (older, others) = self.visit_resent(resent, newest, is_due);
            if older > 0 && !is_due {
                losses.is_pending = true;
                break;
            }
            losses.bytes += older;
            losses.retransmissions += u32::from(older > 0);
            if others > 0 {
                // It left at the same instant as the newest, behind it.
                index += 1;
            } else {
                self.resent.remove(index);
            }
        }
        self.check();
        losses
    }

    /// Bytes of `resent` that are in flight since then: those that left before `newest`, which are marked as lost if
    /// `is_lost`, and others.
    fn visit_resent(
        &mut self,
        resent: Resent,
        newest: (Moment, SeqNumber),
        is_lost: bool,
    ) -> (u32, u32) {
        let (mut older, mut others) = (0, 0);
        let mut index = self.index_of(resent.start);
        while let Some(&entry) = self.sent.get(index) {
            if entry.start.is_at_or_after(resent.end) {
                break;
            }
            if entry.mark == Mark::InFlight && entry.at == resent.at && entry.retransmits > 0 {
                if is_sent_after(newest, (entry.at, entry.end)) {
                    older += entry.len();
                    if is_lost {
                        self.mark_lost(index);
                    }
                } else {
                    others += entry.len();
                }
            }
            index += 1;
        }
        (older, others)
    }

    /// Whether something that was sent again is on its way.
    pub fn has_resent_in_flight(&mut self) -> bool {
        while let Some(&first) = self.resent.front() {
            if self.visit_resent(first, (first.at, first.end), false) != (0, 0) {
                return true;
            }
            self.resent.pop_front();
        }
        false
    }

    fn mark_lost(&mut self, index: usize) -> u32 {
        let Some(entry) = self.sent.get_mut(index) else {
            return 0;
        };
        debug_assert_eq!(entry.mark, Mark::InFlight);
        entry.mark = Mark::Lost;
        let len = entry.len();
        self.lost_bytes += len;
        self.lost_at = self.lost_at.min(index);
        len
    }

    /// The first `bytes` of what is unacknowledged are lost (RFC 5681 3.2, without SACK). Returns how many were not
    /// held for lost before.
    pub fn mark_head_lost(&mut self, bytes: u32) -> u32 {
        match self.sent.front().copied() {
            Some(front) if front.mark == Mark::InFlight => {
                let len = front.len().min(bytes.max(1));
                self.carve(0, front.start, front.start + len, Mark::InFlight, front.at);
                self.mark_lost(0)
            }
            _ => 0,
        }
    }

    /// The retransmission timer expired: the first entry is lost, and all that has been away for `away_us_max`
    /// (RFC 8985 6.3).
    pub fn mark_lost_on_timeout(&mut self, away_us_max: u32, now: Moment) {
        for index in 0..self.sent.len() {
            let is_lost = self.sent.get(index).is_some_and(|entry| {
                entry.mark == Mark::InFlight && (index == 0 || now.since(entry.at) >= away_us_max)
            });
            if is_lost {
                self.mark_lost(index);
            }
        }
        self.check();
    }

    /// The path takes only segments of `mss` bytes: what may have been larger is lost.
    pub fn mark_larger_lost(&mut self, mss: u32) {
        for index in 0..self.sent.len() {
            let is_lost = self
                .sent
                .get(index)
                .is_some_and(|entry| entry.mark == Mark::InFlight && entry.len() > mss);
            if is_lost {
                self.mark_lost(index);
            }
        }
        self.check();
    }

    /// Whether what begins at `seq` is held for lost.
    pub fn is_lost(&self, seq: SeqNumber) -> bool {
        let entry = self.sent.get(self.index_of(seq));
        entry.is_some_and(|entry| entry.mark == Mark::Lost)
    }

    /// What is in flight of `start .. end`, which was a segment, is lost.
    pub fn lose(&mut self, start: SeqNumber, end: SeqNumber) {
        let mut index = self.index_of(start);
        while let Some(entry) = self.sent.get(index)
            && entry.start.is_before(end)
        {
            if entry.mark == Mark::InFlight {
                self.mark_lost(index);
            }
            index += 1;
        }
        self.check();
    }

    /// The peer has thrown away what it had reported (RFC 2018 8): it counts as lost.
    pub fn forget_sacked(&mut self) {
        for index in 0..self.sent.len() {
            if let Some(entry) = self.sent.get_mut(index)
                && entry.mark == Mark::Sacked
            {
                entry.mark = Mark::InFlight;
                self.sacked_bytes -= entry.len();
                self.mark_lost(index);
            }
        }
        self.sacked.clear();
        self.check();
    }

    /// What was held for lost was not: it is in flight as before (RFC 4015 3.2).
    pub fn forget_lost(&mut self) {
        for entry in &mut self.sent {
            if entry.mark == Mark::Lost {
                entry.mark = Mark::InFlight;
            }
        }
        self.lost_bytes = 0;
        self.lost_at = self.sent.len();
        self.fresh_at = 0;
        self.resent.clear();
        let again = |entry: &&Sent| entry.mark == Mark::InFlight && entry.retransmits > 0;
        self.resent
            .extend(self.sent.iter().filter(again).map(Resent::of));
        // Moments wrap: they are ordered by how long ago they were.
        let youngest = self.resent.iter().map(|resent| resent.at);
        let youngest = youngest.reduce(|a, b| if b.is_after(a) { b } else { a });
        let youngest = youngest.unwrap_or_default();
        self.resent
            .make_contiguous()
            .sort_by_key(|resent| core::cmp::Reverse(youngest.since(resent.at)));
        self.check();
    }

    /// The first entry that is lost (RFC 6675 4, NextSeg (1)).
    pub fn next_lost(&mut self) -> Option<Sent> {
        if self.lost_bytes == 0 {
            return None;
        }
        while let Some(entry) = self.sent.get(self.lost_at) {
            if entry.mark == Mark::Lost {
                return Some(*entry);
            }
            self.lost_at += 1;
        }
        None
    }

    /// The first `bytes` of what `next_lost` gave leave again. Returns the moment that is noted.
    pub fn resend_lost(&mut self, bytes: u32, now: Moment) -> Moment {
        let Some(entry) = self.next_lost() else {
            return now;
        };
        debug_assert!(bytes > 0 && bytes <= entry.len());
        self.lost_bytes -= bytes;
        self.resend(self.lost_at, entry.start, entry.start + bytes, now)
    }

    /// The last segment, of `mss` bytes or less, leaves again as a probe (RFC 8985 7.3). Returns it as it is now, if it
    /// is in flight.
    pub fn resend_tail(&mut self, mss: u32, now: Moment) -> Option<Sent> {
        let back = *self.sent.back()?;
        if back.mark != Mark::InFlight {
            return None;
        }
        // Cut where it was cut before.
        let start = back.start + (back.len() - 1) / mss * mss;
        let at = self.resend(self.sent.len() - 1, start, back.end, now);
        Some(Sent { start, at, ..back })
    }

    fn resend(&mut self, index: usize, start: SeqNumber, end: SeqNumber, now: Moment) -> Moment {
        let at = self.stamp(start, end, now);
        let index = self.carve(index, start, end, Mark::InFlight, at);
        if let Some(entry) = self.sent.get_mut(index) {
            entry.retransmits = entry.retransmits.saturating_add(1);
        }
        // Beyond the limit a retransmission that is lost is found by the retransmission timer only.
        if self.resent.len() < Self::ENTRIES_MAX {
            self.resent.push_back(Resent { start, end, at });
        }
        self.check();
        at
    }
}
