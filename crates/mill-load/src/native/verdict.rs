//! The verdict on a run in one word, with the evidence: which side was the limit, or why the figures are invalid.
//!
//! A pure function: `judge` compares counters and the kernel's figures with their `Thresholds` and says what to do
//! next. A valid run of a closed loop ends in `server-bound`: something is always saturated there, and it is the server
//! if it is neither the client nor the link.

/// The comparison of one figure with its threshold.
mod check;
/// The input of a verdict.
mod evidence;
/// The checks, one function a subject.
mod examine;
/// Whether a run's rate was steady.
mod steadiness;
/// All limits, in one table.
mod thresholds;

pub use check::{Check, Level};
pub use evidence::Evidence;
pub use steadiness::{Drift, drift, spread};
pub use thresholds::{Side, Subject, Threshold, ThresholdError, Thresholds, Unit};

use std::fmt;

/// The kinds of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictKind {
    /// The server was the limit, or waiting for it was.
    ServerBound,
    /// The rate asked for was kept; nothing was saturated.
    Paced,
    /// The rate changed too much for its mean to be a result.
    Unstable,
    /// The network was the limit.
    LinkBound,
    /// The load generator was the limit.
    ClientBound,
    /// The figures do not describe the server.
    Invalid,
}

/// The kind, its reason, and all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub word: VerdictKind,
    /// The meaning of the kind for this run, and what to do next.
    pub sentence: String,
    pub checks: Vec<Check>,
}

impl VerdictKind {
    /// As reports and JSON have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServerBound => "server-bound",
            Self::Paced => "paced",
            Self::Unstable => "unstable",
            Self::LinkBound => "link-bound",
            Self::ClientBound => "client-bound",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Judges a run. Of several failed checks the one that explains the others decides: invalid figures come before a
/// limit, a limit other than the server comes before an unsteady rate.
pub fn judge(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Verdict {
    let checks = examine::all(evidence, thresholds);
    let decisive = checks
        .iter()
        .filter_map(|check| check.means.map(|word| (word, check)))
        .filter(|(_, check)| check.level == Level::Fail)
        .fold(
            None,
            |most: Option<(VerdictKind, &Check)>, (word, check)| match most {
                Some((known, _)) if known >= word => most,
                _ => Some((word, check)),
            },
        );
    let (word, sentence) = match decisive {
        Some((word, check)) => (word, check.advice.clone()),
        None if evidence.is_paced() => (VerdictKind::Paced, String::from(PACED)),
        None => (VerdictKind::ServerBound, server_bound(evidence, thresholds)),
    };
    Verdict {
        word,
        sentence,
        checks,
    }
}

/// Which of two limits a valid closed loop has: the server's CPU, or waiting for the server.
fn server_bound(evidence: &Evidence<'_>, thresholds: &Thresholds) -> String {
    let limit = thresholds.of(Subject::ServerCpu);
    let Some(server) = &evidence.machine.server else {
        return String::from(
            "Neither the client nor the link was the limit, so the server was. Its CPU was not seen from here: look at \
             it there, or run the client on the same machine once.",
        );
    };
    let busy = server.busiest_thread * 100.0;
    let idle_client = evidence
        .busiest_thread()
        .is_none_or(|share| share * 100.0 < limit.warn);
    if busy >= limit.fail {
        format!(
            "The server's busiest thread used {busy:.0} % of a CPU: this is what the server can do. Profile it, or \
             give it more threads."
        )
    } else if busy < limit.warn && idle_client {
        format!(
            "Server ({busy:.0} % of a CPU) and client were both waiting: the number of requests in flight, divided by \
             the latency, is the limit. Use more connections to load the server."
        )
    } else {
        format!(
            "Neither the client nor the link was the limit; the server's busiest thread used {busy:.0} % of a CPU. \
             Try more connections to see whether it can do more."
        )
    }
}

const PACED: &str = "The rate asked for was kept and nothing was saturated: the latencies are the server's at this rate. \
                     Use a higher rate, a closed loop or --search to find its limit.";

#[cfg(test)]
mod tests;
