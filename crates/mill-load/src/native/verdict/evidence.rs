//! The input of a verdict.

use crate::plan::{Life, Opening, Pace, Plan};
use crate::platform::{Machine, ThreadCpu};
use crate::silence::{Silence, lost_share};
use crate::tally::Tally;
use core::time::Duration;

/// All data of a run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub plan: &'a Plan,
    /// Of the measured period, all threads together.
    pub tally: &'a Tally,
    pub machine: &'a Machine,
    /// How long was measured.
    pub measured: Duration,
    /// The user interrupted it.
    pub interrupted: bool,
    /// Answered requests in each whole interval of the measured period, all threads together.
    pub answers: &'a [u64],
    /// Mean time from the actual start of a request to its answer, if any was answered.
    pub mean_time: Option<Duration>,
    /// Answers whose length was not that of the first; `None` if the requests were not all the same.
    pub differing_sizes: Option<u64>,
    /// The stretches in which requests waited and none was answered.
    pub silences: &'a [Silence],
    /// It is the confirming trial of a search.
    pub is_of_search: bool,
}

impl Evidence<'_> {
    /// Whether requests or connections start at times of their own, or connections pause: then nothing need be
    /// saturated.
    pub fn is_paced(&self) -> bool {
        match self.plan.pace {
            Pace::Open { .. } | Pace::Each { .. } => true,
            Pace::Closed { think } => {
                let opens_at_a_rate = matches!(self.plan.opening, Opening::Rate(_));
                think > Duration::ZERO || (opens_at_a_rate && self.plan.life != Life::Unlimited)
            }
        }
    }

    pub(super) fn has_schedule(&self) -> bool {
        matches!(self.plan.pace, Pace::Open { .. } | Pace::Each { .. })
    }

    /// The busiest thread's share of a CPU, 0 to 1, if it is meaningful: a thread that spins until the next request is
    /// always busy. If its connections are busy, it does not wait for due times, and does not spin.
    pub fn busiest_thread(&self) -> Option<f64> {
        let spins = self.has_schedule() && self.plan.spin > Duration::ZERO;
        if spins && !self.connections_were_busy() {
            return None;
        }
        self.machine.threads.iter().map(share).reduce(f64::max)
    }

    /// The share of this machine's CPU time that other programs than the load generator and the server used, 0 to 1.
    pub fn other_cpu(&self) -> Option<f64> {
        self.machine.other_cpu()
    }

    /// The share of the connections' time in which they could not be served, 0 to 1.
    pub fn lost_share(&self) -> f64 {
        lost_share(self.tally, self.plan.connections, self.measured)
    }

    /// Requests that were due in the measured period.
    pub fn due(&self) -> u64 {
        self.tally.started + self.tally.never_started
    }

    /// Whether arrivals usually found no idle connection.
    fn connections_were_busy(&self) -> bool {
        let waited = self.tally.waited_1ms + self.tally.never_started;
        waited * 2 >= self.due().max(1)
    }
}

/// The share of a CPU that a thread used.
pub(super) fn share(cpu: &ThreadCpu) -> f64 {
    let wall = cpu.wall.as_secs_f64();
    if wall > 0.0 {
        (cpu.user + cpu.system).as_secs_f64() / wall
    } else {
        0.0
    }
}
