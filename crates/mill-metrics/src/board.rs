//! Where the workers of one process publish their figures, to each other and to other processes.
//!
//! A board is memory as words of 64 bits: in the memory of the process, or mapped, so that another process can read a
//! worker's last figures even if it does not run any more.
//!
//! ```text
//! header      16 words: magic, fingerprint, process, workers that there is room for, numbers in use
//! each worker 16 words of state, the server's figures, the stack's; begins at a multiple of 16 words
//! ```

use crate::{ServerCounters, StackCounters};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One board. Clones are the same board.
///
/// Each worker writes only to its own slot, so plain stores are enough: there is never a second writer whose addition
/// could be lost. Each figure is exact as of some turn of the worker. Two figures read together may belong to two
/// consecutive turns, as they may in nginx's shared statistics.
#[derive(Clone, Debug)]
pub struct Board(Words);

#[derive(Clone, Debug)]
enum Words {
    Own(Arc<[AtomicU64]>),
    Mapped(&'static [AtomicU64]),
}

/// A worker's slot on a board.
#[derive(Clone, Copy, Debug)]
pub struct BoardSlot<'a>(&'a [AtomicU64]);

/// Facts about a worker when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// Its index among the serving threads.
    pub place: u32,
    /// The number that the kernel knows the thread by.
    pub thread: u32,
    pub has_stack: bool,
    /// Nanoseconds of the monotonic clock.
    pub at_ns: u64,
}

/// The figures that a worker has published last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerFigures {
    /// Its number among all workers of the process.
    pub number: u32,
    pub has_ended: bool,
    pub beginning: Beginning,
    /// When its last turn ended, on the monotonic clock.
    pub turn_at_ns: u64,
    pub turns: u64,
    /// Turns that had something to do.
    pub turns_busy: u64,
    /// While it sleeps in the kernel: the latest end of its sleep, on the monotonic clock; `u64::MAX` is without a
    /// limit. 0 while it does not sleep.
    pub parked_until_ns: u64,
    pub server: ServerCounters,
    /// With a stack of its own.
    pub stack: Option<StackCounters>,
}

/// The words are no board, or the board of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBoard;

impl Board {
    /// The number of words of a board for so many workers.
    pub const fn words(workers: usize) -> usize {
        HEADER_WORDS + workers * PLACE_WORDS
    }

    /// A board that only this process sees; the slots below `workers` count as used.
    pub fn in_memory(workers: u32) -> Self {
        let words = (0..Self::words(workers as usize)).map(|_| AtomicU64::new(0));
        let board = Self(Words::Own(words.collect()));
        board.begin(0);
        board.store(Header::Used, u64::from(workers));
        board
    }

    /// A board in memory that other processes may have mapped too, all of it zero; `process` is the number of this
    /// process.
    pub fn mapped(words: &'static [AtomicU64], process: u32) -> Self {
        let board = Self(Words::Mapped(words));
        board.begin(process);
        board
    }

    /// The slot of a worker; `None` if there is none of this number.
    pub fn place(&self, number: u32) -> Option<BoardSlot<'_>> {
        BoardSlot::of(self.all(), number)
    }

    /// The word in which a worker publishes that it sleeps, for the code that puts it to sleep. Only mapped boards have
    /// one.
    pub fn parked_until(&self, number: u32) -> Option<&'static AtomicU64> {
        match &self.0 {
            Words::Own(_) => None,
            Words::Mapped(words) => BoardSlot::of(words, number)?
                .0
                .get(State::ParkedUntil as usize),
        }
    }

    /// Publishes that a worker has begun, with all figures zero.
    pub fn begin_worker(&self, number: u32, beginning: Beginning) {
        let Some(place) = self.place(number) else {
            return;
        };
        for word in place.0 {
            word.store(0, Ordering::Relaxed);
        }
        place.store(State::BoardSlot, u64::from(beginning.place));
        place.store(State::Thread, u64::from(beginning.thread));
        place.store(State::HasStack, u64::from(beginning.has_stack));
        place.store(State::BegunAt, beginning.at_ns);
        place.store(State::TurnAt, beginning.at_ns);
        place.store(State::Life, RUNNING);
        if let Some(used) = self.all().get(Header::Used as usize) {
            // The only word with several writers; each of them writes it once.
            used.fetch_max(u64::from(number) + 1, Ordering::Release);
        }
    }

    /// Publishes that a worker has ended; its figures stay.
    pub fn end_worker(&self, number: u32) {
        if let Some(place) = self.place(number) {
            place.store(State::Life, ENDED);
        }
    }

    /// The last figures of each worker, by number: those that run, and those that have ended.
    pub fn workers(&self) -> impl Iterator<Item = WorkerFigures> {
        let words = self.all();
        let used = load(words, Header::Used as usize);
        let numbers = 0..u32::try_from(used).unwrap_or(0);
        numbers.filter_map(|number| Some(BoardSlot::of(words, number)?.read(number)))
    }

    /// The sum of the workers' counters.
    pub fn server_counters(&self) -> ServerCounters {
        let words = self.all();
        let used = u32::try_from(load(words, Header::Used as usize)).unwrap_or(0);
        let places = (0..used).filter_map(|number| BoardSlot::of(words, number));
        places.map(|place| place.server()).sum()
    }

    fn all(&self) -> &[AtomicU64] {
        match &self.0 {
            Words::Own(words) => words,
            Words::Mapped(words) => words,
        }
    }

    fn begin(&self, process: u32) {
        let room = self.all().len().saturating_sub(HEADER_WORDS) / PLACE_WORDS;
        self.store(Header::Fingerprint, fingerprint());
        self.store(Header::Process, u64::from(process));
        self.store(Header::Room, room as u64);
        self.store(Header::Magic, MAGIC);
    }

    fn store(&self, word: Header, value: u64) {
        if let Some(word) = self.all().get(word as usize) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

impl BoardSlot<'_> {
    fn of(words: &[AtomicU64], number: u32) -> Option<BoardSlot<'_>> {
        let from = HEADER_WORDS + number as usize * PLACE_WORDS;
        words.get(from..from + PLACE_WORDS).map(BoardSlot)
    }

    /// Publishes that a turn has ended.
    pub fn show_turn(&self, at_ns: u64, is_busy: bool) {
        self.store(State::TurnAt, at_ns);
        self.add(State::Turns, 1);
        self.add(State::TurnsBusy, u64::from(is_busy));
    }

    /// Publishes the figures of the server. Costs one store a figure: no barrier, no allocation.
    pub fn show_server(&self, counters: &ServerCounters) {
        let shown = self.0.get(STATE_WORDS..).unwrap_or_default();
        for (shown, value) in shown.iter().zip(counters.values()) {
            shown.store(value, Ordering::Relaxed);
        }
    }

    /// Publishes that the last turn was busy after all: it had frames only.
    pub fn show_busy(&self) {
        self.add(State::TurnsBusy, 1);
    }

    /// Publishes the figures of the stack.
    pub fn show_stack(&self, counters: &StackCounters) {
        let shown = self.0.get(STACK_FROM..).unwrap_or_default();
        for (shown, value) in shown.iter().zip(counters.values()) {
            shown.store(value, Ordering::Relaxed);
        }
    }

    /// When the last turn ended, and the number of busy turns.
    pub fn last_turn(&self) -> (u64, u64) {
        (self.load(State::TurnAt), self.load(State::TurnsBusy))
    }

    /// The figures of the server.
    pub fn server(&self) -> ServerCounters {
        let shown = self.0.get(STATE_WORDS..).unwrap_or_default();
        let mut values = [0; ServerCounters::COUNT];
        for (value, shown) in values.iter_mut().zip(shown) {
            *value = shown.load(Ordering::Relaxed);
        }
        ServerCounters::from_values(values)
    }

    fn read(&self, number: u32) -> WorkerFigures {
        figures(number, |index| load(self.0, index))
    }

    fn load(&self, word: State) -> u64 {
        load(self.0, word as usize)
    }

    fn store(&self, word: State, value: u64) {
        if let Some(word) = self.0.get(word as usize) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn add(&self, word: State, more: u64) {
        self.store(word, self.load(word).wrapping_add(more));
    }
}

/// The number of a process, and its workers' figures: from a copy of its board's memory.
pub fn parse(words: &[u64]) -> Result<(u32, Vec<WorkerFigures>), NoBoard> {
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    let is_ours = word(Header::Magic as usize) == MAGIC
        && word(Header::Fingerprint as usize) == fingerprint();
    if !is_ours {
        return Err(NoBoard);
    }
    let process = u32::try_from(word(Header::Process as usize)).map_err(|_| NoBoard)?;
    let used = word(Header::Used as usize).min(word(Header::Room as usize));
    let numbers = 0..u32::try_from(used).map_err(|_| NoBoard)?;
    let workers = numbers.map(|number| {
        let from = HEADER_WORDS + number as usize * PLACE_WORDS;
        figures(number, |index| word(from + index))
    });
    Ok((process, workers.collect()))
}

fn figures(number: u32, word: impl Fn(usize) -> u64) -> WorkerFigures {
    let state = |state: State| word(state as usize);
    let small = |state: State| u32::try_from(word(state as usize)).unwrap_or(0);
    let mut server = [0; ServerCounters::COUNT];
    for (index, value) in server.iter_mut().enumerate() {
        *value = word(STATE_WORDS + index);
    }
    let mut stack = [0; StackCounters::COUNT];
    for (index, value) in stack.iter_mut().enumerate() {
        *value = word(STACK_FROM + index);
    }
    let has_stack = state(State::HasStack) != 0;
    WorkerFigures {
        number,
        has_ended: state(State::Life) == ENDED,
        beginning: Beginning {
            place: small(State::BoardSlot),
            thread: small(State::Thread),
            has_stack,
            at_ns: state(State::BegunAt),
        },
        turn_at_ns: state(State::TurnAt),
        turns: state(State::Turns),
        turns_busy: state(State::TurnsBusy),
        parked_until_ns: state(State::ParkedUntil),
        server: ServerCounters::from_values(server),
        stack: has_stack.then(|| StackCounters::from_values(stack)),
    }
}

fn load(words: &[AtomicU64], index: usize) -> u64 {
    words
        .get(index)
        .map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Distinguishes boards of different versions: a hash (FNV-1a) of their figures' names in order.
fn fingerprint() -> u64 {
    let server = ServerCounters::DESCRIPTIONS.iter();
    let all = server.chain(StackCounters::DESCRIPTIONS);
    let bytes = all.flat_map(|figure| figure.name.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Words of the header.
#[derive(Clone, Copy, Debug)]
enum Header {
    Magic,
    Fingerprint,
    Process,
    Room,
    /// The highest number of a worker so far, plus one.
    Used,
}

/// Words of a worker's state.
#[derive(Clone, Copy, Debug)]
enum State {
    Life,
    BoardSlot,
    Thread,
    HasStack,
    BegunAt,
    TurnAt,
    Turns,
    TurnsBusy,
    ParkedUntil,
}

/// `millboar`, as text.
const MAGIC: u64 = u64::from_le_bytes(*b"millboar");

/// Values of `State::Life`; 0 is an unused slot.
const RUNNING: u64 = 1;
const ENDED: u64 = 2;

/// 128 bytes: the processor fetches cache lines in pairs, and no worker's stores may slow down another worker.
const LINES_WORDS: usize = 16;

const HEADER_WORDS: usize = LINES_WORDS;
const STATE_WORDS: usize = LINES_WORDS;
const STACK_FROM: usize = STATE_WORDS + ServerCounters::COUNT;
const PLACE_WORDS: usize = (STACK_FROM + StackCounters::COUNT).next_multiple_of(LINES_WORDS);

#[cfg(test)]
mod tests;
