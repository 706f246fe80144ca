//! What was measured, and what follows from it.

use super::block::Block;
use super::cell::{Cell, Pace, Target};
use super::client::Client;
use super::overload::Overload;
use super::subject::{MEMIF, NGINX, NGINX_BY_XDP, RAW, Subject, XDP};
use crate::bench::bound::bound;
use crate::bench::ratio::{Ratio, Verdict};
use crate::bench::timed;

#[derive(Debug)]
pub(super) struct CellResult {
    pub(super) cell: Cell,
    pub(super) blocks: Vec<Block>,
    /// Of a cell of an overload, in place of blocks.
    pub(super) overloads: Vec<Overload>,
    /// The kernel client of each subject that has one, with the others' rates beside its own.
    pub(super) clients: Vec<Trial>,
    /// Subjects that were given up in this cell, and why; what was measured before is kept.
    pub(super) failures: Vec<(Subject, String)>,
}

/// Kernel clients tried out on a subject, best first, with the requests a second that they made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) subject: Subject,
    pub(super) rates: Vec<(Client, f64)>,
}

/// A target and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TargetResult {
    pub(super) target: Target,
    pub(super) found: Found,
    pub(super) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    Ratio(Ratio),
    /// Median, least and most of the blocks.
    Rate(Spread),
    /// Two medians of times, in milliseconds.
    Times(f64, f64),
    /// Of times, in milliseconds.
    Time(Spread),
    /// Of memory for each connection.
    Bytes(Spread),
    /// Of shares that an overload leaves.
    Kept(Spread),
}

/// Of the blocks of a subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

pub(super) type Figure = fn(&Block) -> f64;

pub(super) const RATE: Figure = |block| block.requests_per_s;

/// Of 1: a few are about to be opened anew at any time.
const HELD_MIN: f64 = 0.99;

/// Of 1. Who was kept waiting for longer was not alone on its CPU.
const WAITED_MAX: f64 = 0.05;

impl CellResult {
    pub(super) fn new(cell: Cell) -> Self {
        Self {
            cell,
            blocks: Vec::new(),
            overloads: Vec::new(),
            clients: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn subjects(&self) -> Vec<Subject> {
        let measured = |subject: &Subject| timed::of(&self.blocks, *subject).next().is_some();
        Subject::ALL.into_iter().filter(measured).collect()
    }

    pub(super) fn spread(&self, subject: Subject, figure: Figure) -> Option<Spread> {
        Spread::over(timed::of(&self.blocks, subject).map(figure))
    }

    /// What an overload has left of what the subject can do, of 1.
    pub(super) fn kept(&self, subject: Subject) -> Option<Spread> {
        let own = self.overloads.iter().filter(|one| one.subject == subject);
        Spread::over(own.map(Overload::kept))
    }

    pub(super) fn median(&self, subject: Subject, figure: Figure) -> f64 {
        timed::median(timed::of(&self.blocks, subject).map(figure)).unwrap_or(f64::NAN)
    }

    /// Of those blocks whose client has told the figure.
    pub(super) fn median_told(
        &self,
        subject: Subject,
        figure: fn(&Block) -> Option<f64>,
    ) -> Option<f64> {
        timed::median(timed::of(&self.blocks, subject).filter_map(figure))
    }

    pub(super) fn errors(&self, subject: Subject) -> u64 {
        timed::errors(&self.blocks, subject)
    }

    /// `None` where one of the two was not measured, was given up, or had errors: such figures are not those of the
    /// work that was asked for. What raw frames lose in a burst is no error of theirs.
    pub(super) fn ratio(&self, of: Subject, to: Subject) -> Option<Ratio> {
        if self.is_given_up(of) || self.is_given_up(to) {
            return None;
        }
        timed::ratio(&self.blocks, [of, to], RATE)
    }

    pub(super) fn is_given_up(&self, subject: Subject) -> bool {
        self.failures.iter().any(|(failed, _)| *failed == subject)
    }

    /// The client that asked.
    pub(super) fn client(&self, subject: Subject) -> Option<Client> {
        let trial = self.clients.iter().find(|trial| trial.subject == subject)?;
        trial.rates.first().map(|(client, _)| *client)
    }

    /// nginx with whichever client brings more out of it.
    pub(super) fn better_nginx(&self) -> Subject {
        let rate = |subject| self.spread(subject, RATE).map_or(0.0, |rate| rate.median);
        if rate(NGINX_BY_XDP) > rate(NGINX) {
            NGINX_BY_XDP
        } else {
            NGINX
        }
    }

    /// Blocks in which others had one of the two CPUs.
    pub(super) fn disturbed(&self) -> usize {
        let is_disturbed = |block: &&Block| {
            let waited = block.server_waited.max(block.client_waited);
            let steal = block.server_core.steal.max(block.client_core.steal);
            waited.max(steal) > WAITED_MAX
        };
        self.blocks.iter().filter(is_disturbed).count()
    }

    /// Those that can be judged.
    pub(super) fn targets(&self) -> Vec<TargetResult> {
        let results = self.cell.targets().into_iter().filter_map(|target| {
            let (found, verdict) = match target {
                Target::XdpOfRaw(limit) => at_least(self.ratio(XDP, RAW)?, limit),
                Target::XdpOfNginx(limit) => at_least(self.ratio(XDP, NGINX_BY_XDP)?, limit),
                Target::XdpOfBetterNginx(limit) => {
                    at_least(self.ratio(XDP, self.better_nginx())?, limit)
                }
                Target::MemifRate(limit) => {
                    let rate = self.sound(MEMIF, RATE)?;
                    (Found::Rate(rate), rate.at_least(limit))
                }
                Target::XdpP99OfNginx(limit) => {
                    let nginx = [NGINX, NGINX_BY_XDP].map(|nginx| self.p99(nginx));
                    let nginx = nginx.into_iter().flatten().reduce(f64::min)?;
                    let own = self.p99(XDP)?;
                    let is_met = own <= limit * nginx;
                    let verdict = if is_met {
                        Verdict::Met
                    } else {
                        Verdict::Missed
                    };
                    (Found::Times(own, nginx), verdict)
                }
                Target::MemifLateness(limit) => {
                    let late =
                        self.spread(MEMIF, |block| block.lateness.p999.unwrap_or(f64::INFINITY))?;
                    (Found::Time(late), late.at_most(limit))
                }
                Target::MemifServerBytes(limit) => {
                    let bytes = self.held(|block| block.server_bytes)?;
                    (Found::Bytes(bytes), bytes.at_most(limit))
                }
                Target::MemifClientBytes(limit) => {
                    let bytes = self.held(|block| block.client_bytes)?;
                    (Found::Bytes(bytes), bytes.at_most(limit))
                }
                Target::MemifPaceKept(limit) => {
                    let Pace::PerSecond(due) = self.cell.pace else {
                        return None;
                    };
                    let rate = self.sound(MEMIF, RATE)?;
                    let kept = rate.of(f64::from(due));
                    (Found::Kept(kept), kept.at_least(limit))
                }
                Target::XdpGoodput(limit) => {
                    let kept = self.kept(XDP).filter(|_| !self.is_given_up(XDP))?;
                    (Found::Kept(kept), kept.at_least(limit))
                }
            };
            Some(TargetResult {
                target,
                found,
                verdict,
            })
        });
        results.collect()
    }

    /// `None` with errors.
    fn sound(&self, subject: Subject, figure: Figure) -> Option<Spread> {
        let is_sound = self.errors(subject) == 0 && !self.is_given_up(subject);
        self.spread(subject, figure).filter(|_| is_sound)
    }

    /// `None` if fewer connections were held than were asked for: of those that come and go memory is another.
    fn held(&self, figure: Figure) -> Option<Spread> {
        let least = f64::from(self.cell.concurrency) * HELD_MIN;
        let held = |block: &Block| block.connections_held.map_or(0.0, |held| held as f64);
        let are_held = self.spread(MEMIF, held)?.least >= least;
        self.sound(MEMIF, figure).filter(|_| are_held)
    }

    /// The median of the blocks; `None` with errors.
    fn p99(&self, subject: Subject) -> Option<f64> {
        if self.errors(subject) > 0 || self.is_given_up(subject) {
            return None;
        }
        self.median_told(subject, |block| block.latency.p99)
    }

    /// Who could do no more. Of one that spins its CPU tells nothing.
    pub(super) fn bound(&self, subject: Subject) -> &'static str {
        let server = self.median(subject, |block| block.server_core.busy);
        let client = self.median(subject, |block| block.client_core.busy);
        match (subject.kind.spins(), subject.way.spins()) {
            (true, true) => "both spin",
            // It is told from the one that does not spin: whoever is not the bound waits for the other.
            (true, false) if bound(0.0, client) == "client" => "client",
            (true, false) => "server",
            (false, true) if bound(server, 0.0) == "server" => "server",
            (false, true) => "client",
            (false, false) => bound(server, client),
        }
    }
}

fn at_least(ratio: Ratio, limit: f64) -> (Found, Verdict) {
    (Found::Ratio(ratio), ratio.at_least(limit))
}

impl Spread {
    /// As parts of a whole.
    fn of(self, whole: f64) -> Self {
        Self {
            median: self.median / whole,
            least: self.least / whole,
            most: self.most / whole,
        }
    }

    /// `None` of nothing.
    fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        Some(Self {
            median: timed::median(values.iter().copied())?,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    fn at_most(self, limit: f64) -> Verdict {
        if self.most <= limit {
            Verdict::Met
        } else if self.least > limit {
            Verdict::Missed
        } else {
            Verdict::Open
        }
    }

    fn at_least(self, limit: f64) -> Verdict {
        if self.least >= limit {
            Verdict::Met
        } else if self.most < limit {
            Verdict::Missed
        } else {
            Verdict::Open
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
