//! One trial: one download alone on a path, or two that share it.

use std::io;
use std::time::Duration;

use mill_lab_host::interrupt::Interrupt;
use mill_sys::{clock, descriptor};

use super::emulator::{Emulator, Passed};
use super::receiver::{Progress, download, wait_until_served};
use super::sender::{Program, Sender, Subject};
use super::standing::Queued;
use super::testbed::Testbed;
use mill_simtest::standard_paths::StandardPath as Path;

/// What a trial needs.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) testbed: Testbed,
    pub(super) program: Program,
    pub(super) interrupt: Interrupt,
}

/// A download that had the path for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    /// Bits a second, from the client's first packet on.
    pub(super) goodput: f64,
    /// Until 100 kB and 1 MB had come, seconds.
    pub(super) short: [Option<f64>; 2],
    /// In the second half.
    pub(super) queue: Queued,
    /// Frames that found the queue full, of a thousand.
    pub(super) dropped_per_mille: f64,
    pub(super) trust: Trust,
}

/// Two downloads at once, when both had found their rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    /// Bits a second of the first and of the second subject.
    pub(super) goodput: [f64; 2],
    pub(super) queue: Queued,
    pub(super) trust: Trust,
}

/// How well the emulator kept its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    pub(super) late_per_mille: f64,
    pub(super) latest: Duration,
}

impl Trust {
    fn of(passed: &Passed) -> Self {
        let lateness = passed.lateness;
        Self {
            late_per_mille: lateness.per_mille(),
            latest: lateness.most,
        }
    }

    /// The machine had other things to do: the trial is to be repeated.
    pub(super) fn is_disturbed(self) -> bool {
        self.late_per_mille > LATE_PER_MILLE_MAX || self.latest > LATEST_MAX
    }
}

impl Stage {
    pub(super) fn alone(
        &self,
        path: Path,
        subject: Subject,
        (seconds, seed): (u32, u64),
    ) -> io::Result<Alone> {
        let emulator = Emulator::start(&self.testbed.ends, path, seed)?;
        let sender = self.ready(path, subject)?;
        let (progress, until) = std::thread::scope(|scope| {
            Testbed::set_congestion(subject.algorithm.word())?;
            let until = clock::monotonic() + Duration::from_secs(seconds.into());
            let (target, interrupt) = (subject.target(), &self.interrupt);
            let client = self
                .testbed
                .at_client(scope, move || download(target, until, interrupt));
            Ok::<_, io::Error>((joined(client)?, until))
        })?;
        let passed = ended(path, emulator)?;
        self.assert_stack(&sender)?;
        let begun = progress.begun();
        let seconds_of = |bytes| progress.time_of(bytes).map(|time| time.as_secs_f64());
        let half = begun + until.saturating_sub(begun) / 2;
        Ok(Alone {
            goodput: progress.rate(begun, until),
            short: [100_000, 1_000_000].map(seconds_of),
            queue: passed.queue.between(half, until),
            dropped_per_mille: passed.down.queue_full as f64 * 1e3
                / passed.down.entered.max(1) as f64,
            trust: Trust::of(&passed),
        })
    }

    /// The first one begins, the second a while later; both are measured for some seconds another while later.
    pub(super) fn together(
        &self,
        path: Path,
        subjects: [Subject; 2],
        (seconds, seed): (u32, u64),
    ) -> io::Result<Together> {
        let emulator = Emulator::start(&self.testbed.ends, path, seed)?;
        let first = self.ready(path, subjects[0])?;
        let second = if subjects[1].stack == subjects[0].stack {
            None
        } else {
            Some(self.ready(path, subjects[1])?)
        };
        let wait = Duration::from_secs(APART_SECONDS) + path.round_trip() * APART_ROUND_TRIPS;
        let from = clock::monotonic() + wait * 3;
        let until = from + Duration::from_secs(seconds.into());
        let [first_progress, second_progress] = std::thread::scope(|scope| {
            let begin = |subject: Subject| {
                Testbed::set_congestion(subject.algorithm.word())?;
                let (target, interrupt) = (subject.target(), &self.interrupt);
                let client = self
                    .testbed
                    .at_client(scope, move || download(target, until, interrupt));
                Ok::<_, io::Error>(client)
            };
            let first = begin(subjects[0])?;
            descriptor::wait_readable(&[], Some(wait))?;
            let second = begin(subjects[1])?;
            Ok::<[Progress; 2], io::Error>([joined(first)?, joined(second)?])
        })?;
        let passed = ended(path, emulator)?;
        drop((first, second));
        let rate = |progress: Progress| progress.rate(from, until);
        Ok(Together {
            goodput: [rate(first_progress), rate(second_progress)],
            queue: passed.queue.between(from, until),
            trust: Trust::of(&passed),
        })
    }

    /// Starts what serves it, and waits until it does.
    fn ready(&self, path: Path, subject: Subject) -> io::Result<Sender> {
        let sender = self.program.start(subject)?;
        let patience = Duration::from_secs(5) + path.round_trip() * 10;
        let served = std::thread::scope(|scope| {
            let target = subject.target();
            let client = self
                .testbed
                .at_client(scope, move || wait_until_served(target, patience));
            joined(client)
        });
        served.map_err(|error| {
            let said = self.program.last_words();
            io::Error::other(format!("{}: {error}\n{said}", subject.name()))
        })?;
        // What closes the connection is over, too.
        descriptor::wait_readable(&[], Some(path.round_trip() * 2))?;
        Ok(sender)
    }

    fn assert_stack(&self, sender: &Sender) -> io::Result<()> {
        if sender.is_of_its_stack()? {
            return Ok(());
        }
        let name = sender.subject().name();
        let said = self.program.last_words();
        Err(io::Error::other(format!(
            "{name}: segments were another stack's\n{said}"
        )))
    }
}

/// Once the client's reset has reached the sender: the kernel sends what is left of a connection also for a process that has ended, and
/// would do so on the next trial's path.
fn ended(path: Path, emulator: Emulator) -> io::Result<Passed> {
    let wait = path.round_trip() * 2 + Duration::from_millis(50);
    descriptor::wait_readable(&[], Some(wait))?;
    emulator.stop()
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    let panicked = |_| Err(io::Error::other("the client's thread panicked"));
    thread.join().unwrap_or_else(panicked)
}

/// Between two downloads, and again before they are measured.
const APART_SECONDS: u64 = 2;
const APART_ROUND_TRIPS: u32 = 10;

/// From here on a trial is disturbed.
const LATE_PER_MILLE_MAX: f64 = 10.0;
const LATEST_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_disturbed_by_many_late_frames_or_by_one_that_is_very_late() {
        let check = |late_per_mille, latest_ms, expected| {
            let trust = Trust {
                late_per_mille,
                latest: Duration::from_millis(latest_ms),
            };
            assert_eq!(trust.is_disturbed(), expected, "{trust:?}");
        };
        check(10.0, 50, false);
        check(10.1, 1, true);
        check(0.0, 51, true);
    }
}
