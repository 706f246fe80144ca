//! A thread of a side's program: it makes one call after the other, and waits as threads do under mill-preload.

use super::call::{Call, Given, Outcome};
use super::exchange::Exchange;
use super::side::Side;
use crate::errno::Errno;
use core::fmt::Debug;
use mill_sim::random::Random;
use mill_tcp::time::{Duration, Instant};

/// What a thread runs.
pub(super) trait Program: Debug {
    /// The next call, after what the last one has given; `None` ends the thread. Calls that never wait are made here.
    fn next(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Option<Wanted>;
}

/// What programs may use.
pub(super) struct Scene<'a> {
    pub(super) side: &'a mut Side,
    pub(super) exchanges: &'a mut Vec<Exchange>,
    pub(super) random: &'a mut Random,
    pub(super) started: &'a mut Vec<Box<dyn Program>>,
    /// Listeners have been closed: connections may be refused and reset.
    pub(super) has_left: &'a mut bool,
    /// All has been said: threads that are interrupted end.
    pub(super) is_over: bool,
}

/// A call, and how long it may wait.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) call: Call,
    pub(super) waits: bool,
    pub(super) timeout: Option<Duration>,
}

impl Wanted {
    pub(super) const fn at_once(call: Call) -> Option<Self> {
        Some(Self {
            call,
            waits: false,
            timeout: None,
        })
    }

    pub(super) const fn waiting(call: Call) -> Option<Self> {
        Some(Self {
            call,
            waits: true,
            timeout: None,
        })
    }

    pub(super) fn for_us(call: Call, micros: u64) -> Option<Self> {
        Some(Self {
            call,
            waits: true,
            timeout: Some(Duration::from_micros(micros)),
        })
    }
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) side: usize,
    pub(super) program: Box<dyn Program>,
    pub(super) pending: Option<Pending>,
    /// It is not asleep.
    pub(super) is_awake: bool,
    /// A handler has run; whether with `SA_RESTART`.
    pub(super) signal: Option<bool>,
    last: Option<Outcome>,
}

/// A call under way.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) wanted: Wanted,
    pub(super) deadline: Option<Instant>,
    done: usize,
}

impl Thread {
    pub(super) fn new(side: usize, program: Box<dyn Program>) -> Self {
        Self {
            side,
            program,
            pending: None,
            is_awake: true,
            signal: None,
            last: Some(Ok(Given::Nothing)),
        }
    }

    /// The call that it sleeps in.
    pub(super) fn asleep(&self) -> Option<&Call> {
        let pending = self.pending.as_ref().filter(|_| !self.is_awake)?;
        Some(&pending.wanted.call)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.as_ref()?.deadline
    }

    /// One step: what comes after a call, or an attempt. False if the thread has ended.
    pub(super) fn run(&mut self, scene: &mut Scene<'_>, now: Instant) -> bool {
        let Some(pending) = &mut self.pending else {
            let last = self.last.take().unwrap_or(Ok(Given::Nothing));
            let wanted = self.program.next(scene, last);
            // Between two calls a handler interrupts nothing.
            self.signal = None;
            self.pending = wanted.map(|wanted| Pending {
                deadline: wanted.timeout.map(|timeout| now + timeout),
                wanted,
                done: 0,
            });
            return self.pending.is_some();
        };
        let call = &pending.wanted.call;
        let found = call.attempt(scene.side, scene.exchanges, &mut pending.done);
        let outcome = found.or_else(|| pending.end(self.signal.take(), now));
        match outcome {
            Some(outcome) => {
                if let Err(error) = outcome {
                    *scene.side.errors.entry(error.0).or_default() += 1;
                }
                self.last = Some(outcome);
                self.pending = None;
            }
            None => self.is_awake = false,
        }
        true
    }
}

impl Pending {
    /// What ends the wait beside the stack.
    fn end(&self, signal: Option<bool>, now: Instant) -> Option<Outcome> {
        let told = |error| match self.done {
            0 => Err(error),
            done => Ok(Given::Count(done)),
        };
        if !self.wanted.waits {
            return Some(told(Errno::AGAIN));
        }
        let is_restarted = self.deadline.is_none() && self.done == 0 && self.is_transfer();
        match signal {
            Some(restarts) if !(restarts && is_restarted) => {
                return Some(told(Errno::INTERRUPTED));
            }
            _ => {}
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        is_late.then(|| match &self.wanted.call {
            Call::Poll(_) => Ok(Given::Ready(Vec::new())),
            Call::Wait(..) => Ok(Given::Events(Vec::new())),
            Call::Sleep => Ok(Given::Nothing),
            _ => told(Errno::AGAIN),
        })
    }

    /// Whether it is a call that `SA_RESTART` begins anew (signal(7)).
    const fn is_transfer(&self) -> bool {
        !matches!(
            self.wanted.call,
            Call::Poll(_) | Call::Wait(..) | Call::Sleep
        )
    }
}
