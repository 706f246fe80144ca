//! What was measured, and what follows from it.

use super::block::Block;
use super::cell::{Cell, Target};
use super::client::Client;
use super::subject::{MEMIF, NGINX, NGINX_BY_XDP, RAW, Subject, XDP};
use crate::bench::bound::bound;
use crate::bench::ratio::{Ratio, Verdict};
use crate::bench::timed;

#[derive(Debug)]
pub(super) struct CellResult {
    pub(super) cell: Cell,
    pub(super) blocks: Vec<Block>,
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

/// Of 1. Who was kept waiting for longer was not alone on its CPU.
const WAITED_MAX: f64 = 0.05;

impl CellResult {
    pub(super) fn new(cell: Cell) -> Self {
        Self {
            cell,
            blocks: Vec::new(),
            clients: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn subjects(&self) -> Vec<Subject> {
        let measured = |subject: &Subject| timed::of(&self.blocks, *subject).next().is_some();
        Subject::ALL.into_iter().filter(measured).collect()
    }

    pub(super) fn spread(&self, subject: Subject, figure: Figure) -> Option<Spread> {
        let values = || timed::of(&self.blocks, subject).map(figure);
        Some(Spread {
            median: timed::median(values())?,
            least: values().fold(f64::INFINITY, f64::min),
            most: values().fold(f64::NEG_INFINITY, f64::max),
        })
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
                    if self.errors(MEMIF) > 0 || self.is_given_up(MEMIF) {
                        return None;
                    }
                    let rate = self.spread(MEMIF, RATE)?;
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
            };
            Some(TargetResult {
                target,
                found,
                verdict,
            })
        });
        results.collect()
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
pub(super) mod tests {
    use super::{CellResult, Found, Target};
    use crate::bench::bypass::block::{Block, CoreUse};
    use crate::bench::bypass::cell::usual;
    use crate::bench::bypass::subject::{Kind, MEMIF, NGINX, NGINX_BY_XDP, RAW, Subject, Way, XDP};
    use crate::bench::ratio::Verdict;
    use crate::bench::told::Latency;

    pub(in super::super) fn block(subject: Subject, pass: u32, rate: f64) -> Block {
        Block {
            subject,
            pass,
            requests_per_s: rate,
            bytes_per_s: 1000.0 * rate,
            errors: 0,
            latency: Latency {
                p50: Some(0.05),
                ..Latency::default()
            },
            lateness: Latency::default(),
            server_core: CoreUse {
                busy: 1.0,
                softirq: 0.25,
                steal: 0.0,
            },
            client_core: CoreUse {
                busy: 0.5,
                ..CoreUse::default()
            },
            server_ran: 0.75,
            client_ran: 0.5,
            server_waited: 0.0,
            client_waited: 0.0,
        }
    }

    /// Two passes of a cell.
    pub(in super::super) fn two_passes(name: &str, rates: &[(Subject, f64)]) -> CellResult {
        let cell = usual().into_iter().find(|cell| cell.name == name).unwrap();
        let mut result = CellResult::new(cell);
        for pass in 0..2 {
            let blocks = rates
                .iter()
                .map(|(subject, rate)| block(*subject, pass, rate * f64::from(1 + pass)));
            result.blocks.extend(blocks);
        }
        result
    }

    fn verdicts(result: &CellResult) -> Vec<Verdict> {
        let targets = result.targets();
        targets.iter().map(|target| target.verdict).collect()
    }

    #[test]
    fn targets_are_judged_by_neighbours() {
        let rates = [
            (NGINX_BY_XDP, 100.0),
            (XDP, 500.0),
            (RAW, 1000.0),
            (MEMIF, 1.5e6),
        ];
        let result = two_passes("ka-1k-64", &rates);
        assert_eq!(
            verdicts(&result),
            [Verdict::Missed, Verdict::Met, Verdict::Open]
        );
        let Some(Found::Ratio(ratio)) = result.targets().first().map(|target| target.found) else {
            panic!("the first target is a ratio");
        };
        assert!((ratio.mean - 0.5).abs() < 1e-9);
    }

    #[test]
    fn large_answers_are_held_against_the_better_nginx() {
        let rates = [(NGINX, 200.0), (NGINX_BY_XDP, 100.0), (XDP, 150.0)];
        let result = two_passes("ka-100k-64", &rates);
        assert_eq!(verdicts(&result), [Verdict::Missed]);
        let worse = [(NGINX, 90.0), (NGINX_BY_XDP, 100.0), (XDP, 150.0)];
        assert_eq!(verdicts(&two_passes("ka-100k-64", &worse)), [Verdict::Met]);
    }

    #[test]
    fn times_are_held_against_the_quicker_nginx() {
        let rates = [(NGINX, 1.0), (NGINX_BY_XDP, 1.0), (XDP, 1.0), (MEMIF, 1.0)];
        let mut result = two_passes("half-1k-64", &rates);
        assert_eq!(result.targets(), []);
        for block in &mut result.blocks {
            block.latency.p99 = Some(match block.subject {
                NGINX => 0.5,
                NGINX_BY_XDP => 0.3,
                _ => 0.2,
            });
            block.lateness.p999 = Some(0.01);
        }
        assert_eq!(verdicts(&result), [Verdict::Missed]);
        for block in &mut result.blocks {
            if block.subject == XDP {
                block.latency.p99 = Some(0.15);
            }
        }
        assert_eq!(verdicts(&result), [Verdict::Met]);
        let paced = two_passes("100k/s-1k-64", &rates);
        assert_eq!(verdicts(&paced), [Verdict::Missed]);
        result.cell = paced.cell;
        assert_eq!(verdicts(&result), [Verdict::Met]);
    }

    #[test]
    fn whoever_had_errors_or_was_given_up_is_not_judged() {
        let rates = [(XDP, 500.0), (RAW, 1000.0)];
        let mut result = two_passes("ka-0B-1", &rates);
        assert_eq!(result.targets().len(), 1);
        result.blocks[0].errors = 1;
        assert_eq!(result.targets(), []);
        let mut result = two_passes("ka-0B-1", &rates);
        result.failures.push((XDP, "it crashed".to_owned()));
        assert_eq!(result.targets(), []);
        assert_eq!(
            two_passes("ka-0B-1", &[])
                .targets()
                .first()
                .map(|t| t.target),
            None::<Target>
        );
    }

    #[test]
    fn who_spins_is_judged_by_the_other() {
        let from_kernel = Subject {
            kind: Kind::Xdp,
            way: Way::Kernel,
        };
        let rates = [
            (NGINX, 1.0),
            (NGINX_BY_XDP, 1.0),
            (XDP, 1.0),
            (from_kernel, 1.0),
        ];
        let mut result = two_passes("ka-0B-64", &rates);
        for (subject, expected) in [
            (NGINX, "server"),
            (NGINX_BY_XDP, "server"),
            (XDP, "both spin"),
            (from_kernel, "server"),
        ] {
            assert_eq!(result.bound(subject), expected, "{subject:?}");
        }
        for block in &mut result.blocks {
            block.client_core.busy = 1.0;
            block.server_core.busy = 0.5;
        }
        assert_eq!(result.bound(from_kernel), "client");
        assert_eq!(result.bound(NGINX_BY_XDP), "client");
    }
}
