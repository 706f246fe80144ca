//! The bytes, in pages that are aligned in sequence space.

use super::{Limits, as_index};
use crate::arrived::SegmentDrop;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;

/// Pages in order, with gaps. Which of their bytes mean something the ranges say.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// `PAGE_BYTES` each; the first one holds the bytes of page number `first`.
    pages: VecDeque<Option<Vec<u8>>>,
    /// Sequence number divided by `PAGE_BYTES`.
    first: u32,
    held: u32,
}

impl Pages {
    /// Memory in use.
    pub(super) const fn size_bytes(&self) -> u32 {
        self.held * PAGE_BYTES
    }

    /// Makes the pages of `at .. end`, or none of them.
    pub(super) fn reserve(
        &mut self,
        at: SeqNumber,
        end: SeqNumber,
        limits: &Limits,
    ) -> Result<(), SegmentDrop> {
        if at == end {
            return Ok(());
        }
        if self.pages.is_empty() {
            self.first = page_of(at);
        }
        let from = page_distance(self.first, page_of(at));
        let first = self.first;
        let to = page_distance(first, page_of(end - 1));
        let held = |offset: i32| {
            usize::try_from(offset)
                .ok()
                .and_then(|index| self.pages.get(index))
                .is_some_and(Option::is_some)
        };
        let needed = (from..=to).filter(|&offset| !held(offset)).count();
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        let bytes_after = (self.held.saturating_add(needed)).saturating_mul(PAGE_BYTES);
        if bytes_after > limits.bytes_max {
            return Err(SegmentDrop::ReassemblyFull);
        }
        if u64::from(needed * PAGE_BYTES) > limits.memory_left_bytes {
            return Err(SegmentDrop::NoBuffer);
        }
        for _ in from..0 {
            self.pages.push_front(None);
            self.first = self.first.wrapping_sub(1) % PAGE_COUNT;
        }
        let (from, to) = (self.page_index(at), self.page_index(end - 1));
        if self.pages.len() <= to {
            self.pages.resize_with(to + 1, || None);
        }
        for page in self
            .pages
            .range_mut(from..=to)
            .filter(|page| page.is_none())
        {
            *page = Some(vec![0; as_index(PAGE_BYTES)]);
            self.held += 1;
        }
        Ok(())
    }

    /// Copies the part `from .. to` of a text that begins at `at`.
    pub(super) fn copy_in(&mut self, at: SeqNumber, text: &[u8], from: SeqNumber, to: SeqNumber) {
        let mut from = from;
        while from.is_before(to) {
            let offset = from.0 % PAGE_BYTES;
            let run_end = to.min(from + (PAGE_BYTES - offset));
            let source = as_index(from - at)..as_index(run_end - at);
            let target = as_index(offset)..as_index(offset) + source.len();
            let index = self.page_index(from);
            let page = self.pages.get_mut(index).and_then(Option::as_mut);
            if let (Some(page), Some(source)) = (page, text.get(source))
                && let Some(target) = page.get_mut(target)
            {
                target.copy_from_slice(source);
            }
            from = run_end;
        }
    }

    /// A run of the bytes `start .. end`, at most a page of it, and the number behind the run. A page that is taken whole is
    /// not copied.
    pub(super) fn take_run(
        &mut self,
        start: SeqNumber,
        end: SeqNumber,
    ) -> Option<(Vec<u8>, SeqNumber)> {
        let offset = start.0 % PAGE_BYTES;
        let run_end = end.min(start + (PAGE_BYTES - offset));
        let len = as_index(run_end - start);
        let index = self.page_index(start);
        let run = if len == as_index(PAGE_BYTES) {
            let page = self.pages.get_mut(index).and_then(Option::take)?;
            self.held -= 1;
            page
        } else {
            let page = self.pages.get(index)?.as_ref()?;
            let from = as_index(offset);
            page.get(from..from + len)?.to_vec()
        };
        Some((run, run_end))
    }

    /// Frees the pages that hold nothing at or behind `seq`.
    pub(super) fn free_before(&mut self, seq: SeqNumber) {
        while page_distance(self.first, page_of(seq)) > 0 {
            match self.pages.pop_front() {
                Some(page) => self.held -= u32::from(page.is_some()),
                None => break,
            }
            self.first = (self.first + 1) % PAGE_COUNT;
        }
    }

    pub(super) fn clear(&mut self) {
        self.pages.clear();
        self.held = 0;
    }

    /// Gives back what the list of pages has beyond so many slots.
    pub(super) fn shrink_to(&mut self, capacity: usize) {
        self.pages.shrink_to(capacity);
    }

    pub(super) fn check(&self) {
        debug_assert_eq!(as_index(self.held), self.pages.iter().flatten().count());
    }

    /// Where in `pages` the byte lies.
    fn page_index(&self, seq: SeqNumber) -> usize {
        usize::try_from(page_distance(self.first, page_of(seq))).unwrap_or(usize::MAX)
    }
}

/// Bytes of a page: three full segments of Ethernet. A peer that sends one byte into each page gets
/// `ranges_max` of them.
pub(super) const PAGE_BYTES: u32 = 4096;

/// Pages of the whole sequence space.
const PAGE_COUNT: u32 = 1 << 20;

const _: () = assert!(PAGE_COUNT as u64 * PAGE_BYTES as u64 == 1 << 32);

const fn page_of(seq: SeqNumber) -> u32 {
    seq.0 / PAGE_BYTES
}

/// Pages from `first` to `other`, negative if it lies before it.
#[expect(clippy::cast_possible_wrap, reason = "the wrapping is the meaning")]
const fn page_distance(first: u32, other: u32) -> i32 {
    (other.wrapping_sub(first).wrapping_mul(PAGE_BYTES) as i32) / PAGE_BYTES as i32
}
