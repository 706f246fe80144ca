//! A stream that is one of two kinds.

/// Implements [`Stream`](crate::stream::Stream) for an enum with two variants, each of one stream: `stream_of_either!(Transport: Tcp or
/// Tls)` for `Transport<S: Stream>` passes each call on to the variant's stream. It costs one comparison a call.
#[macro_export]
macro_rules! stream_of_either {
    ($name:ident: $first:ident or $second:ident) => {
        impl<S: $crate::stream::Stream> $crate::stream::Stream for $name<S> {
            type File = S::File;

            #[inline]
            fn poll_readable(&self, least: usize) -> ::std::task::Poll<Result<$crate::stream::Readable, $crate::stream::StreamError>> {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.poll_readable(least))
            }

            #[inline]
            fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.read(take))
            }

            fn take_received(&self, lengths: ::std::ops::RangeInclusive<usize>) -> Option<$crate::received::Received> {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.take_received(lengths))
            }

            fn received_at(&self) -> Option<$crate::time::Instant> {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.received_at())
            }

            fn is_reset(&self) -> bool {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.is_reset())
            }

            #[inline]
            fn write(&self, payload: $crate::payload::Payload<'_, Self::File>) {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.write(payload));
            }

            fn write_some(&self, bytes: &[u8]) -> usize {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.write_some(bytes))
            }

            fn sends_files(&self) -> bool {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.sends_files())
            }

            #[inline]
            fn poll_drained(&self, most: u64) -> ::std::task::Poll<Result<(), $crate::stream::StreamError>> {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.poll_drained(most))
            }

            #[inline]
            fn queued(&self) -> u64 {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.queued())
            }

            fn sent(&self) -> u64 {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.sent())
            }

            fn shutdown(&self) {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.shutdown());
            }

            fn set_task(&self, task: $crate::tasks::TaskId) {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.set_task(task));
            }

            fn set(&self, option: $crate::stream::StreamOption) -> Result<(), $crate::stream::Unsupported> {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.set(option))
            }

            fn peer(&self) -> $crate::address::Address {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.peer())
            }

            fn local(&self) -> $crate::address::Address {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.local())
            }

            fn info(&self) -> Option<$crate::stream::TransportInfo> {
                $crate::stream_of_either!(@call self, $first, $second, stream => stream.info())
            }
        }
    };
    (@call $this:expr, $first:ident, $second:ident, $stream:ident => $call:expr) => {
        match $this {
            Self::$first($stream) => $call,
            Self::$second($stream) => $call,
        }
    };
}
