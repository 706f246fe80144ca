//! The results of a run, all threads together: the data of every report.

use crate::failure::{Failure, FailureKind};
use crate::generator::Part;
use crate::local::Abort;
use crate::native::answers::Answers;
use crate::native::measures::Measures;
use crate::native::recorder::{Interval, Recorder};
use crate::native::series::{Period, Series};
use crate::platform::{Machine, RunOutcome};
use crate::record::Record;
use crate::silence::{self, Gap, Silence};
use crate::tally::Tally;
use core::time::Duration;
use mill_runtime::time::{Instant, UnixTime};

/// The results of one run, or of several that were merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// When it was started, by the wall clock.
    pub began: UnixTime,
    pub measured: Duration,
    pub tally: Tally,
    pub measures: Measures,
    pub answers: Answers,
    /// A message for each kind of failure that occurred.
    pub failures: Vec<(FailureKind, String)>,
    pub periods: Vec<Period>,
    /// When no request was answered, all threads together.
    pub gaps: Vec<Gap>,
    pub machine: Machine,
    /// The user interrupted it.
    pub interrupted: bool,
    /// Why it ended early by itself.
    pub aborted: Option<String>,
}

impl Results {
    /// Makes them of the threads' results.
    pub fn of(ran: RunOutcome<Recorder>, series: Series, began: UnixTime, open_loop: bool) -> Self {
        let (tally, gaps) = (ran.tally(), ran.gaps());
        let mut measures = Measures::new(open_loop);
        let mut answers = Answers::default();
        let mut examples: [Option<Failure>; FailureKind::ALL.len()] = [None; _];
        let mut aborted = None;
        let mut rests: Vec<Interval> = Vec::new();
        for mut part in ran.parts {
            rests.push(part.recorder.cut(Instant::FAR, &part.tally));
            measures.add(&part.recorder.measures);
            answers.add(&part.recorder.answers);
            for (example, own) in examples.iter_mut().zip(part.recorder.examples) {
                *example = example.or(own);
            }
            aborted = aborted.or_else(|| reason(&part));
        }
        Self {
            began,
            measured: ran.measured,
            tally,
            measures,
            answers,
            failures: FailureKind::ALL
                .into_iter()
                .zip(examples)
                .filter_map(|(kind, example)| Some((kind, example?.to_string())))
                .collect(),
            periods: series.finish(ran.measured, &rests),
            gaps,
            machine: ran.machine,
            interrupted: ran.interrupted,
            aborted,
        }
    }

    /// Answered requests per second.
    pub fn rate(&self) -> f64 {
        self.per_second(self.tally.answered)
    }

    /// A count per second of the measured period.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a float of 53 bits is exact enough for a rate"
    )]
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.measured.as_secs_f64();
        if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        }
    }

    /// The stretches in which requests waited and none was answered.
    pub fn silences(&self, connections: u32) -> Vec<Silence> {
        let raw = self.measures.raw();
        let usual = raw.percentile(silence::usual_percent(raw.count(), connections));
        silence::silences(&self.gaps, self.measured, usual)
    }

    /// Requests of an open loop that were due, started or not.
    pub const fn due(&self) -> u64 {
        self.tally.started + self.tally.never_started
    }
}

fn reason(part: &Part<Recorder>) -> Option<String> {
    match part.aborted.as_ref()? {
        Abort::Failure(failure) => Some(failure.to_string()),
        Abort::Script(message) => Some(message.clone()),
        Abort::Stopped => None,
    }
}
