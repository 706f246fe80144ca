//! Bytes that arrived before those in front of them.
//!
//! Bytes lie in pages that are aligned in sequence space, so that a run of tiny segments costs what one large segment
//! does, and nothing is ever moved; what is there is a sorted list of ranges.
//!
//! ```text
//!   ready               gap            range            gap      range
//! --[=================)--------------[==========)-----------[=======F)----
//!   taken by the owner                                               FIN, one number long
//! |  page  |  page  |  none  |  page  |  page  |  none  |  page  |
//! ```

/// The bytes, in pages that are aligned in sequence space.
mod pages;

use crate::arrived::SegmentDrop;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::SackBlocks;
use pages::Pages;

/// Ranges of sequence numbers and their bytes, in order, no two of them touching.
#[derive(Debug, Default)]
pub struct Reassembly {
    pages: Pages,
    ranges: Vec<(SeqNumber, SeqNumber)>,
    /// Next in order since the last hole was filled, and not fetched yet.
    ready: Option<(SeqNumber, SeqNumber)>,
    /// The last number of the last range, if it is a FIN.
    fin: Option<SeqNumber>,
    /// Beginnings of what changed last, the latest first (RFC 2018 4).
    recent: [Option<SeqNumber>; SackBlocks::COUNT_MAX],
    /// A range that arrived twice, to be reported once (RFC 2883 4).
    duplicate: Option<(SeqNumber, SeqNumber)>,
}

/// What one connection may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory for bytes, pages counted whole.
    pub bytes_max: u32,
    pub ranges_max: u32,
    /// What the host has left for all connections.
    pub memory_left_bytes: u64,
}

impl Reassembly {
    /// Keeps what of the text is new; of bytes that were here already the first ones count. Gives the range that came
    /// twice, if one did.
    pub fn insert(
        &mut self,
        at: SeqNumber,
        text: &[u8],
        has_fin: bool,
        limits: &Limits,
    ) -> Result<Option<(SeqNumber, SeqNumber)>, SegmentDrop> {
        let (text, has_fin) = self.before_fin(at, text, has_fin);
        let text_end = at + text_len(text);
        let end = text_end + u32::from(has_fin);
        if at == end {
            return Ok(None);
        }
        let first = self.ranges.partition_point(|range| range.1.is_before(at));
        let last = self
            .ranges
            .partition_point(|range| range.0.is_at_or_before(end));
        if first == last && self.ranges.len() >= as_index(limits.ranges_max) {
            return Err(SegmentDrop::ReassemblyFull);
        }
        self.pages.reserve(at, text_end, limits)?;
        let duplicate = self.fill_gaps(at, text, first, last);
        if has_fin {
            self.fin = Some(text_end);
        }
        self.join(at, end, first, last);
        self.check();
        Ok(duplicate)
    }

    /// Everything before `rcv_nxt` has been delivered. What follows it without a gap is ready now: gives the number
    /// behind it, and whether a FIN is next.
    pub fn advance(&mut self, rcv_nxt: SeqNumber) -> (SeqNumber, bool) {
        debug_assert!(self.ready.is_none(), "the owner fetches what is ready");
        let passed = self
            .ranges
            .partition_point(|range| range.0.is_at_or_before(rcv_nxt));
        let reached = self
            .ranges
            .drain(..passed)
            .next_back()
            .map_or(rcv_nxt, |range| range.1.max(rcv_nxt));
        let is_fin_next = self.fin.is_some_and(|fin| reached.is_after(fin));
        let end = if is_fin_next { reached - 1 } else { reached };
        if is_fin_next {
            self.fin = None;
        }
        if end.is_after(rcv_nxt) {
            self.ready = Some((rcv_nxt, end));
        }
        self.free_before(rcv_nxt);
        self.check();
        (end, is_fin_next)
    }

    /// A run of what is ready, at most a page of it.
    pub fn take_ready(&mut self) -> Option<Vec<u8>> {
        let (start, end) = self.ready?;
        let (run, run_end) = self.pages.take_run(start, end)?;
        self.ready = Some((run_end, end)).filter(|_| run_end != end);
        self.free_before(run_end);
        Some(run)
    }

    /// Nothing out of order, nothing ready.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.ready.is_none()
    }

    /// Something waits to be fetched.
    pub(crate) const fn has_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Nothing to keep at all.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_empty() && self.duplicate.is_none()
    }

    /// Bytes of memory in use.
    pub const fn memory_bytes(&self) -> u32 {
        self.pages.size_bytes()
    }

    pub fn ranges(&self) -> &[(SeqNumber, SeqNumber)] {
        &self.ranges
    }

    pub(crate) fn note_duplicate(&mut self, start: SeqNumber, end: SeqNumber) {
        debug_assert!(start.is_before(end));
        self.duplicate = Some((start, end));
    }

    pub(crate) fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.ranges.is_empty()
    }

    /// The blocks of an acknowledgement: what came twice first (RFC 2883 4), then the range that changed last, then
    /// those before it (RFC 2018 4), then any.
    pub(crate) fn take_blocks(&mut self, count_max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some((start, end)) = self.duplicate.take() {
            blocks.push(start, end);
        }
        let after_duplicate = blocks.len();
        let recent = self.recent.iter().flatten().filter_map(|&at| {
            let index = self
                .ranges
                .partition_point(|range| range.1.is_at_or_before(at));
            self.ranges
                .get(index)
                .filter(|range| range.0.is_at_or_before(at))
        });
        for &(start, end) in recent.chain(&self.ranges) {
            let others = blocks.as_slice().get(after_duplicate..).unwrap_or_default();
            let is_told = others.contains(&(start, end));
            if !is_told && (blocks.len() >= count_max || !blocks.push(start, end)) {
                break;
            }
        }
        blocks
    }

    /// Forgets everything; of the capacity only what is modest stays.
    pub fn clear(&mut self) {
        let mut pages = core::mem::take(&mut self.pages);
        let mut ranges = core::mem::take(&mut self.ranges);
        pages.clear();
        ranges.clear();
        pages.shrink_to(CAPACITY_KEPT);
        ranges.shrink_to(CAPACITY_KEPT);
        *self = Self {
            pages,
            ranges,
            ..Self::default()
        };
    }

    /// Nothing comes after a FIN, and there is one FIN: what says otherwise is cut.
    fn before_fin<'a>(&self, at: SeqNumber, text: &'a [u8], has_fin: bool) -> (&'a [u8], bool) {
        let end = at + text_len(text);
        if let Some(fin) = self.fin {
            let room = u32::try_from(fin.since(at)).unwrap_or(0);
            let kept = text.get(..as_index(room)).unwrap_or(text);
            return (kept, has_fin && end == fin);
        }
        let has_later = self
            .ranges
            .last()
            .is_some_and(|range| range.1.is_after(end));
        (text, has_fin && !has_later)
    }

    /// Copies the text to where no range is; gives the first part that was in a range already.
    fn fill_gaps(
        &mut self,
        at: SeqNumber,
        text: &[u8],
        first: usize,
        last: usize,
    ) -> Option<(SeqNumber, SeqNumber)> {
        let text_end = at + text_len(text);
        let mut cursor = at;
        let mut duplicate = None;
        for index in first..last {
            let Some(&(start, end)) = self.ranges.get(index) else {
                break;
            };
            self.pages.copy_in(at, text, cursor, start.min(text_end));
            let twice = (start.max(at), end.min(text_end));
            if duplicate.is_none() && twice.0.is_before(twice.1) {
                duplicate = Some(twice);
            }
            cursor = cursor.max(end);
        }
        self.pages.copy_in(at, text, cursor, text_end);
        duplicate
    }

    /// Makes one range of `at .. end` and the ranges `first .. last` that it touches, and remembers it as the latest.
    fn join(&mut self, at: SeqNumber, end: SeqNumber, first: usize, last: usize) {
        let touched = self.ranges.get(first..last).unwrap_or_default();
        let start = touched.first().map_or(at, |range| range.0.min(at));
        let end = touched.last().map_or(end, |range| range.1.max(end));
        self.ranges.splice(first..last, [(start, end)]);
        let others = self
            .recent
            .into_iter()
            .flatten()
            .filter(|&other| !other.is_within(start, end - start));
        let mut recent = [None; SackBlocks::COUNT_MAX];
        let latest = core::iter::once(start).chain(others);
        for (slot, other) in recent.iter_mut().zip(latest) {
            *slot = Some(other);
        }
        self.recent = recent;
    }

    /// Frees the pages that hold nothing at or behind `seq`.
    fn free_before(&mut self, seq: SeqNumber) {
        if self.is_empty() {
            self.pages.clear();
            self.recent = [None; SackBlocks::COUNT_MAX];
            return;
        }
        self.pages.free_before(seq);
    }

    fn check(&self) {
        debug_assert!(
            self.ranges
                .iter()
                .zip(self.ranges.iter().skip(1))
                .all(|(a, b)| a.0.is_before(a.1) && a.1.is_before(b.0)),
            "ranges out of order: {:?}",
            self.ranges
        );
        self.pages.check();
    }
}

/// Slots that a list keeps when it is emptied.
const CAPACITY_KEPT: usize = 64;

fn text_len(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

fn as_index(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
