//! What carries a request: a connection of its own, or a stream of one that many share (HTTP/2).

use crate::call::Call;
use mill_runtime::address::Address;
use mill_runtime::payload::Payload;
use mill_runtime::received::Received;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use std::ops::RangeInclusive;
use std::task::Poll;

/// Both carry the bytes of HTTP/1 or of another protocol of its kind, one request after the other; a call is closed behind one.
#[derive(Debug)]
pub enum Carrier<S: Stream> {
    Own(S),
    Call(Call<S>),
}

/// Does the same to either.
macro_rules! either {
    ($this:expr, $stream:ident => $call:expr) => {
        match $this {
            Self::Own($stream) => $call,
            Self::Call($stream) => $call,
        }
    };
}

impl<S: Stream> Stream for Carrier<S> {
    type File = S::File;

    #[inline]
    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        either!(self, stream => stream.poll_readable(least))
    }

    #[inline]
    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        either!(self, stream => stream.read(take))
    }

    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        either!(self, stream => stream.take_received(lengths))
    }

    fn received_at(&self) -> Option<Instant> {
        either!(self, stream => stream.received_at())
    }

    fn is_reset(&self) -> bool {
        either!(self, stream => stream.is_reset())
    }

    #[inline]
    fn write(&self, payload: Payload<'_, Self::File>) {
        either!(self, stream => stream.write(payload));
    }

    fn write_some(&self, bytes: &[u8]) -> usize {
        either!(self, stream => stream.write_some(bytes))
    }

    fn sends_files(&self) -> bool {
        either!(self, stream => stream.sends_files())
    }

    #[inline]
    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        either!(self, stream => stream.poll_drained(most))
    }

    fn queued(&self) -> u64 {
        either!(self, stream => stream.queued())
    }

    fn sent(&self) -> u64 {
        either!(self, stream => stream.sent())
    }

    fn shutdown(&self) {
        either!(self, stream => stream.shutdown());
    }

    fn set_task(&self, task: TaskId) {
        either!(self, stream => stream.set_task(task));
    }

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        either!(self, stream => stream.set(option))
    }

    fn peer(&self) -> Address {
        either!(self, stream => stream.peer())
    }

    fn local(&self) -> Address {
        either!(self, stream => stream.local())
    }

    fn info(&self) -> Option<TransportInfo> {
        either!(self, stream => stream.info())
    }
}
