//! The end of a thread's connections: no peer is left waiting for the rest of one.

use mill_runtime::engine::{Events, Orphans, Park};
use mill_runtime::time::Duration;

/// Lets closed connections finish, and resets those that do not in time. Kernel sockets need none of this: the kernel
/// finishes them after the process. A stack of our own ends with the process, so each peer would wait for more than a
/// minute, and the next user of our address would get their segments.
pub(crate) fn end<E: Orphans>(engine: &E) {
    let mut events = Events::default();
    let until = engine.now() + LINGER;
    turn(engine, &mut events, |engine| {
        engine.orphans() > 0 && engine.now() < until
    });
    if engine.orphans() == 0 {
        return;
    }
    let until = engine.now() + RESETTING;
    turn(engine, &mut events, |engine| {
        let has_more = engine.abort_orphans() || engine.orphans() > 0;
        has_more && engine.now() < until
    });
}

/// Runs turns until `goes_on` is false.
fn turn<E: Orphans>(engine: &E, events: &mut Events, mut goes_on: impl FnMut(&E) -> bool) {
    while goes_on(engine) {
        engine.settle();
        events.clear();
        engine.poll(Park::Until(engine.now() + LOOK), events);
    }
    engine.settle();
}

/// How long the end of a run waits for peers: a few round trips, and longer than a delayed acknowledgement.
const LINGER: Duration = Duration::from_millis(300);

/// The time limit for resetting the rest; a million connections take about a second.
const RESETTING: Duration = Duration::from_secs(5);

/// The maximum wait of a turn, after which the condition is checked again.
const LOOK: Duration = Duration::from_millis(1);
