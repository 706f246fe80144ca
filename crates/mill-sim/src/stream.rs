//! One end of a connection, as a task holds it.

use crate::endpoint::{EndpointId, Piece};
use crate::files::SimFile;
use crate::link::SEGMENT_BYTES;
use crate::network::{Net, Network};
use mill_runtime::address::Address;
use mill_runtime::payload::Payload;
use mill_runtime::received::{ReceiveBuffers, Received};
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use std::cell::RefMut;
use std::ops::RangeInclusive;
use std::task::Poll;

/// A stream of the simulated world. It panics when it is used while [`Stream::read`] lends its bytes, because
/// an engine may share that buffer between all streams.
#[derive(Debug)]
pub struct SimStream {
    net: Net,
    end: EndpointId,
}

impl SimStream {
    pub(crate) const fn new(net: Net, end: EndpointId) -> Self {
        Self { net, end }
    }

    fn network(&self) -> RefMut<'_, Network> {
        let net = self.net.borrow_mut();
        assert!(
            !net.lending,
            "a stream was used while `Stream::read` lends its bytes"
        );
        net
    }
}

impl Stream for SimStream {
    type File = SimFile;

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        self.network().poll_readable(self.end, least)
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let mut unread = {
            let mut net = self.network();
            net.lending = true;
            net.end(self.end).receiving.take_contiguous()
        };
        let (consumed, result) = take(&mut unread);
        assert!(
            consumed <= unread.len(),
            "more bytes were consumed than were lent"
        );
        let left = unread.split_off(consumed);
        let mut net = self.net.borrow_mut();
        net.lending = false;
        net.end(self.end).receiving.put_back(left);
        net.on_consumed(self.end, consumed);
        result
    }

    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        self.read(|bytes| {
            if !lengths.contains(&bytes.len()) {
                return (0, None);
            }
            let (given, no_buffers) = (bytes.to_vec(), ReceiveBuffers::new(0, 0));
            let given = Received::new(given, 0..bytes.len(), no_buffers);
            (bytes.len(), Some(given))
        })
    }

    fn is_reset(&self) -> bool {
        self.network().end(self.end).error.is_some()
    }

    fn write(&self, payload: Payload<'_, SimFile>) {
        let len = payload.len();
        let piece = match payload {
            Payload::Copy(bytes) => Piece::Copy(bytes.to_vec(), 0),
            Payload::Shared(bytes, range) => Piece::Shared(bytes, range),
            Payload::File { file, offset, len } => Piece::File { file, offset, len },
        };
        self.network().write(self.end, piece, len);
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        self.network().poll_drained(self.end, most)
    }

    fn queued(&self) -> u64 {
        self.network().end(self.end).sending.queued
    }

    fn sent(&self) -> u64 {
        self.network().end(self.end).sending.sent
    }

    fn shutdown(&self) {
        self.network().shutdown(self.end);
    }

    fn set_task(&self, task: TaskId) {
        self.network().hand_over(self.end, task);
    }

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        let mut net = self.network();
        let same =
            |other: &StreamOption| std::mem::discriminant(other) == std::mem::discriminant(&option);
        if net.lacking_stream.iter().any(same) {
            return Err(Unsupported);
        }
        match option {
            // Segments leave at the end of the turn at the latest, whatever their length.
            StreamOption::NoDelay(_) => {}
            StreamOption::ResetOnClose => net.end(self.end).reset_on_close = true,
        }
        Ok(())
    }

    fn peer(&self) -> Address {
        self.network().end(self.end).peer.clone()
    }

    fn local(&self) -> Address {
        self.network().end(self.end).local.clone()
    }

    fn mark(&self) -> Option<u32> {
        self.network().end(self.end).mark
    }

    fn info(&self) -> Option<TransportInfo> {
        let mut net = self.network();
        let end = net.end(self.end);
        if matches!(end.local, Address::Unix(_)) {
            return None;
        }
        let segments = end.sending.window.div_ceil(SEGMENT_BYTES as u64);
        Some(TransportInfo {
            rtt: end.link.delay * 2,
            rtt_variation: end.link.jitter,
            snd_cwnd: u32::try_from(segments).unwrap_or(u32::MAX),
            rcv_space: u32::try_from(end.link.window_bytes).unwrap_or(u32::MAX),
        })
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        // While a test fails the network may be borrowed further up; then nothing reads it any more.
        if let Ok(mut net) = self.net.try_borrow_mut() {
            net.close(self.end);
        }
    }
}
