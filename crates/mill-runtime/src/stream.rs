//! One connection: borrowed reads, handed-over writes.

mod either;

use crate::address::Address;
use crate::payload::Payload;
use crate::received::Received;
use crate::tasks::TaskId;
use crate::time::{Duration, Instant};
use core::future::{Future, poll_fn};
use core::ops::RangeInclusive;
use core::task::Poll;

/// What [`Stream::poll_readable`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readable {
    /// Bytes that have arrived and were not consumed yet.
    pub unread: usize,
    /// The peer has finished sending: after the unread bytes nothing follows.
    pub finished: bool,
}

/// Why a stream carries nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The peer reset the connection, or it vanished.
    Reset,
    /// Our connect was refused.
    Refused,
    /// No route, or no answer for as long as the system tries.
    Unreachable,
    /// The peer has ended the connection in the middle: FIN without the `close_notify` of TLS.
    Unfinished,
    /// The handshake of TLS failed, or what the peer sent breaks TLS.
    Tls,
    /// A file ended before the range that was promised; the peer sees a reset, never a wrong length.
    Truncated,
    /// Any other error; the operating system's error number.
    Other(i32),
}

/// An option of a connection. An engine that lacks one returns an error, and the caller decides what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOption {
    /// Send small segments at once (RFC 9293 3.7.4).
    NoDelay(bool),
    /// When closed, forget unsent data and send RST instead of FIN.
    ResetOnClose,
}

/// The engine does not have the requested option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported;

/// The transport's measurements of a connection, for `$tcpinfo_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportInfo {
    pub rtt: Duration,
    pub rtt_variation: Duration,
    /// Segments.
    pub snd_cwnd: u32,
    /// Bytes.
    pub rcv_space: u32,
}

/// One connection of an engine, a handle of a few bytes. Dropping it closes the connection: what was handed
/// over and fits the transport's buffer is still sent, then FIN.
///
/// Order of calls: wait with `poll_readable`, take with `read`; hand over with `write`, wait with `poll_drained`.
/// No method waits; a `Poll::Pending` means that the engine will report the stream's task when it changes.
pub trait Stream: 'static {
    /// A file whose ranges can be written.
    type File: Clone + 'static;

    /// Ready when at least `least` unread bytes have arrived, or when the peer has finished (then maybe fewer). Bytes
    /// that arrived before an error can be read before it is returned. Sends what was written but is still gathered
    /// before it lets the task wait.
    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>>;

    /// Passes all unread bytes, contiguous, to `take`, which returns how many of them it consumed.
    /// Never waits. `take` must not use a stream: the buffer may be shared by all streams of the worker.
    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R;

    /// Gives all unread bytes away with the memory that they stand in, if their number is in `lengths` and the engine can
    /// part with that: where there are many, this costs less than copying them.
    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        let _ = lengths;
        None
    }

    /// When the last of the unread bytes arrived, if the engine knows: one that receives for all streams at once
    /// does. `None`: not before the clock is read.
    fn received_at(&self) -> Option<Instant> {
        None
    }

    /// Whether the peer is known to have reset the connection, also while bytes that came before are unread. It reads
    /// nothing; the task is woken when that changes. An engine that cannot tell says no.
    fn is_reset(&self) -> bool {
        false
    }

    /// Hands over a payload. Never waits and always accepts: the caller bounds what is queued by waiting for
    /// [`Stream::poll_drained`] before it writes more. After an error of the stream the payload is dropped.
    fn write(&self, payload: Payload<'_, Self::File>);

    /// Hands over a copy of as much of `bytes` as is worth it now, at least one byte; returns how many. An engine that can
    /// sends from `bytes` itself, and copies at most [`WRITE_SOME_BYTES`] of what the transport does not take.
    fn write_some(&self, bytes: &[u8]) -> usize {
        let some = bytes.get(..WRITE_SOME_BYTES).unwrap_or(bytes);
        self.write(Payload::Copy(some));
        some.len()
    }

    /// Whether [`Payload::File`] may be written: TLS must have a file's bytes in memory.
    fn sends_files(&self) -> bool {
        true
    }

    /// Ready when at most `most` bytes of what was written still wait for the transport.
    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>>;

    /// Bytes that were written and not yet taken by the transport.
    fn queued(&self) -> u64;

    /// Bytes that the transport has taken in the stream's life; grows when the peer reads.
    fn sent(&self) -> u64;

    /// Sends FIN after everything that was handed over; reading goes on.
    fn shutdown(&self);

    /// From now on `task` is reported when the stream changes, and no longer the former one: the stream is handed
    /// over. What changed before is not reported again, so `task` looks for itself, with `poll_readable` or
    /// `poll_drained`; the former task may still be polled once for what was already reported.
    fn set_task(&self, task: TaskId);

    fn set(&self, option: StreamOption) -> Result<(), Unsupported>;

    fn peer(&self) -> Address;

    fn local(&self) -> Address;

    /// The mark that the packet filter gave to the first segment of a connection that was accepted. `None`: the engine has
    /// none. It costs the kernel's engine a system call.
    fn mark(&self) -> Option<u32> {
        None
    }

    /// What the transport measured, if the engine can tell.
    fn info(&self) -> Option<TransportInfo>;

    /// Waits as [`Stream::poll_readable`].
    fn readable(&self, least: usize) -> impl Future<Output = Result<Readable, StreamError>> {
        poll_fn(move |_| self.poll_readable(least))
    }

    /// Waits as [`Stream::poll_drained`].
    fn drained(&self, most: u64) -> impl Future<Output = Result<(), StreamError>> {
        poll_fn(move |_| self.poll_drained(most))
    }
}

/// Bytes that [`Stream::write_some`] copies at most.
pub const WRITE_SOME_BYTES: usize = 64 * 1024;
