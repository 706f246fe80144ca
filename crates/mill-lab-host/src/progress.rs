//! Progress shown to the user: what runs now, how much is done, how long it will take.

use crate::sweep::Fate;
use mill_lab::plan::Trial;
use mill_lab::record::{Status, TrialRecord};
use mill_sys::clock;
use std::io::Write;
use std::time::Duration;

/// Lines on standard error: on a terminal one that is redrawn, elsewhere one per trial.
pub struct Progress<'a> {
    out: &'a mut dyn Write,
    /// A terminal that moves its cursor, and its width.
    columns: Option<usize>,
    total: usize,
    done: usize,
    /// Seconds that the plan estimates for the rest, and its estimate for what is done.
    left_s: f64,
    planned_s: f64,
    began: Duration,
    said_busy: bool,
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Progress")
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<'a> Progress<'a> {
    pub fn new(out: &'a mut dyn Write, columns: Option<usize>) -> Self {
        Self {
            out,
            columns,
            total: 0,
            done: 0,
            left_s: 0.0,
            planned_s: 0.0,
            began: Duration::ZERO,
            said_busy: false,
        }
    }

    pub(crate) fn begin<'t>(&mut self, total: usize, due: impl Iterator<Item = &'t Trial>) {
        self.total = total;
        let seconds: Vec<f64> = due.map(estimate).collect();
        self.done = self.total.saturating_sub(seconds.len());
        self.left_s = seconds.iter().sum();
        self.began = clock::monotonic();
        let resumed = match self.done {
            0 => String::new(),
            done => format!(", {done} kept from before"),
        };
        let left = span(self.left_s);
        self.line(&format!("{} trials{resumed}, about {left}", self.total));
    }

    /// Another block, because the figures are not precise enough yet.
    pub(crate) fn more(&mut self, trials: &[Trial]) {
        self.total += trials.len();
        self.left_s += trials.iter().map(estimate).sum::<f64>();
        let left = span(self.left_s * self.pace());
        self.line(&format!(
            "not precise enough yet: {} trials more, about {left}",
            trials.len()
        ));
    }

    pub(crate) fn trial(&mut self, trial: &Trial, attempt: u32) {
        let again = match attempt {
            0 => String::new(),
            attempt => format!(" (once more, {attempt})"),
        };
        let left = span(self.left_s * self.pace());
        let text = format!(
            "{}/{} {}{again} … about {left} left",
            self.done + 1,
            self.total,
            point(trial)
        );
        if let Some(columns) = self.columns {
            let shown: String = text.chars().take(columns.saturating_sub(1)).collect();
            let _ = write!(self.out, "{CLEAR}{NO_WRAP}{shown}{WRAP}");
            let _ = self.out.flush();
        }
    }

    pub(crate) fn kept(&mut self, trial: &Trial, record: &TrialRecord, fate: Fate) {
        if fate == Fate::PutOff && !self.said_busy {
            self.said_busy = true;
            self.line(
                "the machine is busy: disturbed trials are kept and marked, and repeated only if it is quiet at the end",
            );
        }
        self.done = (self.done + usize::from(fate != Fate::Again)).min(self.total);
        let seconds = estimate(trial);
        self.left_s = (self.left_s - seconds).max(0.0);
        if record.seconds > 0.1 {
            self.planned_s += seconds;
        } else {
            // Not run, so it tells nothing about the pace.
            self.began += Duration::from_secs_f64(record.seconds.max(0.0));
        }
        let text = format!(
            "{}/{} {}: {}",
            self.done,
            self.total,
            point(trial),
            result(record, fate)
        );
        self.line(&text);
    }

    /// A line that stays.
    pub fn line(&mut self, text: &str) {
        let clear = self.columns.map_or("", |_| CLEAR);
        let _ = writeln!(self.out, "{clear}{text}");
    }

    /// Erases the redrawn line: after Ctrl-C the summary would otherwise follow on it.
    pub fn end(&mut self) {
        if self.columns.is_some() {
            let _ = write!(self.out, "{CLEAR}");
            let _ = self.out.flush();
        }
    }

    /// How much longer trials take than estimated.
    fn pace(&self) -> f64 {
        let taken = clock::monotonic().saturating_sub(self.began).as_secs_f64();
        if self.planned_s > 0.0 {
            (taken / self.planned_s).clamp(0.2, 10.0)
        } else {
            1.0
        }
    }
}

fn estimate(trial: &Trial) -> f64 {
    trial.estimate().as_secs_f64()
}

/// "nginx, workers 1, test tps", the again-run marked.
fn point(trial: &Trial) -> String {
    let system = trial.point.get("system").cloned().unwrap_or_default();
    let axes = trial.point.iter().filter(|(axis, _)| *axis != "system");
    let mut text = system;
    for (axis, value) in axes {
        text.push_str(&format!(", {axis} {value}"));
    }
    if trial.again {
        text.push_str(", again");
    }
    text
}

fn result(record: &TrialRecord, fate: Fate) -> String {
    match &record.status {
        Status::Measured => measured(record),
        Status::Disturbed { reason } if fate == Fate::Again => {
            format!("disturbed, {reason}: once more later")
        }
        Status::Disturbed { reason } => format!("{}, disturbed: {reason}", measured(record)),
        Status::Absent { reason } => reason.clone(),
        Status::Failed { reason } => format!("failed: {reason}"),
    }
}

fn measured(record: &TrialRecord) -> String {
    let mut words = Vec::new();
    if let Some(rate) = record.figures.get("requests_per_s") {
        words.push(format!("{rate:.0} requests/s"));
    }
    if let Some(cost) = record.figures.get("cpu_us_per_request.server") {
        words.push(format!("{cost:.2} µs of the server's CPU each"));
    }
    if let Some(limit) = &record.limit {
        words.push(String::from(limit.side.word()));
    }
    if words.is_empty() {
        words.push(format!("{} figures", record.figures.len()));
    }
    words.join(", ")
}

/// A duration in the usual unit.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// To the beginning of the line, and erase to its end (ECMA-48 CR, EL).
const CLEAR: &str = "\r\x1b[K";

/// What does not fit is cut, not wrapped (DECAWM): the window may have become narrower since its width was read, and
/// only the last of several lines could be redrawn.
const NO_WRAP: &str = "\x1b[?7l";

/// As terminals are by default.
const WRAP: &str = "\x1b[?7h";

#[cfg(test)]
mod tests {
    use super::{Progress, span};

    fn check(columns: Option<usize>, expected: &str) {
        let mut written = Vec::new();
        let mut progress = Progress::new(&mut written, columns);
        progress.line("3/9 nginx: failed");
        progress.end();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn a_terminal_is_left_with_an_empty_line_and_a_file_without_escapes() {
        check(Some(80), "\r\x1b[K3/9 nginx: failed\n\r\x1b[K");
        check(None, "3/9 nginx: failed\n");
    }

    #[test]
    fn times_are_shown_in_the_usual_unit() {
        assert_eq!(span(12.4), "12 s");
        assert_eq!(span(200.0), "3 min");
        assert_eq!(span(47_520.0), "13.2 h");
    }
}
