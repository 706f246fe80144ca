//! The state that the tasks of one worker share.

use crate::answer::Answer;
use crate::delivery::compressed::CompressedContents;
use crate::gzip::Encoder;
use crate::hot::HotAnswers;
use crate::log::{LogSender, WorkerLog};
use crate::open_files::OpenFiles;
use crate::proxy::trace::UpstreamTrace;
use crate::request::{Message, Outcome, Phase, Request};
use crate::resolvers::WorkerResolvers;
use crate::response::Response;
use crate::site::Site;
use crate::upstreams::WorkerUpstreams;
use crate::wakes::{Doorbell, Wakes};
use mill_http::date::imf_fixdate;
use mill_http::status::Status;
use mill_metrics::{Board, ServerCounters};
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::pool::FuturePool;
use mill_runtime::received::Received;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Instant;
use mill_tls::worker::TlsWorker;
use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The engine's file type.
pub type FileOf<E> = <<E as Engine>::Files as Files>::File;

/// The response type of a worker over this engine.
pub type ResponseOf<E> = Response<FileOf<E>>;
pub type AnswerOf<E> = Answer<FileOf<E>>;
pub type PhaseOf<E> = Phase<FileOf<E>>;
pub type OutcomeOf<E> = Outcome<FileOf<E>>;

/// Facts about the process, for variables and logs.
#[derive(Clone)]
pub struct Environment {
    pub pid: u32,
    /// Of the process that has started this one: the master, unless there is none.
    pub parent_pid: u32,
    /// Of the worker, as the error log shows it.
    pub thread_id: u32,
    pub hostname: Arc<[u8]>,
    /// Seconds east of UTC at a Unix time, by the system's time zone.
    pub utc_offset: fn(i64) -> i32,
    /// The last number that any worker has taken for its connections.
    pub connection_numbers: Arc<AtomicU64>,
}

/// The state that all connections of one worker share: no other worker ever touches it.
pub struct Local<E: Engine> {
    itself: Weak<Self>,
    pub engine: E,
    pub scheduler: Rc<Scheduler>,
    pub environment: Environment,
    /// This worker's part of the logs.
    pub log: WorkerLog,
    pub counters: RefCell<ServerCounters>,
    /// Each worker's counters as of its last turn.
    pub board: Board,
    /// The worker finishes requests in progress and keeps no connection alive.
    pub draining: Cell<bool>,
    /// Until then idle connections wait for requests that were in flight when draining began.
    pub drain_grace_until: Cell<Instant>,
    pub hot: RefCell<HotAnswers>,
    /// The pool of boxes for requests that go the whole way, and for connections that are being closed.
    pub cycles: Rc<FuturePool>,
    pub finishing: Rc<FuturePool>,
    pub waiting: Rc<FuturePool>,
    pub tunnels: Rc<FuturePool>,
    pub http2: Rc<FuturePool>,
    pub sessions: Rc<FuturePool>,
    /// Files that stay open between requests (`open_file_cache`).
    pub open_files: OpenFiles<FileOf<E>>,
    /// How many idle connections are to close to make room for new ones.
    room_wanted: Cell<u32>,
    /// The configuration in force for the next request.
    site: RefCell<Arc<Site>>,
    /// Since when it is.
    pub site_since: Cell<Instant>,
    /// The second of `date`, and `date` as `Date` shows it.
    date: Cell<(i64, [u8; 29])>,
    /// Emptied buffers, kept for reuse.
    buffers: RefCell<Vec<Vec<u8>>>,
    /// Buffers for long pieces of files, as they were left.
    long_buffers: RefCell<Vec<Vec<u8>>>,
    /// Emptied lists of received pieces, likewise.
    pieces: RefCell<Vec<Vec<Received>>>,
    /// Messages of requests that are over, kept for their memory.
    messages: RefCell<Vec<Message>>,
    /// Traces of such requests, likewise.
    traces: RefCell<Vec<Rc<UpstreamTrace>>>,
    /// Requests that are over, and answers that were sent, likewise.
    #[expect(clippy::vec_box, reason = "the boxes are used again")]
    requests: RefCell<Vec<Box<Request>>>,
    responses: RefCell<Vec<Box<ResponseOf<E>>>>,
    /// The worker's number.
    index: u32,
    pub compressed: RefCell<CompressedContents>,
    /// Connections to upstream servers, and the choice among these.
    pub(crate) upstreams: WorkerUpstreams<E>,
    /// Buffers of all connections under TLS.
    pub(crate) tls: TlsWorker,
    /// Its tasks that other threads wake.
    pub(crate) wakes: Wakes,
    /// Names to addresses.
    pub(crate) resolvers: WorkerResolvers,
    /// Numbers that this worker has reserved and not used yet: the next one, and how many.
    connection_numbers: Cell<(u64, u64)>,
    /// The number in the name of the last temporary file.
    temporary_number: Cell<u64>,
    /// Encoders to be reused, with their levels.
    encoders: RefCell<Vec<(u8, Encoder)>>,
}

/// The arguments of a worker's shared state, besides its engine, its scheduler and its site.
#[derive(Debug)]
pub struct Shared {
    /// The worker's number.
    pub index: u32,
    pub environment: Environment,
    pub logs: LogSender,
    /// Where all workers publish their counters.
    pub board: Board,
    /// How other threads end the sleep of its engine.
    pub doorbell: Doorbell,
}

impl<E: DatagramEngine> Local<E> {
    pub fn new(engine: E, scheduler: Rc<Scheduler>, site: Arc<Site>, shared: Shared) -> Rc<Self> {
        let thread_id = shared.environment.thread_id;
        let now = scheduler.now();
        let open_files = OpenFiles::new(&scheduler, engine.random());
        let upstreams = WorkerUpstreams::new(&scheduler);
        let resolvers = WorkerResolvers::new(&engine, &scheduler);
        let tls = TlsWorker::of_server(&scheduler);
        Rc::new_cyclic(|itself| Self {
            itself: Weak::clone(itself),
            engine,
            scheduler,
            environment: shared.environment,
            log: WorkerLog::new(&shared.logs, thread_id),
            counters: RefCell::default(),
            board: shared.board,
            draining: Cell::new(false),
            drain_grace_until: Cell::new(Instant::FAR),
            hot: RefCell::default(),
            cycles: FuturePool::new(POOLED_MAX),
            finishing: FuturePool::new(POOLED_MAX),
            waiting: FuturePool::new(POOLED_MAX),
            tunnels: FuturePool::new(POOLED_MAX),
            http2: FuturePool::new(POOLED_MAX),
            sessions: FuturePool::new(POOLED_MAX),
            room_wanted: Cell::new(0),
            open_files,
            tls,
            site: RefCell::new(site),
            site_since: Cell::new(now),
            date: Cell::new((0, imf_fixdate(0))),
            buffers: RefCell::default(),
            long_buffers: RefCell::default(),
            pieces: RefCell::default(),
            messages: RefCell::default(),
            traces: RefCell::default(),
            requests: RefCell::default(),
            responses: RefCell::default(),
            index: shared.index,
            compressed: RefCell::default(),
            upstreams,
            wakes: Wakes::new(shared.doorbell),
            resolvers,
            connection_numbers: Cell::new((0, 0)),
            temporary_number: Cell::new(u64::from(shared.index) * TEMPORARY_NUMBERS),
            encoders: RefCell::default(),
        })
    }
}

impl<E: Engine> Local<E> {
    pub fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site.borrow())
    }

    /// The worker's number.
    pub(crate) const fn index(&self) -> u32 {
        self.index
    }

    /// The sum of all workers' counters, as of the last turn of each.
    pub fn all_counters(&self) -> ServerCounters {
        self.show_counters();
        self.board.server_counters()
    }

    /// Publishes this worker's counters in the middle of a turn.
    pub fn show_counters(&self) {
        if let Some(place) = self.board.place(self.index) {
            place.show_server(&self.full_counters());
        }
    }

    /// This worker's counters, with those that TLS keeps of its own.
    pub(crate) fn full_counters(&self) -> RefMut<'_, ServerCounters> {
        let mut counters = self.counters.borrow_mut();
        let tls = self.tls.counters();
        counters.tls_handshakes = tls.handshakes;
        counters.tls_handshakes_resumed = tls.handshakes_resumed;
        counters.tls_handshakes_failed = tls.handshakes_failed;
        counters.tls_handshakes_deferred = tls.handshakes_deferred;
        counters.tls_early_data_accepted = tls.early_data_accepted;
        counters.tls_early_data_rejected = tls.early_data_rejected;
        counters.tls_records_refused = tls.records_refused;
        counters.tls_key_updates = tls.key_updates;
        counters
    }

    /// Puts a configuration in force for all requests from now on.
    pub fn set_site(&self, site: Arc<Site>) {
        self.upstreams.forget_unused(&site);
        *self.site.borrow_mut() = site;
        self.site_since.set(self.scheduler.now());
        self.hot.borrow_mut().clear();
        self.requests.borrow_mut().clear();
        self.resolvers.forget_unused();
    }

    /// Passes the current second and its date, which is made once a second, to `use_date`.
    pub fn date_of<R>(&self, use_date: impl FnOnce(i64, &[u8; 29]) -> R) -> R {
        let second = self.scheduler.wall_clock().seconds;
        let (mut known, mut date) = self.date.get();
        if known != second {
            (known, date) = (second, imf_fixdate(second));
            self.date.set((known, date));
        }
        use_date(known, &date)
    }

    /// Asks so many idle connections to close; the caller has all tasks polled.
    pub fn ask_for_room(&self, connections: u32) {
        self.room_wanted.set(connections);
    }

    /// Whether the calling idle connection is to close.
    pub fn is_asked_for_room(&self) -> bool {
        let wanted = self.room_wanted.get();
        self.room_wanted.set(wanted.saturating_sub(1));
        wanted > 0
    }

    /// An empty buffer with some capacity, for short use. Return it by [`Self::put_buffer`].
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers
            .borrow_mut()
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    /// A buffer that is to be overwritten up to `bytes`: a long one keeps what was in it, as clearing it would cost as much
    /// as a read. Return it by [`Self::put_buffer`].
    pub(crate) fn take_buffer_for(&self, bytes: usize) -> Vec<u8> {
        if bytes <= BUFFER_BYTES_MAX {
            return self.take_buffer();
        }
        let long = self.long_buffers.borrow_mut().pop();
        long.unwrap_or_else(|| vec![0; bytes])
    }

    pub fn put_buffer(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() > BUFFER_BYTES_MAX {
            let mut long = self.long_buffers.borrow_mut();
            if long.len() < LONG_BUFFERS_MAX && buffer.capacity() <= LONG_BUFFER_BYTES_MAX {
                long.push(buffer);
            }
            return;
        }
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() >= BUFFER_BYTES && buffers.len() < BUFFERS_MAX {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// An empty list with some capacity. Return it by [`Self::put_pieces`].
    pub(crate) fn take_pieces(&self) -> Vec<Received> {
        let pieces = self.pieces.borrow_mut().pop();
        pieces.unwrap_or_else(|| Vec::with_capacity(PIECES))
    }

    pub(crate) fn put_pieces(&self, mut pieces: Vec<Received>) {
        let mut kept = self.pieces.borrow_mut();
        if kept.len() < BUFFERS_MAX {
            pieces.clear();
            kept.push(pieces);
        }
    }

    /// An empty message. Return it by [`Self::put_message`] when its request is over.
    pub(crate) fn take_message(&self) -> Message {
        self.messages.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn put_message(&self, mut message: Message) {
        let mut messages = self.messages.borrow_mut();
        if messages.len() < BUFFERS_MAX && message.bytes.capacity() <= BUFFER_BYTES_MAX {
            message.bytes.clear();
            message.head.clear();
            messages.push(message);
        }
    }

    /// A request that is over, for its memory. Return it by [`Self::put_request`].
    pub(crate) fn take_request(&self) -> Option<Box<Request>> {
        self.requests.borrow_mut().pop()
    }

    /// Keeps the memory of a request that is over. One of an earlier configuration would keep that alive.
    pub(crate) fn put_request(&self, mut request: Box<Request>) {
        let mut requests = self.requests.borrow_mut();
        if requests.len() < BUFFERS_MAX && Arc::ptr_eq(&request.site, &self.site.borrow()) {
            request.forget();
            requests.push(request);
        }
    }

    /// An answer without fields or content. Return it by [`Self::put_response`] once it was sent.
    pub(crate) fn take_response(&self, status: Status) -> Box<ResponseOf<E>> {
        match self.responses.borrow_mut().pop() {
            Some(mut response) => {
                response.status = status;
                response
            }
            None => Box::new(Response::empty(status)),
        }
    }

    pub(crate) fn put_response(&self, mut response: Box<ResponseOf<E>>) {
        let mut responses = self.responses.borrow_mut();
        if responses.len() < BUFFERS_MAX {
            let mut fields = std::mem::take(&mut response.fields);
            fields.clear();
            *response = Response {
                fields,
                ..Response::empty(Status::OK)
            };
            responses.push(response);
        }
    }

    /// An empty trace. Return it by [`Self::put_trace`] when its request is over.
    pub(crate) fn take_trace(&self) -> Rc<UpstreamTrace> {
        self.traces.borrow_mut().pop().unwrap_or_default()
    }

    /// For a task that outlives the request which starts it.
    pub(crate) fn shared(&self) -> Rc<Self> {
        self.itself.upgrade().expect("it is borrowed from an `Rc`")
    }

    /// Takes a trace back, unless something else still holds it.
    pub(crate) fn put_trace(&self, trace: Option<Rc<UpstreamTrace>>) {
        let mut traces = self.traces.borrow_mut();
        if let Some(mut trace) = trace
            && let Some(alone) = Rc::get_mut(&mut trace)
            && traces.len() < BUFFERS_MAX
        {
            alone.clear();
            traces.push(trace);
        }
    }

    /// `$connection`: unique within the process. A worker reserves numbers in blocks, so that a connection costs no
    /// atomic operation.
    pub fn next_connection_number(&self) -> u64 {
        let (mut next, mut left) = self.connection_numbers.get();
        if left == 0 {
            let taken = &self.environment.connection_numbers;
            next = taken.fetch_add(CONNECTION_NUMBERS, Ordering::Relaxed) + 1;
            left = CONNECTION_NUMBERS;
        }
        self.connection_numbers.set((next + 1, left - 1));
        next
    }

    /// The number of the next temporary file.
    pub(crate) fn next_temporary_number(&self) -> u64 {
        let number = self.temporary_number.get() + 1;
        self.temporary_number.set(number);
        number
    }

    /// The numbers from here on are taken.
    pub(crate) fn skip_temporary_numbers(&self) {
        let skipped = self.engine.random() % TEMPORARY_NUMBERS;
        self.temporary_number
            .set(self.temporary_number.get() + skipped);
    }

    /// An encoder of `level`. Return it: a new one costs 300 KB of fresh memory.
    pub fn take_encoder(&self, level: u8) -> Encoder {
        let mut encoders = self.encoders.borrow_mut();
        let known = encoders.iter().position(|(other, _)| *other == level);
        known.map_or_else(
            || Encoder::new(level),
            |known| encoders.swap_remove(known).1,
        )
    }

    pub fn put_encoder(&self, level: u8, mut encoder: Encoder) {
        let mut encoders = self.encoders.borrow_mut();
        if encoders.len() < ENCODERS_MAX {
            encoder.restart();
            encoders.push((level, encoder));
        }
    }
}

impl<E: Engine> fmt::Debug for Local<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Local({} buffers)", self.buffers.borrow().len())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Environment {{ pid: {} }}", self.pid)
    }
}

/// Boxes kept for requests that go the whole way; so many concurrent ones need no allocation.
const POOLED_MAX: usize = 1024;

/// Buffers, messages, traces, requests and answers that are kept, a buffer's initial size, and the size above which one is freed, in bytes.
const BUFFERS_MAX: usize = 64;
const BUFFER_BYTES: usize = 2048;
const BUFFER_BYTES_MAX: usize = 128 * 1024;

/// Longer buffers that are kept, each for a piece of a file that is read while no other is, and their size at most.
const LONG_BUFFERS_MAX: usize = 8;
const LONG_BUFFER_BYTES_MAX: usize = 512 * 1024;

/// Received pieces for which a new list has room.
const PIECES: usize = 4;

/// Encoders that are kept; each holds about 300 KB.
const ENCODERS_MAX: usize = 8;

/// Connection numbers that a worker reserves at once.
const CONNECTION_NUMBERS: u64 = 64;

/// How far the numbers of two workers' first temporary files are apart.
const TEMPORARY_NUMBERS: u64 = 1_000_000;
