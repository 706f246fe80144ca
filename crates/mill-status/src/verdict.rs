//! Which workers hang: those that should make turns and make none.
//!
//! A worker that sleeps in the kernel because there is nothing to do has published that, and until when. It hangs if it
//! sleeps beyond that time, or if it was sent a request, which wakes it, and has not answered.

use mill_metrics::WorkerFigures;
use serde::{Deserialize, Serialize};

/// The state of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    Runs,
    /// In the kernel, until something happens.
    Sleeps,
    /// It makes no turns any more.
    Hangs,
    /// Its process was stopped (SIGSTOP, a debugger).
    Stopped,
    Ended,
}

/// What is known of a worker besides its published figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The letter of its thread's state in /proc; `None` if that can't be read.
    pub letter: Option<char>,
    pub cpu_ns: Option<u64>,
    /// It was sent a request, and has not answered in time.
    pub is_silent: bool,
}

impl State {
    /// The word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Sleeps => "sleeps",
            Self::Hangs => "HANGS",
            Self::Stopped => "STOPPED",
            Self::Ended => "ended",
        }
    }

    /// Whether an administrator has to look into it.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Hangs | Self::Stopped)
    }
}

/// The state of a worker as of `now_ns` on the monotonic clock.
pub fn judge(shown: &WorkerFigures, now_ns: u64, observed: Observed) -> State {
    if shown.has_ended || matches!(observed.letter, Some('Z' | 'X')) {
        return State::Ended;
    }
    if matches!(observed.letter, Some('T' | 't')) {
        return State::Stopped;
    }
    let expected_ns = match shown.parked_until_ns {
        0 => shown.turn_at_ns,
        until => until,
    };
    let is_late = now_ns.saturating_sub(expected_ns) > TIMEOUT_NS;
    match shown.parked_until_ns {
        _ if is_late || observed.is_silent => State::Hangs,
        0 => State::Runs,
        _ => State::Sleeps,
    }
}

/// The limit of a turn's duration: the longest, which reads a cold file from a slow disk, takes a tenth of it.
const TIMEOUT_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn check(turn_at: u64, parked_until: u64, observed: Observed, expected: State) {
        let shown = WorkerFigures {
            turn_at_ns: turn_at,
            parked_until_ns: parked_until,
            ..Default::default()
        };
        let found = judge(&shown, 10 * SECOND, observed);
        assert_eq!(found, expected, "{turn_at} {parked_until} {observed:?}");
    }

    #[test]
    fn a_worker_that_makes_no_turn_hangs_unless_it_sleeps() {
        let nothing = Observed::default();
        check(10 * SECOND, 0, nothing, State::Runs);
        check(9 * SECOND, 0, nothing, State::Runs);
        check(9 * SECOND - 1, 0, nothing, State::Hangs);
        check(0, u64::MAX, nothing, State::Sleeps);
        check(0, 11 * SECOND, nothing, State::Sleeps);
        check(0, 9 * SECOND, nothing, State::Sleeps);
        check(0, 9 * SECOND - 1, nothing, State::Hangs);
        // A clock that was read before the figures.
        check(11 * SECOND, 0, nothing, State::Runs);
    }

    #[test]
    fn a_worker_that_does_not_answer_hangs_and_a_stopped_one_is_stopped() {
        let silent = Observed {
            is_silent: true,
            ..Default::default()
        };
        check(10 * SECOND, 0, silent, State::Hangs);
        check(0, u64::MAX, silent, State::Hangs);
        let seen = |letter| Observed {
            letter: Some(letter),
            ..silent
        };
        check(0, u64::MAX, seen('T'), State::Stopped);
        check(0, u64::MAX, seen('Z'), State::Ended);
        check(0, u64::MAX, seen('S'), State::Hangs);
    }

    #[test]
    fn a_worker_that_has_ended_does_not_hang() {
        let shown = WorkerFigures {
            has_ended: true,
            ..Default::default()
        };
        assert_eq!(judge(&shown, u64::MAX, Observed::default()), State::Ended);
    }
}
