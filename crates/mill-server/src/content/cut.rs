//! Parts of a content: what ranges and slices leave of it.

use super::{Content, Origin, Part};
use mill_http::range::ByteRange;
use mill_runtime::payload::Shared;
use std::collections::VecDeque;

impl<File: Clone> Content<File> {
    /// Leaves these bytes alone, before any of them was given out.
    pub(crate) fn cut(&mut self, range: ByteRange) {
        self.origin.cut(range);
    }

    /// What is in these parts, one after the other.
    pub(crate) fn of_parts(parts: VecDeque<Part<File>>) -> Self {
        Self::of(Origin::of_parts(parts))
    }

    /// Copies of the handles to these bytes; nothing of content that is awaited.
    pub(crate) fn parts_of(&self, range: ByteRange) -> VecDeque<Part<File>> {
        self.origin.parts_of(range)
    }
}

impl<File: Clone> Origin<File> {
    /// Leaves these bytes alone, before any of them was given out.
    pub(super) fn cut(&mut self, range: ByteRange) {
        match self {
            Self::Absent => {}
            Self::Source(source) => source.cut(range),
            Self::Held(held) => held.cut(range),
            Self::Sliced(sliced) => sliced.cut(range),
            Self::Part(_) | Self::Parts(_) => {
                *self = Self::of_parts(self.parts_of(range));
            }
        }
    }

    fn of_parts(mut parts: VecDeque<Part<File>>) -> Self {
        match (parts.len(), parts.pop_front()) {
            (1, Some(only)) => Self::Part(only),
            (_, first) => {
                if let Some(first) = first {
                    parts.push_front(first);
                }
                Self::Parts(parts)
            }
        }
    }

    /// These bytes of what is in one part or, of a cache, in several.
    fn parts_of(&self, range: ByteRange) -> VecDeque<Part<File>> {
        let all: &mut dyn Iterator<Item = &Part<File>> = match self {
            Self::Part(part) => &mut std::iter::once(part),
            Self::Parts(parts) => &mut parts.iter(),
            Self::Absent | Self::Source(_) | Self::Held(_) | Self::Sliced(_) => {
                &mut std::iter::empty()
            }
        };
        let (mut start, mut found) = (0, VecDeque::new());
        for part in all {
            let end = start + part.len();
            let of_part = ByteRange {
                start: range.start.clamp(start, end) - start,
                end: range.end.clamp(start, end) - start,
            };
            found.extend(part.cut(of_part).filter(|part| !part.is_empty()));
            start = end;
        }
        found
    }
}

impl<File: Clone> Part<File> {
    /// A range of the bytes or of the file; `None` beyond the bytes.
    fn cut(&self, range: ByteRange) -> Option<Self> {
        match self {
            Self::Bytes(bytes, whole) => {
                let start = whole
                    .start
                    .saturating_add(usize::try_from(range.start).ok()?);
                let end = whole.start.saturating_add(usize::try_from(range.end).ok()?);
                (end <= whole.end).then(|| Self::Bytes(Shared::clone(bytes), start..end))
            }
            Self::File { file, offset, .. } => Some(Self::File {
                file: file.clone(),
                offset: offset.saturating_add(range.start),
                len: range.len(),
            }),
        }
    }
}
