//! The stacks of this process, each behind its lock: one, or with `stacks=thread` one for each thread that has sockets. The lock is biased to
//! the thread that uses it most, which takes it without an atomic operation.
//!
//! A thread's first accept, connect or poll makes its stack, or gives it the first thread's. What is made there is of that stack,
//! whichever threads use it later: its number tells which one.

use crate::descriptors::own;
use crate::say::say;
use crate::signals::ending;
use crate::signals::whole::Whole;
use crate::stack::Stack;
use crate::{borrowing, keeper, memory, sets, turner};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use mill_keeper::request::STACKS;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_sys::biased_lock::{BiasedGuard, BiasedLock};

/// The home of further threads is that of others.
pub(crate) const COUNT_MAX: u8 = Number::SLABS_MAX;

/// One stack's place.
struct Place {
    stack: BiasedLock<Option<Stack>>,
    status: AtomicU8,
    /// Turns that calls of the program have made, for the thread that turns it otherwise (turner.rs).
    turns: AtomicU32,
    /// Threads whose home it is.
    threads: AtomicU32,
}

static PLACES: [Place; COUNT_MAX as usize] = [const {
    Place {
        stack: BiasedLock::new(None),
        status: AtomicU8::new(WANTED),
        turns: AtomicU32::new(0),
        threads: AtomicU32::new(0),
    }
}; COUNT_MAX as usize];

/// A stack may be made, is made, or could not be.
const WANTED: u8 = 0;
const MADE: u8 = 1;
const FAILED: u8 = 2;

/// The process may have stacks from its keeper.
static IS_OFFERED: AtomicBool = AtomicBool::new(false);

/// A stack could not be made.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Each thread has its own.
static BY_THREAD: AtomicBool = AtomicBool::new(false);

/// How many are made.
static MADE_COUNT: AtomicU8 = AtomicU8::new(0);

thread_local! {
    /// Guards of this thread: it is inside the library, and what it opens and closes is the library's own.
    static INSIDE: Cell<u32> = const { Cell::new(0) };

    static HOME: Home = const { Home(Cell::new(None)) };
}

/// The number of a thread's stack, until the thread ends.
struct Home(Cell<Option<u8>>);

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(home) = self.0.take() {
            place(home).threads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn place(number: u8) -> &'static Place {
    &PLACES[usize::from(number % COUNT_MAX)]
}

/// The process may have stacks; at its beginning.
pub(crate) fn offer() {
    let by_thread = std::env::var(STACKS).is_ok_and(|word| word == "thread");
    BY_THREAD.store(by_thread, Ordering::Relaxed);
    for place in &PLACES {
        place.stack.permit_bias();
    }
    IS_OFFERED.store(true, Ordering::Release);
}

/// The number of this thread's stack.
#[inline]
fn home() -> u8 {
    match BY_THREAD.load(Ordering::Relaxed) {
        true => HOME
            .try_with(|home| home.0.get().unwrap_or_else(|| settle(home)))
            // The thread ends.
            .unwrap_or(0),
        false => 0,
    }
}

/// Chooses the home of a thread: where the fewest live.
#[cold]
fn settle(home: &Home) -> u8 {
    let threads = |number: &u8| place(*number).threads.load(Ordering::Relaxed);
    loop {
        let number = (0..COUNT_MAX).min_by_key(threads).unwrap_or(0);
        let before = threads(&number);
        let place = place(number);
        let settled = place.threads.compare_exchange(
            before,
            before + 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if settled.is_ok() {
            home.0.set(Some(number));
            return number;
        }
    }
}

pub(crate) fn is_inside() -> bool {
    INSIDE.get() > 0
}

/// A stack's lock, held.
pub(crate) struct Guard {
    number: u8,
    guard: BiasedGuard<'static, Option<Stack>>,
    /// Until the lock is released, which the field above does.
    _inside: Inside,
}

/// The thread is inside the library, from before it takes a lock until it has released that.
struct Inside {
    /// Until the thread is no longer inside.
    _whole: Whole,
}

impl Inside {
    fn enter() -> Self {
        let whole = Whole::begin();
        INSIDE.set(INSIDE.get() + 1);
        Self { _whole: whole }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(INSIDE.get() - 1);
    }
}

impl Guard {
    pub(crate) fn stack(&mut self) -> Option<&mut Stack> {
        self.guard.as_mut()
    }

    /// The stack is this process's now.
    ///
    /// # Safety
    /// This is a child after fork(2), and has no other thread.
    pub(crate) unsafe fn survive(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.guard.restart() };
    }

    /// Takes the stack away without ending it: it is the parent's.
    ///
    /// # Safety
    /// This is a child after fork(2), and has no other thread.
    unsafe fn forget(&mut self) {
        if let Some(mut stack) = self.guard.take() {
            stack.sockets.link_mut().close_ways();
            stack.forget_loans();
            borrowing::keep_former(self.number, stack);
        }
        // SAFETY: the caller's promise.
        unsafe { self.guard.restart() };
        let place = place(self.number);
        place.status.store(WANTED, Ordering::Release);
        place.threads.store(0, Ordering::Relaxed);
    }
}

/// Takes the stacks away without ending them: another process has them now, and this one makes none any more.
pub(crate) fn abandon_all(guards: &mut [Guard]) {
    for guard in guards {
        core::mem::forget(guard.guard.take());
        place(guard.number).status.store(FAILED, Ordering::Release);
    }
    MADE_COUNT.store(0, Ordering::Release);
}

/// The lock, for calls of the program: a thread that takes it often gets the bias, and one that has it loses it to others.
#[inline]
pub(crate) fn lock(number: u8) -> Guard {
    let inside = Inside::enter();
    Guard {
        number,
        guard: place(number).stack.lock(),
        _inside: inside,
    }
}

/// The lock, for what happens rarely: the bias stays with its thread, to which each visit is a barrier (membarrier(2)).
pub(crate) fn visit(number: u8) -> Guard {
    let inside = Inside::enter();
    Guard {
        number,
        guard: place(number).stack.visit(),
        _inside: inside,
    }
}

/// As [`visit`], unless another thread has the lock.
pub(crate) fn try_visit(number: u8) -> Option<Guard> {
    let inside = Inside::enter();
    Some(Guard {
        number,
        guard: place(number).stack.try_visit()?,
        _inside: inside,
    })
}

/// All locks, in the order in which they are always taken.
pub(crate) fn lock_all() -> Vec<Guard> {
    (0..COUNT_MAX).map(visit).collect()
}

/// In a child, which has all locks: the stacks are its parent's.
///
/// # Safety
/// This is a child after fork(2), and has no other thread.
pub(crate) unsafe fn forget_all(guards: &mut [Guard]) {
    for guard in guards {
        // SAFETY: the caller's promise.
        unsafe { guard.forget() };
    }
    sets::forget_all();
    MADE_COUNT.store(0, Ordering::Release);
    HOME.with(|home| home.0.set(None));
    keeper::leave();
}

/// Works on the stack of this number, if there is one.
pub(crate) fn with_stack<R>(number: u8, work: impl FnOnce(&mut Stack) -> R) -> Option<R> {
    // A signal's handler that interrupts a call of this thread would wait for its own lock.
    if is_inside() {
        return None;
    }
    let mut guard = lock(number);
    let stack = guard.stack()?;
    let result = work(stack);
    stack.heed_sleepers();
    Some(result)
}

/// Works on the stack of a socket or set.
pub(crate) fn with<R>(number: Number, work: impl FnOnce(&mut Stack) -> R) -> Option<R> {
    with_stack(number.slab(), work)
}

/// Works on a socket of the stack. To a signal's handler in the midst of another call the socket is busy.
pub(crate) fn on<R>(
    number: Number,
    work: impl FnOnce(&mut Stack) -> Result<R, Errno>,
) -> Result<R, Errno> {
    on_stack(number.slab(), work)
}

fn on_stack<R>(number: u8, work: impl FnOnce(&mut Stack) -> Result<R, Errno>) -> Result<R, Errno> {
    let busy = match is_inside() {
        true => Errno::AGAIN,
        false => Errno::BAD_DESCRIPTOR,
    };
    with_stack(number, work).unwrap_or(Err(busy))
}

/// Works on this thread's stack, where sockets are made.
pub(crate) fn on_home<R>(work: impl FnOnce(&mut Stack) -> Result<R, Errno>) -> Result<R, Errno> {
    on_stack(home(), work)
}

/// Whether the process has stacks, or may have some.
pub(crate) fn is_offered() -> bool {
    IS_OFFERED.load(Ordering::Acquire)
}

/// Whether a socket of this process may become a stack's by connect(2).
#[inline]
pub(crate) fn may_connect() -> bool {
    is_offered() && !HAS_FAILED.load(Ordering::Relaxed) && !is_inside()
}

/// Whether there is a stack.
pub(crate) fn is_made() -> bool {
    MADE_COUNT.load(Ordering::Acquire) > 0
}

/// The numbers of those that are made.
pub(crate) fn made() -> impl Iterator<Item = u8> {
    (0..COUNT_MAX).filter(|number| place(*number).status.load(Ordering::Acquire) == MADE)
}

/// This thread's stack if it is made, else any one.
pub(crate) fn home_or_any() -> Option<u8> {
    let home = home();
    match place(home).status.load(Ordering::Acquire) {
        MADE => Some(home),
        _ => made().next(),
    }
}

/// How many turns a stack has had.
#[inline]
pub(crate) fn turns(number: u8) -> &'static AtomicU32 {
    &place(number).turns
}

/// Whether this thread has a stack; makes it if there is none yet and the process may have one.
pub(crate) fn ensure() -> bool {
    if !is_offered() {
        return false;
    }
    let home = home();
    match place(home).status.load(Ordering::Acquire) {
        MADE => true,
        // Threads of programs may have little room (80 kB in Varnish), of which system calls need none.
        WANTED if !is_inside() => make_with_room(home),
        _ => false,
    }
}

/// Makes a stack on a machine stack of its own.
#[cold]
fn make_with_room(home: u8) -> bool {
    // Handlers of signals that come meanwhile run afterwards, on the thread's.
    let _whole = Whole::begin();
    match memory::can_be_had(STACK_BYTES) {
        true => stacker::grow(ROOM_BYTES, || make(home)),
        false => {
            place(home).status.store(FAILED, Ordering::Release);
            HAS_FAILED.store(true, Ordering::Relaxed);
            say_failed("there is no memory");
            false
        }
    }
}

/// What a stack takes, most of which are frames for which another process has the queue: where there is less, the library would end the program.
const STACK_BYTES: usize = 48 << 20;

/// Of the machine stack on which a stack is made.
const ROOM_BYTES: usize = 1 << 20;

#[cold]
fn make(number: u8) -> bool {
    let mut guards = match BY_THREAD.load(Ordering::Relaxed) {
        true => lock_all(),
        false => vec![visit(number)],
    };
    let status = &place(number).status;
    match status.load(Ordering::Acquire) {
        WANTED => {}
        status => return status == MADE,
    }
    let made = beside(&mut guards, || {
        let stack = Stack::new(number)?;
        let showing = stack.show();
        Ok((stack, showing))
    });
    let guard = guards.iter_mut().find(|guard| guard.number == number);
    match (made, guard) {
        (Ok((stack, showing)), Some(guard)) => {
            *guard.guard = Some(stack);
            status.store(MADE, Ordering::Release);
            MADE_COUNT.fetch_add(1, Ordering::Release);
            turner::start(number, showing);
            ending::begin();
            true
        }
        (made, _) => {
            status.store(FAILED, Ordering::Release);
            HAS_FAILED.store(true, Ordering::Relaxed);
            say_failed(&made.err().unwrap_or_default());
            false
        }
    }
}

/// Makes a stack beside those that the process has, which keep what they own of the device.
fn beside<R>(guards: &mut [Guard], make: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    for stack in guards.iter_mut().filter_map(Guard::stack) {
        stack.sockets.link().reserve_ownership();
    }
    let made = own::during(make);
    for stack in guards.iter_mut().filter_map(Guard::stack) {
        if let Err(error) = stack.sockets.link().renew_ownership() {
            say(&format!(
                "the device is another process's, too, and connections may be lost: {error}"
            ));
        }
    }
    made
}

fn say_failed(why: &str) {
    let what = match BY_THREAD.load(Ordering::Relaxed) {
        true => "a thread of process",
        false => "process",
    };
    let process = std::process::id();
    say(&format!(
        "{what} {process} stays on the kernel's network stack: {why}"
    ));
}
