//! ab's progress lines during a run.

use super::arguments::Options;
use super::files::Began;
use super::recorder::Lines;
use crate::platform::Watch;
use core::time::Duration;
use std::io::Write;

/// Writes the recorders' lines: one on stderr each time a number of further requests is done.
pub(super) struct Progress<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    every: Option<u64>,
    /// Requests in the last line.
    reported: u64,
    now: &'a dyn Fn() -> Began,
    pub(super) began: Began,
}

/// The number of requests between two lines: a tenth, but at least a hundred, and none in short runs.
pub(super) fn every(options: &Options) -> Option<u64> {
    let tells = options.progress && options.requests > QUIET_REQUESTS;
    tells.then(|| u64::from(options.requests / 10).max(EVERY_MIN))
}

impl<'a> Progress<'a> {
    pub(super) fn new(
        every: Option<u64>,
        now: &'a dyn Fn() -> Began,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        Self {
            out,
            err,
            every,
            reported: 0,
            now,
            began: Began::default(),
        }
    }

    /// Writes `lines`. An error is ignored: it could not be reported either.
    pub(super) fn tell(&mut self, lines: &Lines) {
        let _ = self.out.write_all(&lines.out);
        let _ = self.err.write_all(&lines.err);
        let Some(every) = self.every else {
            return;
        };
        while self.reported + every <= lines.done {
            self.reported += every;
            let _ = writeln!(self.err, "Completed {} requests", self.reported);
        }
        let _ = self.err.flush();
    }
}

impl Watch<Lines> for Progress<'_> {
    fn on_begin(&mut self) {
        self.began = (self.now)();
    }

    fn on_interval(&mut self, _thread: u32, _elapsed: Duration, lines: Lines) {
        self.tell(&lines);
    }
}

/// Runs of at most so many requests have no progress lines: ab's number.
const QUIET_REQUESTS: u32 = 150;

/// The fewest requests between two lines: ab's number.
const EVERY_MIN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(every: Option<u64>, done: &[u64], expected: &str) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let now = Began::default;
        let mut progress = Progress::new(every, &now, &mut out, &mut err);
        for done in done {
            progress.tell(&Lines {
                done: *done,
                ..Lines::default()
            });
        }
        assert_eq!(String::from_utf8(err).unwrap(), expected);
        assert_eq!(out, b"");
    }

    #[test]
    fn every_step_is_reported_once_even_if_several_are_taken_at_a_time() {
        let three = "Completed 100 requests\nCompleted 200 requests\nCompleted 300 requests\n";
        check(Some(100), &[0, 99, 100, 101, 330, 399], three);
        check(Some(100), &[300], three);
        check(None, &[500], "");
    }
}
