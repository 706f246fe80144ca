//! What a program that posix_spawn(3) starts has of this process's connections: those that file actions hand over (`adddup2`).
//!
//! During the call these are local sockets for the kernel (`lent.rs`). The environment says which of the program's descriptors they are
//! (`borrowing.rs`).

use crate::descriptors::{self, Entry};
use crate::lent::Lent;
use crate::lock::{Lock, Locked};
use crate::stacks;
use core::ffi::{c_int, c_void};

/// The actions that hand a descriptor over, the latest last. Only their functions know what the C library's values hold.
static HANDED: Lock<Vec<Handed>> = Lock::new(Vec::new());

/// `to` of the program is to be `from` of this process.
#[derive(Clone, Copy, Debug)]
struct Handed {
    /// Where the program has the list of actions.
    actions: usize,
    from: c_int,
    to: c_int,
}

/// For fork(2), before the locks of stacks.
pub(crate) fn lock() -> Locked {
    Box::new(HANDED.lock())
}

/// A list of actions begins or ends.
pub(crate) fn forget(actions: *const c_void) {
    if stacks::is_offered() {
        let actions = actions.addr();
        HANDED.lock().retain(|handed| handed.actions != actions);
    }
}

/// A list of actions hands over a descriptor, whatever that is when it is used.
pub(crate) fn note(actions: *const c_void, from: c_int, to: c_int) {
    if !stacks::is_offered() {
        return;
    }
    let mut all = HANDED.lock();
    // A program may make lists and not end them.
    if all.len() >= HANDED_MAX {
        all.remove(0);
    }
    all.push(Handed {
        actions: actions.addr(),
        from,
        to,
    });
}

/// Has `start` start a program, with what the environment is to say of connections; it returns 0 or an error, as posix_spawn(3).
pub(crate) fn hand_over(actions: *const c_void, start: impl FnOnce(&[String]) -> c_int) -> c_int {
    if !stacks::is_offered() {
        return start(&[]);
    }
    let handed = handed(actions);
    let is_connection = |it: &Handed| matches!(descriptors::find(it.from), Entry::Stream(_));
    if !handed.iter().any(is_connection) {
        return start(&[]);
    }
    let mut lent = Lent::to_program();
    for handed in handed {
        // Where there is no descriptor left, the program has a socket that is not connected.
        let _ = lent.lend(handed.from, handed.to);
    }
    let result = start(&lent.described());
    lent.end(result == 0);
    result
}

/// Those of a list, with the descriptors that this process has: one that was handed over may be handed on.
fn handed(actions: *const c_void) -> Vec<Handed> {
    let all = HANDED.lock();
    let mut found: Vec<Handed> = Vec::new();
    for handed in all.iter().filter(|it| it.actions == actions.addr()) {
        let before = found.iter().rfind(|before| before.to == handed.from);
        let from = before.map_or(handed.from, |before| before.from);
        found.push(Handed { from, ..*handed });
    }
    found
}

/// How many are known. Lists of actions live for a moment.
const HANDED_MAX: usize = 4096;
