//! The end of a thread's connections: nobody is left behind waiting for the rest of one.

use mill_runtime::engine::{Events, Orphans, Park};
use mill_runtime::time::Duration;

/// Lets connections that were closed come to their end, and resets those that do not in time. On kernel sockets there are
/// none: the system sees to them after this process. On a stack of our own, which ends with it, the other side would
/// wait for more than a minute for each, and the next one to have our address would be taken for us.
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

/// Turns as long as it is to go on.
fn turn<E: Orphans>(engine: &E, events: &mut Events, mut goes_on: impl FnMut(&E) -> bool) {
    while goes_on(engine) {
        engine.settle();
        events.clear();
        engine.poll(Park::Until(engine.now() + LOOK), events);
    }
    engine.settle();
}

/// How long the end of a run waits for peers: a handful of round trips, and longer than a delayed acknowledgement.
const LINGER: Duration = Duration::from_millis(300);

/// How long it takes at most to reset what is left; a million connections take about a second.
const RESETTING: Duration = Duration::from_secs(5);

/// How long a turn waits: whether all are over is asked each time.
const LOOK: Duration = Duration::from_millis(1);
