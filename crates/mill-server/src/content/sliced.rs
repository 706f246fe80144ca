//! Content in slices: one is here, and the next one is asked for when that is given out.

use super::{Content, Origin, Pull};
use crate::exchange::SendError;
use crate::local::Local;
use mill_http::range::ByteRange;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::payload::Payload;
use std::fmt;
use std::future::poll_fn;
use std::task::Poll;

/// Brings slices.
pub(crate) trait Slices<File>: fmt::Debug {
    /// The slice that has this byte of the whole: its place, and its content, which is no [`Sliced`] one. Until it is there, it is
    /// asked for the same byte. [`SendError::Incomplete`] where it does not fit to those before it, which is logged.
    fn poll_slice(&mut self, byte: u64) -> Poll<Result<(ByteRange, Content<File>), SendError>>;

    /// All was given out.
    fn ended(&mut self);
}

/// The bytes of a whole, slice by slice.
#[derive(Debug)]
pub struct Sliced<File> {
    /// What is still to be given out.
    rest: ByteRange,
    /// The slice that it begins in, and its content from there on; `None` where that is to be asked for.
    current: Option<(ByteRange, Origin<File>)>,
    /// `current` has nothing else than what is to be given out.
    is_fitted: bool,
    slices: Box<dyn Slices<File>>,
    needs_client: bool,
}

impl<File> Sliced<File> {
    pub(super) const fn remaining(&self) -> u64 {
        self.rest.len()
    }

    pub(super) const fn needs_client(&self) -> bool {
        self.needs_client
    }
}

impl<File: Clone> Sliced<File> {
    /// All `complete_length` bytes; the content of one slice is here.
    pub(crate) fn new(
        complete_length: u64,
        (place, content): (ByteRange, Content<File>),
        slices: Box<dyn Slices<File>>,
        needs_client: bool,
    ) -> Self {
        let rest = ByteRange {
            start: 0,
            end: complete_length,
        };
        Self {
            rest,
            current: Some((place, content.origin)),
            is_fitted: false,
            slices,
            needs_client,
        }
    }

    /// Leaves these bytes alone; before the first of them is asked for.
    pub(super) fn cut(&mut self, range: ByteRange) {
        self.rest = ByteRange {
            start: range.start.min(self.rest.end),
            end: range.end.min(self.rest.end),
        };
    }

    /// Cuts the slice that is here, before anything of it is given out.
    fn fit(&mut self) {
        if std::mem::replace(&mut self.is_fitted, true) {
            return;
        }
        let Some((place, origin)) = &mut self.current else {
            return;
        };
        if !(place.start..place.end).contains(&self.rest.start) {
            self.current = None;
            return;
        }
        let wanted = ByteRange {
            start: self.rest.start - place.start,
            end: self.rest.end.min(place.end) - place.start,
        };
        if wanted.start > 0 || wanted.end < place.len() {
            origin.cut(wanted);
        }
    }

    /// The slice that what is to be given out begins in.
    async fn slice(&mut self) -> Result<&mut Origin<File>, SendError> {
        self.fit();
        let byte = self.rest.start;
        let is_over = |(place, _): &(ByteRange, Origin<File>)| place.end <= byte;
        if self.current.as_ref().is_none_or(is_over) {
            self.current = None;
            let slices = &mut self.slices;
            let (place, content) = poll_fn(|_| slices.poll_slice(byte)).await?;
            if !(place.start..place.end).contains(&byte) {
                return Err(SendError::Incomplete);
            }
            self.current = Some((place, content.origin));
            self.is_fitted = false;
            self.fit();
        }
        let current = self.current.as_mut();
        current
            .map(|(_, origin)| origin)
            .ok_or(SendError::Incomplete)
    }

    /// Lets what is awaited of the slice arrive, as far as it may be buffered.
    pub(super) fn read_ahead<E: Engine<Files: Files<File = File>>>(&mut self, local: &Local<E>) {
        self.fit();
        if let Some((_, Origin::Source(source))) = &mut self.current {
            source.read_ahead(local);
        }
    }

    /// The next piece. Costs a request of its own at the begin of each slice.
    pub(super) async fn next<'b, E: Engine<Files: Files<File = File>>>(
        &mut self,
        pull: &Pull<'_, E>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<Payload<'b, File>>, SendError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let most = pull.most.min(self.rest.len());
        let origin = self.slice().await?;
        let pull = Pull { most, ..*pull };
        let Some(piece) = origin.next_of_one(&pull, buffer).await? else {
            // It has fewer bytes than its head has said.
            return Err(SendError::Incomplete);
        };
        self.rest.start += piece.len();
        if self.rest.is_empty() {
            self.slices.ended();
        }
        Ok(Some(piece))
    }
}
