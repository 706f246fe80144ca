//! What the connections of a worker share.

use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
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
    entrance: Option<RefCell<Entrance>>,
}

/// Lets so many handshakes a turn into their dear part: a turn with a hundred of them would be one in which the kept
/// connections wait for all hundred.
struct Entrance {
    scheduler: Rc<Scheduler>,
    /// How many are let in a turn.
    per_turn: usize,
    /// How many may still be let in this turn.
    left: usize,
    /// Those that wait, the first one first.
    waiting: VecDeque<TaskId>,
    /// Those of them whose turn this is.
    called: Vec<TaskId>,
}

/// A handshake's way through the entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// What was done costs little.
    Unasked,
    /// It asks now.
    Asked,
    /// It stands in the queue.
    Waiting,
    Admitted,
}

/// What has happened in a worker since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCounters {
    pub handshakes: u64,
    /// Of those, the ones that resumed a session.
    pub handshakes_resumed: u64,
    pub handshakes_failed: u64,
    /// Those that waited for a later turn, as one has only so many.
    pub handshakes_deferred: u64,
    /// Handshakes whose early data was taken.
    pub early_data_accepted: u64,
    /// Handshakes whose early data the client has to send again.
    pub early_data_rejected: u64,
    /// Records that could not be opened, or must not come.
    pub records_refused: u64,
    /// New keys that the peer or the number of records asked for.
    pub key_updates: u64,
}

impl TlsWorker {
    /// Without a bound on handshakes, and without [`TlsWorker::begin_turn`].
    pub fn new() -> Self {
        Self::with(None)
    }

    /// Lets one handshake of a client into each turn, or as many as [`TlsWorker::set_handshakes_per_turn`] says.
    pub fn of_server(scheduler: &Rc<Scheduler>) -> Self {
        Self::with(Some(RefCell::new(Entrance {
            scheduler: Rc::clone(scheduler),
            per_turn: 1,
            left: 0,
            waiting: VecDeque::new(),
            called: Vec::new(),
        })))
    }

    fn with(entrance: Option<RefCell<Entrance>>) -> Self {
        Self(Rc::new(Shared {
            sealed: RefCell::new(vec![0; SEALED_BYTES].into_boxed_slice()),
            flight: RefCell::default(),
            counters: Cell::default(),
            entrance,
        }))
    }

    pub fn set_handshakes_per_turn(&self, per_turn: usize) {
        if let Some(entrance) = &self.0.entrance {
            entrance.borrow_mut().per_turn = per_turn.max(1);
        }
    }

    /// Calls the first handshakes that wait; before each turn.
    pub fn begin_turn(&self) {
        if let Some(entrance) = &self.0.entrance {
            entrance.borrow_mut().begin_turn();
        }
    }

    /// Whether a handshake of the current task may go on now; one that may not is polled again in its turn.
    pub(crate) fn admits(&self, admission: &mut Admission) -> bool {
        let is_in = matches!(admission, Admission::Unasked | Admission::Admitted);
        let Some(entrance) = self.0.entrance.as_ref().filter(|_| !is_in) else {
            return true;
        };
        let before = *admission;
        *admission = entrance.borrow_mut().ask(before);
        if *admission == Admission::Waiting && before == Admission::Asked {
            self.count(|counters| counters.handshakes_deferred += 1);
        }
        *admission == Admission::Admitted
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

impl Entrance {
    fn begin_turn(&mut self) {
        self.left = self.per_turn;
        self.called.clear();
        let count = self.waiting.len().min(self.per_turn);
        self.called.extend(self.waiting.drain(..count));
        for task in &self.called {
            self.scheduler.wake(*task);
        }
    }

    fn ask(&mut self, admission: Admission) -> Admission {
        let task = self.scheduler.current();
        if let Some(at) = self.called.iter().position(|called| *called == task) {
            self.called.swap_remove(at);
            self.left = self.left.saturating_sub(1);
            return Admission::Admitted;
        }
        if admission == Admission::Waiting {
            return admission;
        }
        // Places of this turn are kept for those that were called.
        if self.waiting.is_empty() && self.left > self.called.len() {
            self.left -= 1;
            return Admission::Admitted;
        }
        self.waiting.push_back(task);
        Admission::Waiting
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

/// Sixteen of the longest records are handed over in one call.
const SEALED_BYTES: usize = 16 * (crate::record::PLAIN_BYTES_MAX + 64);
