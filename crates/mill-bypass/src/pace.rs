//! When a turn waits, and when it polls the inner engine: the effect of [`Polling`].

use crate::stack::earlier;
use mill_runtime::engine::Park;
use mill_runtime::time::{Duration, Instant};
use mill_stack::polling::Polling;

/// Decides, turn by turn.
#[derive(Debug)]
pub(crate) struct Pace {
    polling: Polling,
    /// When there was work last, and whether that was in the last turn.
    worked_at: Instant,
    has_worked: bool,
    /// When the inner engine was polled last.
    asked_at: Instant,
    /// How long it is not polled again while turns do not sleep.
    ask_interval: Duration,
    /// When to poll next, at a fixed polling rate.
    look_at: Instant,
}

/// What the turn does before it polls the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The inner engine is polled, and waits like this.
    Inner(Park),
    /// The inner engine was polled a moment ago: its events come a little later, and this turn costs no system call.
    Skip,
}

impl Pace {
    pub(crate) const fn new(polling: Polling, now: Instant) -> Self {
        Self {
            polling,
            worked_at: now,
            has_worked: false,
            asked_at: now,
            ask_interval: INNER_INTERVAL_MIN,
            look_at: now,
        }
    }

    /// How to wait, if the turn's needs alone would make it wait as `park` says. `now` may be that of the last turn's
    /// end.
    pub(crate) fn wait(&mut self, park: Park, now: Instant) -> Wait {
        let has_worked = core::mem::take(&mut self.has_worked);
        // Before it sleeps, a turn polls once more without work: some links signal only frames that arrive after that
        // poll.
        let sleep = if has_worked { Park::No } else { park };
        match self.polling {
            Polling::Interrupt => Wait::Inner(sleep),
            Polling::Adaptive(spin) if now.since(self.worked_at) >= spin => Wait::Inner(sleep),
            Polling::Adaptive(_) | Polling::Spin => self.spin(now),
            Polling::SleepSpin(_) if has_worked => self.spin(now),
            Polling::SleepSpin(sleep) => Wait::Inner(earlier(park, Some(now + sleep))),
            Polling::Rate(hz) => Wait::Inner(earlier(park, Some(self.next_look(hz, now)))),
        }
    }

    /// Whether the next turn follows at once, whatever `park` says.
    pub(crate) fn spins(&self, now: Instant) -> bool {
        match self.polling {
            Polling::Spin => true,
            Polling::Adaptive(spin) => now.since(self.worked_at) < spin,
            Polling::SleepSpin(_) => self.has_worked,
            Polling::Interrupt | Polling::Rate(_) => false,
        }
    }

    /// The turn that began at `now` found work.
    pub(crate) const fn worked(&mut self, now: Instant) {
        self.worked_at = now;
        self.has_worked = true;
    }

    /// The inner engine was polled and had events, and probably will have more soon.
    pub(crate) const fn note_inner_activity(&mut self) {
        self.ask_interval = INNER_INTERVAL_MIN;
    }

    fn spin(&mut self, now: Instant) -> Wait {
        if now.since(self.asked_at) < self.ask_interval {
            return Wait::Skip;
        }
        self.asked_at = now;
        // Until the turn turns out to have work.
        self.ask_interval = (self.ask_interval * 2).min(INNER_INTERVAL_MAX);
        Wait::Inner(Park::No)
    }

    /// Polls that were missed are not made up for. A turn that began for another reason changes nothing.
    fn next_look(&mut self, hz: u32, now: Instant) -> Instant {
        if self.look_at <= now {
            let interval = Duration::from_secs(1) / hz.max(1);
            self.look_at = (self.look_at + interval).max(now);
        }
        self.look_at
    }
}

/// How often turns that never sleep poll the inner engine: its events come by so much later at most, and a poll is a
/// system call, which costs about a tenth of the least interval. While there are events the least one is used; each
/// poll that finds none doubles it.
const INNER_INTERVAL_MIN: Duration = Duration::from_micros(20);
const INNER_INTERVAL_MAX: Duration = Duration::from_micros(160);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// What each turn does that ends at these microseconds, none of which has work after the first.
    fn check(polling: Polling, turns: &[(u64, Wait)]) {
        let mut pace = Pace::new(polling, at(0));
        for (micros, expected) in turns {
            let found = pace.wait(Park::Until(at(1000)), at(*micros));
            assert_eq!(found, *expected, "{polling:?} at {micros} us");
        }
    }

    const NO: Wait = Wait::Inner(Park::No);

    fn until(micros: u64) -> Wait {
        Wait::Inner(Park::Until(at(micros)))
    }

    #[test]
    fn an_interrupt_ends_a_sleep() {
        check(Polling::Interrupt, &[(0, until(1000)), (5, until(1000))]);
    }

    #[test]
    fn a_turn_sleeps_only_after_a_poll_that_found_nothing() {
        for polling in [
            Polling::Interrupt,
            Polling::Adaptive(Duration::from_micros(50)),
        ] {
            let mut pace = Pace::new(polling, at(0));
            pace.worked(at(60));
            assert_eq!(pace.wait(Park::Forever, at(500)), NO);
            assert_eq!(
                pace.wait(Park::Forever, at(501)),
                Wait::Inner(Park::Forever)
            );
        }
    }

    #[test]
    fn spinning_asks_the_inner_engine_now_and_then() {
        let turns = [
            (5, Wait::Skip),
            (19, Wait::Skip),
            (20, NO),
            (21, Wait::Skip),
        ];
        check(Polling::Spin, &turns);
        check(Polling::Spin, &[(5000, NO), (5039, Wait::Skip), (5040, NO)]);
    }

    #[test]
    fn an_inner_engine_without_events_is_asked_less_and_less() {
        let mut pace = Pace::new(Polling::Spin, at(0));
        let mut asked = [Vec::new(), Vec::new()];
        for micros in 0..1000 {
            if pace.wait(Park::No, at(micros)) == NO {
                let finds = micros > 700;
                asked[usize::from(finds)].push(micros);
                if finds {
                    pace.note_inner_activity();
                }
            }
        }
        assert_eq!(asked[0], [20, 60, 140, 300, 460, 620]);
        assert_eq!(asked[1][..4], [780, 800, 820, 840]);
    }

    #[test]
    fn spinning_ends_some_time_after_the_last_work() {
        let polling = Polling::Adaptive(Duration::from_micros(50));
        check(polling, &[(0, Wait::Skip), (49, NO), (50, until(1000))]);
        let mut pace = Pace::new(polling, at(0));
        pace.worked(at(60));
        assert_eq!(pace.wait(Park::Forever, at(109)), NO);
        assert_eq!(
            pace.wait(Park::Forever, at(110)),
            Wait::Inner(Park::Forever)
        );
    }

    #[test]
    fn a_sleep_between_two_looks_ends_by_itself() {
        let polling = Polling::SleepSpin(Duration::from_micros(50));
        check(polling, &[(1, until(51)), (980, until(1000))]);
        let mut pace = Pace::new(polling, at(0));
        pace.worked(at(70));
        assert_eq!(pace.wait(Park::Forever, at(75)), NO);
        assert_eq!(pace.wait(Park::Forever, at(76)), until(126));
    }

    #[test]
    fn a_rate_is_kept_and_what_was_missed_is_not_made_up_for() {
        let turns = [
            (0, until(100)),
            (100, until(200)),
            (950, until(950)),
            (951, until(1000)),
        ];
        check(Polling::Rate(10_000), &turns);
    }

    #[test]
    fn turns_between_two_looks_do_not_put_the_next_one_off() {
        let turns = [
            (0, 100),
            (10, 100),
            (20, 100),
            (100, 200),
            (101, 200),
            (250, 300),
        ];
        let turns = turns.map(|(at, end)| (at, until(end)));
        check(Polling::Rate(10_000), &turns);
    }
}
