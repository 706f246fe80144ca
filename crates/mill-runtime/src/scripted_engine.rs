//! An engine for this crate's own tests: it replays scripted events, and records the calls made to it.

use crate::address::Address;
use crate::engine::{
    Accept, ConnectOptions, DrainListener, Engine, Events, ListenError, ListenOptions, ListenerId,
    Listening, Park,
};
use crate::files::{
    DirectoryEntry, FileError, FileErrorKind, FilePiece, Files, Metadata, PoolLimits, Publication,
    StoredPath, Symlinks, Visibility,
};
use crate::payload::Payload;
use crate::scheduler::Scheduler;
use crate::spawned::Purpose;
use crate::stream::{Readable, Stream, StreamError, StreamOption, TransportInfo, Unsupported};
use crate::tasks::TaskId;
use crate::time::{Duration, Instant, UnixTime};
use crate::worker::{ConnectingWorker, Worker};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, Pending};
use core::task::Poll;

/// The engine's next events, and the calls made to it.
#[derive(Clone, Default)]
pub(crate) struct ScriptedEngine(Rc<Script>);

#[derive(Default)]
pub(crate) struct Script {
    now: Cell<Duration>,
    pub(crate) ready: RefCell<Vec<TaskId>>,
    pub(crate) acceptable: RefCell<Vec<ListenerId>>,
    /// The results of the calls of accept; then no connection waits.
    pub(crate) waiting: RefCell<VecDeque<Accept<ScriptedStream>>>,
    pub(crate) parks: RefCell<Vec<Park>>,
    /// Calls, in order.
    pub(crate) calls: RefCell<Vec<&'static str>>,
}

impl ScriptedEngine {
    pub(crate) fn script(&self) -> &Script {
        &self.0
    }

    pub(crate) fn instant(&self) -> Instant {
        Instant::from_nanos(0) + self.0.now.get()
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.0.now.set(self.0.now.get() + time);
    }

    fn note(&self, call: &'static str) {
        self.0.calls.borrow_mut().push(call);
    }
}

/// A worker without connections, and what its tasks share.
pub(crate) struct Tasks {
    pub(crate) engine: ScriptedEngine,
    pub(crate) scheduler: Rc<Scheduler>,
    pub(crate) worker: ConnectingWorker<ScriptedEngine, Pending<()>>,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        let engine = ScriptedEngine::default();
        let scheduler = Scheduler::new(engine.instant(), engine.clock().1);
        let worker = Worker::connecting(engine.clone(), Rc::clone(&scheduler));
        Self {
            engine,
            scheduler,
            worker,
        }
    }

    /// Starts a task.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) -> TaskId {
        let spawned = self.scheduler.spawn(Purpose::Finishing, future);
        spawned.expect("few tasks live")
    }

    /// So many turns.
    pub(crate) fn turns(&mut self, count: usize) {
        for _ in 0..count {
            self.worker.turn();
        }
    }
}

impl Engine for ScriptedEngine {
    type Stream = ScriptedStream;
    type Files = NoFiles;

    fn files(&self) -> &NoFiles {
        &NoFiles
    }

    fn clock(&self) -> (Instant, UnixTime) {
        let wall_clock = UnixTime {
            seconds: 0,
            nanos: 0,
        };
        (self.instant(), wall_clock)
    }

    fn now(&self) -> Instant {
        self.instant()
    }

    fn random(&self) -> u64 {
        4
    }

    fn listen(&self, _: &ListenOptions) -> Result<Listening, ListenError> {
        Err(ListenError {
            call: "socket",
            code: 0,
        })
    }

    fn close_listener(&self, _: ListenerId) {
        self.note("close_listener");
    }

    fn set_accepting(&self, _: ListenerId, accepting: bool) {
        self.note(if accepting { "resume" } else { "pause" });
    }

    fn accept(&self, _: ListenerId, _: TaskId) -> Accept<ScriptedStream> {
        self.note("accept");
        self.0
            .waiting
            .borrow_mut()
            .pop_front()
            .unwrap_or(Accept::Empty)
    }

    fn accepts_freely(&self, _: ListenerId) -> bool {
        false
    }

    fn connect(
        &self,
        _: &Address,
        _: &ConnectOptions,
        _: TaskId,
    ) -> Result<ScriptedStream, StreamError> {
        Err(StreamError::Unreachable)
    }

    fn poll(&self, park: Park, events: &mut Events) -> (Instant, UnixTime) {
        self.note("poll");
        self.0.parks.borrow_mut().push(park);
        events.ready.append(&mut self.0.ready.borrow_mut());
        events
            .acceptable
            .append(&mut self.0.acceptable.borrow_mut());
        self.clock()
    }

    fn settle(&self) {
        self.note("settle");
    }
}

impl DrainListener for ScriptedEngine {
    fn drain_listener(&self, _: ListenerId) -> bool {
        true
    }

    fn keep_listener(&self, _: ListenerId) {}
}

/// A connection without data.
#[derive(Debug)]
pub(crate) struct ScriptedStream;

impl Stream for ScriptedStream {
    type File = ();

    fn poll_readable(&self, _: usize) -> Poll<Result<Readable, StreamError>> {
        Poll::Pending
    }

    fn read<R>(&self, take: impl FnOnce(&mut [u8]) -> (usize, R)) -> R {
        take(&mut []).1
    }

    fn write(&self, _: Payload<'_, ()>) {}

    fn poll_drained(&self, _: u64) -> Poll<Result<(), StreamError>> {
        Poll::Ready(Ok(()))
    }

    fn queued(&self) -> u64 {
        0
    }

    fn sent(&self) -> u64 {
        0
    }

    fn shutdown(&self) {}

    fn set_task(&self, _: TaskId) {}

    fn set(&self, _: StreamOption) -> Result<(), Unsupported> {
        Err(Unsupported)
    }

    fn peer(&self) -> Address {
        Address::Unix([].into())
    }

    fn local(&self) -> Address {
        Address::Unix([].into())
    }

    fn info(&self) -> Option<TransportInfo> {
        None
    }
}

/// A file system without files.
#[derive(Debug)]
pub(crate) struct NoFiles;

const NOT_FOUND: FileError = FileError {
    kind: FileErrorKind::NotFound,
    call: "open",
    code: 2,
};

impl Files for NoFiles {
    type File = ();

    fn set_scheduler(&self, _: &Rc<Scheduler>) {}

    fn set_pool_limits(&self, _: PoolLimits) {}

    async fn open(&self, _: &[u8], _: Symlinks) -> Result<((), Metadata), FileError> {
        Err(NOT_FOUND)
    }

    async fn metadata(&self, _: &[u8], _: Symlinks) -> Result<Metadata, FileError> {
        Err(NOT_FOUND)
    }

    async fn read_at(&self, (): &(), _: u64, _: &mut [u8]) -> Result<usize, FileError> {
        Err(NOT_FOUND)
    }

    async fn load(&self, (): &(), _: u64, _: u64) -> Result<u64, FileError> {
        Err(NOT_FOUND)
    }

    async fn list(&self, _: &[u8]) -> Result<Vec<DirectoryEntry>, FileError> {
        Err(NOT_FOUND)
    }

    fn real_path(&self, _: &[u8]) -> Result<Vec<u8>, FileError> {
        Err(NOT_FOUND)
    }

    fn create(&self, _: &[u8], _: usize, _: Visibility) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    fn write_at(&self, (): &(), _: u64, _: &[u8]) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    fn rename(&self, _: &[u8], _: &[u8]) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    async fn publish(&self, (): &(), _: &[u8], _: &[u8], _: &Publication) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    fn remove(&self, _: &[u8]) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    async fn store(&self, _: &StoredPath<'_>, _: Vec<FilePiece>) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    async fn discard(&self, _: &[u8]) -> Result<(), FileError> {
        Err(NOT_FOUND)
    }

    async fn free_bytes(&self, _: &[u8]) -> Result<u64, FileError> {
        Err(NOT_FOUND)
    }
}
