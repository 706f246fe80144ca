//! What was measured, and what follows from it.

use super::block::Block;
use super::case::{Case, Target};
use super::idle_memory::IdleMemory;
use super::server::Subject;
use crate::bench::ratio::{Ratio, Verdict};
use crate::bench::strace::SystemCalls;
use crate::bench::timed;

/// A figure, or why there is none.
pub(super) type Measured<T> = Result<T, String>;

#[derive(Debug)]
pub(super) struct CaseResult {
    pub(super) case: Case,
    pub(super) blocks: Vec<Block>,
    pub(super) costs: Vec<Costs>,
    /// Why the case was given up; what was measured before is kept.
    pub(super) failure: Option<String>,
}

/// What is counted apart from the timed blocks.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) subject: Subject,
    pub(super) system_calls: Measured<SystemCalls>,
    pub(super) allocations: Measured<f64>,
}

#[derive(Debug)]
pub(super) struct IdleResult {
    pub(super) subject: Subject,
    pub(super) memory: Measured<IdleMemory>,
}

/// A target, the ratio that it is about, and whether it is met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TargetResult {
    pub(super) target: Target,
    pub(super) verdict: Verdict,
}

pub(super) type Figure = fn(&Block) -> f64;

pub(super) const RATE: Figure = |block| block.requests_per_s;
pub(super) const CPU: Figure = |block| block.cpu_us_per_request;

/// Names and versions in `Server:` differ, and fields of little use may be absent.
const HEAD_DIFFERENCE_BYTES_MAX: usize = 64;

/// Of 1. A server that was kept waiting for longer was not alone on its CPU.
const WAITED_MAX: f64 = 0.05;

impl CaseResult {
    pub(super) fn subjects(&self) -> Vec<Subject> {
        let all = [Subject::Nginx, Subject::Millstream, Subject::Floor];
        let measured = |subject: &Subject| self.blocks_of(*subject).next().is_some();
        all.into_iter().filter(measured).collect()
    }

    pub(super) fn median(&self, subject: Subject, figure: Figure) -> f64 {
        timed::median(self.blocks_of(subject).map(figure)).unwrap_or(f64::NAN)
    }

    pub(super) fn errors(&self, subject: Subject) -> u64 {
        timed::errors(&self.blocks, subject)
    }

    /// Blocks in which somebody else used the server's CPU.
    pub(super) fn disturbed(&self) -> usize {
        let disturbed =
            |block: &&Block| block.server_waited > WAITED_MAX || block.steal > WAITED_MAX;
        self.blocks.iter().filter(disturbed).count()
    }

    /// The bytes of an answer of nginx and of Millstream, if they differ by more than their heads:
    /// then the two did not do the same work.
    pub(super) fn unequal_answers(&self) -> Option<(usize, usize)> {
        let bytes = |subject| Some(self.blocks_of(subject).next()?.answer_bytes);
        let (nginx, millstream) = (bytes(Subject::Nginx)?, bytes(Subject::Millstream)?);
        let unequal = nginx.abs_diff(millstream) > HEAD_DIFFERENCE_BYTES_MAX;
        unequal.then_some((nginx, millstream))
    }

    /// `None` where the case was given up or a block had errors: such figures are not those of the work that was asked for.
    pub(super) fn ratio(&self, of: Subject, to: Subject, figure: Figure) -> Option<Ratio> {
        if self.failure.is_some() {
            return None;
        }
        timed::ratio(&self.blocks, [of, to], figure)
    }

    pub(super) fn targets(&self) -> Vec<TargetResult> {
        let ratio = |to, figure| self.ratio(Subject::Millstream, to, figure);
        let results = self.case.targets().into_iter().filter_map(|target| {
            let verdict = match target {
                Target::CpuOfNginx(limit) => ratio(Subject::Nginx, CPU)?.at_most(limit),
                Target::CpuOfFloor(limit) => ratio(Subject::Floor, CPU)?.at_most(limit),
                Target::RateOfNginx(limit) => ratio(Subject::Nginx, RATE)?.at_least(limit),
            };
            Some(TargetResult { target, verdict })
        });
        results.collect()
    }

    pub(super) fn costs_of(&self, subject: Subject) -> Option<&Costs> {
        self.costs.iter().find(|costs| costs.subject == subject)
    }

    pub(super) fn blocks_of(&self, subject: Subject) -> impl Iterator<Item = &Block> {
        timed::of(&self.blocks, subject)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{CPU, CaseResult, RATE, Target, TargetResult, Verdict};
    use crate::bench::serve::block::Block;
    use crate::bench::serve::case::usual;
    use crate::bench::serve::server::Subject;
    use crate::bench::serve::wrk::Latency;

    pub(in super::super) fn block(subject: Subject, pass: u32, rate: f64, cpu_us: f64) -> Block {
        Block {
            subject,
            pass,
            requests: 2.0 * rate,
            requests_per_s: rate,
            cpu_us_per_request: cpu_us,
            softirq_us_per_request: 1.0,
            bytes_per_s: 850.0 * rate,
            answer_bytes: 233,
            errors: 0,
            latency: Latency {
                p50_us: 500,
                p99_us: 1000,
                p999_us: 2000,
                max_us: 3000,
            },
            client_cpu_us_per_request: 4.0,
            server_ran: 1.0,
            client_ran: 0.9,
            server_waited: 0.0,
            client_waited: 0.0,
            steal: 0.0,
        }
    }

    /// Two passes of the case "keep-alive-0", in which Millstream takes 0.8 of nginx's time.
    pub(in super::super) fn two_passes() -> CaseResult {
        CaseResult {
            case: usual().swap_remove(0),
            blocks: vec![
                block(Subject::Nginx, 0, 1000.0, 10.0),
                block(Subject::Millstream, 0, 1250.0, 8.0),
                block(Subject::Millstream, 1, 2500.0, 4.0),
                block(Subject::Nginx, 1, 2000.0, 5.0),
            ],
            costs: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn blocks_of_one_pass_are_compared_with_each_other() {
        let result = two_passes();
        let ratio = |figure| {
            result
                .ratio(Subject::Millstream, Subject::Nginx, figure)
                .unwrap()
        };
        assert!((ratio(CPU).mean - 0.8).abs() < 1e-9);
        assert!((ratio(CPU).high - 0.8).abs() < 1e-9);
        assert!((ratio(RATE).mean - 1.25).abs() < 1e-9);
        assert!((result.median(Subject::Nginx, RATE) - 1500.0).abs() < 1e-9);
        assert_eq!(result.subjects(), [Subject::Nginx, Subject::Millstream]);
    }

    #[test]
    fn a_target_without_its_blocks_has_no_result() {
        let expected = TargetResult {
            target: Target::CpuOfNginx(0.92),
            verdict: Verdict::Met,
        };
        assert_eq!(two_passes().targets(), [expected]);
    }

    #[test]
    fn a_case_with_errors_has_no_ratio() {
        let mut result = two_passes();
        result
            .blocks
            .iter_mut()
            .for_each(|block| block.errors = u64::from(block.pass));
        assert_eq!(result.ratio(Subject::Millstream, Subject::Nginx, CPU), None);
        assert!(result.targets().is_empty());
    }

    #[test]
    fn answers_that_differ_by_more_than_a_head_are_unequal() {
        let mut result = two_passes();
        assert_eq!(result.unequal_answers(), None);
        for (answer_bytes, expected) in [(297, None), (298, Some((298, 233)))] {
            let first = result.blocks.iter_mut().take(1);
            first.for_each(|block| block.answer_bytes = answer_bytes);
            assert_eq!(result.unequal_answers(), expected);
        }
    }

    #[test]
    fn a_block_whose_server_waited_is_disturbed() {
        let mut result = two_passes();
        assert_eq!(result.disturbed(), 0);
        result
            .blocks
            .iter_mut()
            .take(1)
            .for_each(|block| block.server_waited = 0.2);
        assert_eq!(result.disturbed(), 1);
    }
}
