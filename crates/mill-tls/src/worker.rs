//! What the connections of a worker share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// Buffers and counters of a worker, of which each connection under TLS holds a handle.
#[derive(Clone)]
pub struct TlsWorker(Rc<Shared>);

pub(crate) struct Shared {
    /// Where records are sealed, and from where the engine takes them: no connection has a buffer of its own.
    pub(crate) sealed: RefCell<Box<[u8]>>,
    /// Messages of a handshake before they are handed over.
    pub(crate) flight: RefCell<Vec<u8>>,
    pub(crate) counters: Cell<TlsCounters>,
}

/// What has happened in a worker since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCounters {
    pub handshakes: u64,
    /// Of those, the ones that resumed a session.
    pub handshakes_resumed: u64,
    pub handshakes_failed: u64,
    /// Records that could not be opened, or must not come.
    pub records_refused: u64,
    /// New keys that the peer or the number of records asked for.
    pub key_updates: u64,
}

impl TlsWorker {
    pub fn new() -> Self {
        Self(Rc::new(Shared {
            sealed: RefCell::new(vec![0; SEALED_BYTES].into_boxed_slice()),
            flight: RefCell::default(),
            counters: Cell::default(),
        }))
    }

    pub fn counters(&self) -> TlsCounters {
        self.0.counters.get()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut TlsCounters)) {
        let mut counters = self.0.counters.get();
        change(&mut counters);
        self.0.counters.set(counters);
    }
}

impl Default for TlsWorker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TlsWorker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TlsWorker({:?})", self.counters())
    }
}

/// Four of the longest records are handed over in one call.
const SEALED_BYTES: usize = 4 * (crate::record::PLAIN_BYTES_MAX + 64);
