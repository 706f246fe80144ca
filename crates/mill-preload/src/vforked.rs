//! vfork(2). The child is a copy of this process, for one in its memory would close its sockets. The parent waits all the same until the
//! child has become another program or has ended.
//!
//! It waits for the end of a pipe: what can write there is closed by exec(2), and by the end of a process whatever ends it. Only the child
//! has it: a process that it forks closes it first, and other threads fork before the pipe is made, or once the parent has left it
//! to the child (process.rs has the locks).

use crate::descriptors::{self, Entry, own};
use crate::memory::errno;
use crate::{originals, stacks, turner};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use mill_sockets::errno::Errno;

/// Where a thread is.
#[derive(Clone, Copy)]
enum Step {
    /// Not in vfork(2).
    Elsewhere,
    /// About to fork.
    Begun,
    /// It forks, and these are the reading and the writing end.
    Forking(c_int, c_int),
    /// The parent, which waits here.
    Parent(c_int),
}

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step::Elsewhere) };
}

/// What this process holds for a parent that waits, or -1.
static HELD: AtomicI32 = AtomicI32::new(-1);

/// Runs a call that forks; in the parent it returns late. Signals come after that, as in Linux.
pub(crate) fn wait<N>(fork: impl FnOnce() -> N) -> N {
    if !stacks::is_offered() {
        return fork();
    }
    let signals = turner::block_signals();
    STEP.set(Step::Begun);
    let result = fork();
    if let Step::Parent(reader) = STEP.replace(Step::Elsewhere) {
        wait_for_end(reader);
        close(reader);
    }
    turner::restore_signals(&signals);
    result
}

/// A process without descriptors for it does not wait.
pub(crate) fn before_fork() {
    if matches!(STEP.get(), Step::Begun) {
        let made = own::during(make);
        STEP.set(made.map_or(Step::Elsewhere, |[read, write]| Step::Forking(read, write)));
    }
}

fn make() -> Option<[c_int; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: there is room for two numbers.
    let made = unsafe { originals::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    (made == 0).then(|| ends.map(own::note))
}

/// Also if there is no child: the pipe ends then.
pub(crate) fn in_parent() {
    if let Step::Forking(reader, writer) = STEP.get() {
        close(writer);
        STEP.set(Step::Parent(reader));
    }
}

/// In each child, with and without vfork(2).
pub(crate) fn in_child() {
    let mut held = -1;
    if let Step::Forking(reader, writer) = STEP.replace(Step::Elsewhere) {
        close(reader);
        held = writer;
    }
    // That of its parent.
    let former = HELD.swap(held, Ordering::Relaxed);
    if former != -1 {
        close(former);
    }
}

fn close(own: c_int) {
    descriptors::set(own, Entry::Kernel);
    // SAFETY: the call takes no pointer; the number is the library's own.
    unsafe { originals::close(own) };
}

/// By number: read(2) of the C library may end its thread (pthread_cancel(3)), which vfork(2) does not.
fn wait_for_end(reader: c_int) {
    let mut byte = 0_u8;
    let descriptor = usize::try_from(reader).unwrap_or(usize::MAX);
    loop {
        let place = (&raw mut byte).expose_provenance();
        // SAFETY: there is room for a byte.
        let read = unsafe { originals::syscall(libc::SYS_read, descriptor, place, 1, 0, 0, 0) };
        if read != -1 || errno() != Errno::INTERRUPTED {
            return;
        }
    }
}
