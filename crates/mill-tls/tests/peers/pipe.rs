//! A stream in memory, which cuts what passes into pieces.

use mill_runtime::address::Address;
use mill_runtime::payload::Payload;
use mill_runtime::stream::{
    Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported,
};
use mill_runtime::tasks::TaskId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    pub(crate) bytes: RefCell<Vec<u8>>,
    pub(crate) is_finished: Cell<bool>,
    pub(crate) is_reset: Cell<bool>,
}

/// One end.
#[derive(Debug)]
pub(crate) struct Pipe {
    inbound: Rc<Wire>,
    outbound: Rc<Wire>,
    unread: RefCell<Vec<u8>>,
    /// Bytes that arrive at a time.
    piece: usize,
    resets: Cell<bool>,
}

impl Pipe {
    pub(crate) fn new(inbound: &Rc<Wire>, outbound: &Rc<Wire>, piece: usize) -> Self {
        Self {
            inbound: Rc::clone(inbound),
            outbound: Rc::clone(outbound),
            unread: RefCell::default(),
            piece,
            resets: Cell::new(false),
        }
    }
}

impl Stream for Pipe {
    type File = ();

    fn poll_readable(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        let mut unread = self.unread.borrow_mut();
        while unread.len() < least {
            let mut arriving = self.inbound.bytes.borrow_mut();
            if arriving.is_empty() {
                break;
            }
            let piece = self.piece.min(arriving.len());
            unread.extend(arriving.drain(..piece));
        }
        let finished = self.inbound.is_finished.get() && self.inbound.bytes.borrow().is_empty();
        if unread.len() >= least || finished {
            return Poll::Ready(Ok(Readable {
                unread: unread.len(),
                finished,
            }));
        }
        if self.inbound.is_reset.get() {
            return Poll::Ready(Err(StreamError::Reset));
        }
        Poll::Pending
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        let mut unread = self.unread.borrow_mut();
        let (consumed, result) = take(&mut unread);
        unread.drain(..consumed);
        result
    }

    fn write(&self, payload: Payload<'_, ()>) {
        assert!(!self.outbound.is_finished.get(), "nothing follows an end");
        let mut bytes = self.outbound.bytes.borrow_mut();
        match payload {
            Payload::Copy(more) => bytes.extend_from_slice(more),
            Payload::Shared(more, range) => bytes.extend_from_slice(&more[range]),
            Payload::File { .. } => unreachable!("TLS writes no files"),
        }
    }

    fn poll_drained(&self, _most: u64) -> Poll<Result<(), StreamError>> {
        Poll::Ready(Ok(()))
    }

    fn queued(&self) -> u64 {
        0
    }

    fn sent(&self) -> u64 {
        0
    }

    fn shutdown(&self) {
        self.outbound.is_finished.set(true);
    }

    fn set_task(&self, _task: TaskId) {}

    fn set(&self, option: StreamOption) -> Result<(), Unsupported> {
        if option == StreamOption::ResetOnClose {
            self.resets.set(true);
        }
        Ok(())
    }

    fn peer(&self) -> Address {
        Address::Ip("192.0.2.1:1".parse().unwrap())
    }

    fn local(&self) -> Address {
        Address::Ip("192.0.2.2:443".parse().unwrap())
    }

    fn info(&self) -> Option<TransportInfo> {
        None
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.resets.get() {
            self.outbound.is_reset.set(true);
        } else {
            self.outbound.is_finished.set(true);
        }
    }
}
