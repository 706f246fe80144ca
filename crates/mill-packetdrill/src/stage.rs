//! The world behind a lock, and which call waits for which.
//!
//! packetdrill's first thread reads the script, sends packets and lets time pass; a second one makes the calls that
//! block. Whenever something has changed, the first lets the second try again before it goes on; and when the call
//! has succeeded, it waits until the second has looked at the clock, which is how packetdrill notes when it returned.

use crate::world::World;
use mill_sockets::errno::Errno;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Stage {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// The thread that reads the script.
    reader: ThreadId,
}

#[derive(Debug)]
struct Inner {
    world: World,
    caller: Caller,
}

/// What the thread of blocking calls does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Elsewhere,
    /// Its call can't be answered yet.
    Blocked,
    /// Something changed: it is to try again.
    Trying,
    /// Its call is answered, but it has not looked at the clock yet.
    Returned,
}

impl Stage {
    /// Made on the thread that reads the script.
    pub(crate) fn new(world: World) -> Self {
        Self {
            inner: Mutex::new(Inner {
                world,
                caller: Caller::Elsewhere,
            }),
            changed: Condvar::new(),
            reader: thread::current().id(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that never blocks.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut World) -> R) -> R {
        let mut inner = self.lock();
        let result = call(&mut inner.world);
        drop(self.let_caller_try(inner));
        result
    }

    /// A call that may block: `attempt` gives `None` while it would.
    pub(crate) fn blocking<R>(
        &self,
        mut attempt: impl FnMut(&mut World) -> Result<Option<R>, Errno>,
    ) -> Result<R, Errno> {
        let mut inner = self.lock();
        if thread::current().id() == self.reader {
            // Nothing would wake it: the script says that it does not block.
            return attempt(&mut inner.world)?.ok_or(Errno::AGAIN);
        }
        loop {
            let result = attempt(&mut inner.world);
            if let Some(result) = result.transpose() {
                inner.caller = Caller::Returned;
                self.changed.notify_all();
                return result;
            }
            inner.caller = Caller::Blocked;
            self.changed.notify_all();
            while inner.caller == Caller::Blocked {
                inner = self.wait(inner);
            }
        }
    }

    /// The clock, in microseconds, which moves by one.
    pub(crate) fn look_at_clock(&self) -> u64 {
        let mut inner = self.lock();
        if thread::current().id() != self.reader && inner.caller == Caller::Returned {
            inner.caller = Caller::Elsewhere;
            self.changed.notify_all();
        }
        inner.world.look_at_clock()
    }

    /// Lets so many microseconds pass.
    pub(crate) fn sleep(&self, micros: u64) {
        let mut inner = self.lock();
        let until = inner.world.now_us() + micros;
        loop {
            let is_over = !inner.world.step(until);
            inner = self.let_caller_try(inner);
            if is_over {
                return;
            }
        }
    }

    /// The next packet that the stack sends and when, letting time pass until then; `None` if none will come.
    pub(crate) fn next_packet(&self) -> Option<(u64, Vec<u8>)> {
        let mut inner = self.lock();
        let until = inner.world.now_us() + TIMEOUT_US;
        loop {
            if let Some(packet) = inner.world.take_sent() {
                return Some(packet);
            }
            let is_over = !inner.world.step(until);
            inner = self.let_caller_try(inner);
            if is_over {
                return inner.world.take_sent();
            }
        }
    }

    /// Lets the call that blocks be tried again, if there is one, and waits until that has happened.
    fn let_caller_try<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        if thread::current().id() != self.reader {
            return inner;
        }
        if inner.caller == Caller::Blocked {
            inner.caller = Caller::Trying;
            self.changed.notify_all();
        }
        while matches!(inner.caller, Caller::Trying | Caller::Returned) {
            let (next, timeout) = self
                .changed
                .wait_timeout(inner, CALLER_WAIT_MAX)
                .unwrap_or_else(PoisonError::into_inner);
            inner = next;
            if timeout.timed_out() {
                // It was given up, and no call will read the clock.
                inner.caller = Caller::Elsewhere;
            }
        }
        inner
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed
            .wait(inner)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Microseconds of virtual time for which a packet is waited for: longer than any connection tries (tcp_retries2 comes
/// to about 15 minutes).
const TIMEOUT_US: u64 = 3_600_000_000;

/// Real time for which the thread of blocking calls may take between two looks at the lock. It is held up by the
/// scheduler only.
const CALLER_WAIT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::settings::Settings;

    /// When a call returns that can be answered `after` microseconds, of which the script sleeps 100 at a time.
    fn check(after: u64, expected: u64) {
        let settings = Settings::from_flags("").expect("no flags");
        let stage = Stage::new(World::new(settings));
        let begin = stage.look_at_clock();
        let returned_at = thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let answered = stage.blocking(|world| {
                    let waited = world.now_us() - begin;
                    Ok((waited >= after).then_some(()))
                });
                assert_eq!(answered, Ok(()));
                stage.look_at_clock() - begin
            });
            let mut inner = stage.lock();
            while inner.caller != Caller::Blocked {
                inner = stage.wait(inner);
            }
            drop(inner);
            for _ in 0..10 {
                stage.sleep(100);
            }
            caller.join().expect("the caller returns")
        });
        // Looking at the clock takes a microsecond.
        assert_eq!(returned_at, expected + 1);
    }

    #[test]
    fn time_stands_still_until_a_call_that_is_answered_has_looked_at_the_clock() {
        check(100, 100);
        check(101, 200);
        check(901, 1000);
    }
}
