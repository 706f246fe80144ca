//! What the tasks of one worker share.

use crate::answer::Answer;
use crate::delivery::compressed::CompressedContents;
use crate::gzip::Encoder;
use crate::hot::HotAnswers;
use crate::log::{LogSender, WorkerLog};
use crate::open_files::OpenFiles;
use crate::request::{Outcome, Phase};
use crate::response::Response;
use crate::site::Site;
use mill_http::date::imf_fixdate;
use mill_metrics::{Board, ServerCounters};
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::pool::FuturePool;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::time::Instant;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of the engine's.
pub type FileOf<E> = <<E as Engine>::Files as Files>::File;

/// What handlers, phases and filters of a worker over this engine say.
pub type ResponseOf<E> = Response<FileOf<E>>;
pub type AnswerOf<E> = Answer<FileOf<E>>;
pub type PhaseOf<E> = Phase<FileOf<E>>;
pub type OutcomeOf<E> = Outcome<FileOf<E>>;

/// What the process is, for variables and logs.
#[derive(Clone)]
pub struct Environment {
    pub pid: u32,
    /// Of the worker, as the error log shows it.
    pub thread_id: u32,
    pub hostname: Arc<[u8]>,
    /// Seconds east of UTC at a Unix time, by the system's time zone.
    pub utc_offset: fn(i64) -> i32,
    /// The last number that any worker has taken for its connections.
    pub connection_numbers: Arc<AtomicU64>,
}

/// One worker's part of everything that its connections share: no other worker ever touches it.
pub struct Local<E: Engine> {
    pub engine: E,
    pub scheduler: Rc<Scheduler>,
    pub environment: Environment,
    /// This worker's part of the logs.
    pub log: WorkerLog,
    pub counters: RefCell<ServerCounters>,
    /// What each worker counted, as of its last turn.
    pub board: Board,
    /// The worker finishes what is under way and keeps no connection alive.
    pub draining: Cell<bool>,
    /// Until then it waits for requests that were under way when draining began.
    pub drain_grace_until: Cell<Instant>,
    pub hot: RefCell<HotAnswers>,
    /// Where requests that go the whole way run, and connections that are being ended.
    pub cycles: Rc<FuturePool>,
    pub finishing: Rc<FuturePool>,
    pub waiting: Rc<FuturePool>,
    /// Files that stay open between requests (`open_file_cache`).
    pub open_files: OpenFiles<FileOf<E>>,
    /// How many idle connections are to end, so that new ones can come.
    room_wanted: Cell<u32>,
    /// The configuration in force for the next request.
    site: RefCell<Arc<Site>>,
    /// The second of `date`, and `date` as `Date` shows it.
    date: Cell<(i64, [u8; 29])>,
    /// Emptied buffers, kept for the next answer.
    buffers: RefCell<Vec<Vec<u8>>>,
    /// The worker's number.
    index: u32,
    pub compressed: RefCell<CompressedContents>,
    /// Numbers that this worker has taken and not given yet: the next one, and how many.
    connection_numbers: Cell<(u64, u64)>,
    /// Those who compressed a content and can do so again, with their levels.
    encoders: RefCell<Vec<(u8, Encoder)>>,
}

/// What a worker's shared part is made with, besides its engine, its scheduler and its site.
#[derive(Debug)]
pub struct Shared {
    /// The worker's number.
    pub index: u32,
    pub environment: Environment,
    pub logs: LogSender,
    /// Where all workers show what they count.
    pub board: Board,
}

impl<E: Engine> Local<E> {
    pub fn new(engine: E, scheduler: Rc<Scheduler>, site: Arc<Site>, shared: Shared) -> Rc<Self> {
        let thread_id = shared.environment.thread_id;
        let open_files = OpenFiles::new(&scheduler, engine.random());
        Rc::new(Self {
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
            room_wanted: Cell::new(0),
            open_files,
            site: RefCell::new(site),
            date: Cell::new((0, imf_fixdate(0))),
            buffers: RefCell::default(),
            index: shared.index,
            compressed: RefCell::default(),
            connection_numbers: Cell::new((0, 0)),
            encoders: RefCell::default(),
        })
    }

    pub fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site.borrow())
    }

    /// What all workers counted, as of the last turn of each.
    pub fn all_counters(&self) -> ServerCounters {
        self.show_counters();
        self.board.server_counters()
    }

    /// Shows the others what this worker has counted until now, in the midst of a turn.
    pub fn show_counters(&self) {
        if let Some(place) = self.board.place(self.index) {
            place.show_server(&self.counters.borrow());
        }
    }

    /// Puts a configuration in force for all requests from now on.
    pub fn set_site(&self, site: Arc<Site>) {
        *self.site.borrow_mut() = site;
        self.hot.borrow_mut().clear();
    }

    /// Gives `use_date` the current second and its date, which is made once a second.
    pub fn date_of<R>(&self, use_date: impl FnOnce(i64, &[u8; 29]) -> R) -> R {
        let second = self.scheduler.wall_clock().seconds;
        let (mut known, mut date) = self.date.get();
        if known != second {
            (known, date) = (second, imf_fixdate(second));
            self.date.set((known, date));
        }
        use_date(known, &date)
    }

    /// Asks so many idle connections to end; whoever asks has all tasks polled.
    pub fn ask_for_room(&self, connections: u32) {
        self.room_wanted.set(connections);
    }

    /// Whether the idle connection that asks is to end.
    pub fn is_asked_for_room(&self) -> bool {
        let wanted = self.room_wanted.get();
        self.room_wanted.set(wanted.saturating_sub(1));
        wanted > 0
    }

    /// An empty buffer with some memory, for the length of a few lines of code. Give it back.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers
            .borrow_mut()
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    pub fn put_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// `$connection`: unique within the process. Numbers are taken from all workers' in blocks, so that a connection
    /// costs no atomic operation.
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

    /// One who compresses at `level`. Give it back: a new one costs 300 KB of fresh memory.
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

/// Boxes that are kept for requests that go the whole way; so many at once cost no allocation.
const POOLED_MAX: usize = 1024;

/// Buffers that are kept, their size when new, and the size above which one is not kept, in bytes.
const BUFFERS_MAX: usize = 64;
const BUFFER_BYTES: usize = 2048;
const BUFFER_BYTES_MAX: usize = 128 * 1024;

/// Encoders that are kept; each holds about 300 KB.
const ENCODERS_MAX: usize = 8;

/// Connection numbers that a worker takes at once.
const CONNECTION_NUMBERS: u64 = 64;
