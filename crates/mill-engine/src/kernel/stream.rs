//! The handle that a task holds.

use super::Inner;
use super::transmit::stream_error;
use crate::files::KernelFile;
use mill_runtime::address::Address;
use mill_runtime::payload::Payload;
use mill_runtime::received::Received;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use mill_sys::address::Peer;
use mill_sys::socket;
use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::Poll;

/// One connection of a [`super::KernelEngine`]; closes it when dropped.
pub struct KernelStream {
    engine: Rc<Inner>,
    index: u32,
}

impl KernelStream {
    pub(super) fn new(engine: Rc<Inner>, index: u32) -> Self {
        Self { engine, index }
    }
}

impl Stream for KernelStream {
    type File = KernelFile;

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        self.engine.poll_readable(self.index, least)
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        self.engine.read(self.index, take)
    }

    fn take_received(&self, lengths: RangeInclusive<usize>) -> Option<Received> {
        self.engine.inbound.borrow_mut().give(self.index, &lengths)
    }

    fn is_reset(&self) -> bool {
        self.engine.is_reset(self.index)
    }

    fn write(&self, payload: Payload<'_, KernelFile>) {
        self.engine.write(self.index, payload);
    }

    fn write_some(&self, bytes: &[u8]) -> usize {
        self.engine.write_some(self.index, bytes)
    }

    fn poll_drained(&self, most: u64) -> Poll<Result<(), StreamError>> {
        self.engine.poll_drained(self.index, most)
    }

    fn queued(&self) -> u64 {
        self.engine.queued(self.index)
    }

    fn sent(&self) -> u64 {
        self.engine
            .with_slot(self.index, |slot| slot.sent)
            .unwrap_or(0)
    }

    fn shutdown(&self) {
        self.engine.shutdown(self.index);
    }

    fn set_task(&self, task: TaskId) {
        self.engine.with_slot(self.index, |slot| slot.task = task);
    }

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        let set = self.engine.with_slot(self.index, |slot| match option {
            StreamOption::NoDelay(on) => socket::set_nodelay(slot.descriptor.as_fd(), on),
            StreamOption::ResetOnClose => socket::set_reset_on_close(slot.descriptor.as_fd()),
        });
        match set {
            Some(Ok(())) => Ok(()),
            // A Unix socket has no such option.
            _ => Err(Unsupported),
        }
    }

    fn peer(&self) -> Address {
        self.engine
            .with_slot(self.index, |slot| slot.peer())
            .unwrap_or_else(|| Address::Unix([].into()))
    }

    fn local(&self) -> Address {
        let local = self
            .engine
            .with_slot(self.index, |slot| match slot.unix_path() {
                Some(path) => path.clone(),
                None => match socket::local_address(slot.descriptor.as_fd()) {
                    Ok(Peer::Ip(address)) => Address::Ip(address),
                    Ok(Peer::Unix) => Address::Unix([].into()),
                    Err(error) => {
                        slot.error = Some(stream_error(&error));
                        Address::Unix([].into())
                    }
                },
            });
        local.unwrap_or_else(|| Address::Unix([].into()))
    }

    fn mark(&self) -> Option<u32> {
        let mark = self
            .engine
            .with_slot(self.index, |slot| socket::mark(slot.descriptor.as_fd()));
        mark?.ok()
    }

    fn info(&self) -> Option<TransportInfo> {
        let info = self
            .engine
            .with_slot(self.index, |slot| socket::tcp_info(slot.descriptor.as_fd()));
        let (rtt, rtt_variation, snd_cwnd, rcv_space) = info?.ok()?;
        Some(TransportInfo {
            rtt,
            rtt_variation,
            snd_cwnd,
            rcv_space,
        })
    }
}

impl Drop for KernelStream {
    fn drop(&mut self) {
        self.engine.close(self.index);
    }
}

impl fmt::Debug for KernelStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KernelStream({})", self.index)
    }
}
