//! What was measured of the clients' speed, and what follows from it.

use super::block::Block;
use super::case::Case;
use super::client::Client;
use crate::bench::ratio::{Ratio, Verdict};
use crate::bench::strace::SystemCalls;
use crate::bench::timed;

/// A figure, or why there is none.
pub(super) type Measured<T> = Result<T, String>;

#[derive(Debug)]
pub(super) struct CaseResult {
    pub(super) case: Case,
    pub(super) blocks: Vec<Block>,
    /// Per request.
    pub(super) system_calls: Vec<(Client, Measured<SystemCalls>)>,
    /// Clients that were given up, and why; what was measured before is kept.
    pub(super) failures: Vec<(Client, String)>,
}

pub(super) type Figure = fn(&Block) -> f64;

pub(super) const RATE: Figure = |block| block.requests_per_s;
pub(super) const CPU: Figure = |block| block.cpu_us_per_request;

/// The most that our clients' CPU time per request may be, as a multiple of wrk's: the target of the
/// load generator's design.
pub(super) const CPU_OF_WRK_MAX: f64 = 0.8;

/// Of 1. A client that was kept waiting for longer was not alone on its CPU.
const WAITED_MAX: f64 = 0.05;

impl CaseResult {
    pub(super) const fn new(case: Case) -> Self {
        Self {
            case,
            blocks: Vec::new(),
            system_calls: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn clients(&self) -> Vec<Client> {
        let measured = |client: &Client| self.blocks_of(*client).next().is_some();
        Client::ALL.into_iter().filter(measured).collect()
    }

    pub(super) fn median(&self, client: Client, figure: Figure) -> f64 {
        timed::median(self.blocks_of(client).map(figure)).unwrap_or(f64::NAN)
    }

    /// `None` where the client does not tell.
    pub(super) fn median_told(
        &self,
        client: Client,
        figure: fn(&Block) -> Option<f64>,
    ) -> Option<f64> {
        timed::median(self.blocks_of(client).filter_map(figure))
    }

    pub(super) fn errors(&self, client: Client) -> u64 {
        timed::errors(&self.blocks, client)
    }

    /// Blocks in which somebody else used a measured CPU.
    pub(super) fn disturbed(&self) -> usize {
        let disturbed = |block: &&Block| {
            block.client_waited > WAITED_MAX
                || block.server_waited > WAITED_MAX
                || block.steal > WAITED_MAX
        };
        self.blocks.iter().filter(disturbed).count()
    }

    /// `None` where a block had errors: such figures are not those of the work that was asked for.
    pub(super) fn ratio(&self, of: Client, to: Client, figure: Figure) -> Option<Ratio> {
        timed::ratio(&self.blocks, [of, to], figure)
    }

    /// Whether a client of ours keeps the target against wrk; `None` if there is none.
    pub(super) fn target(&self, of: Client, to: Client) -> Option<Verdict> {
        let ratio = self.ratio(of, to, CPU)?;
        (to == Client::Wrk).then(|| ratio.at_most(CPU_OF_WRK_MAX))
    }

    fn blocks_of(&self, client: Client) -> impl Iterator<Item = &Block> {
        timed::of(&self.blocks, client)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{CPU, CaseResult, RATE, Verdict};
    use crate::bench::load::block::Block;
    use crate::bench::load::case::CASES;
    use crate::bench::load::client::Client;
    use crate::bench::told::Latency;

    fn block(client: Client, pass: u32, rate: f64, cpu_us: f64) -> Block {
        Block {
            client,
            pass,
            requests: 1000,
            requests_per_s: rate,
            cpu_us_per_request: cpu_us,
            latency: Latency {
                p50: Some(0.5),
                p99: Some(1.0),
                ..Latency::default()
            },
            errors: 0,
            client_ran: 1.0,
            client_waited: 0.0,
            server_ran: 0.5,
            server_waited: 0.0,
            steal: 0.0,
        }
    }

    /// Two passes of the case "keep-alive-0", in which our wrk takes 0.75 of wrk's time.
    pub(in super::super) fn two_passes() -> CaseResult {
        let mut result = CaseResult::new(CASES[0]);
        result.blocks = vec![
            block(Client::MillstreamWrk, 0, 1250.0, 7.5),
            block(Client::Wrk, 0, 1000.0, 10.0),
            block(Client::Wrk, 1, 2000.0, 4.0),
            block(Client::MillstreamWrk, 1, 2500.0, 3.0),
        ];
        result
    }

    #[test]
    fn blocks_of_one_pass_are_compared_with_each_other() {
        let result = two_passes();
        let ratio = |figure| {
            result
                .ratio(Client::MillstreamWrk, Client::Wrk, figure)
                .unwrap()
        };
        assert!((ratio(CPU).high - 0.75).abs() < 1e-9);
        assert!((ratio(RATE).mean - 1.25).abs() < 1e-9);
        assert!((result.median(Client::Wrk, RATE) - 1500.0).abs() < 1e-9);
        assert_eq!(result.clients(), [Client::MillstreamWrk, Client::Wrk]);
        let target = result.target(Client::MillstreamWrk, Client::Wrk);
        assert_eq!(target, Some(Verdict::Met));
    }

    #[test]
    fn blocks_with_errors_have_no_ratio() {
        let mut result = two_passes();
        result.blocks.iter_mut().for_each(|block| block.errors = 1);
        assert_eq!(result.ratio(Client::MillstreamWrk, Client::Wrk, CPU), None);
        assert_eq!(result.target(Client::MillstreamWrk, Client::Wrk), None);
    }

    #[test]
    fn a_block_whose_client_waited_is_disturbed() {
        let mut result = two_passes();
        assert_eq!(result.disturbed(), 0);
        result
            .blocks
            .iter_mut()
            .take(1)
            .for_each(|block| block.client_waited = 0.2);
        assert_eq!(result.disturbed(), 1);
    }
}
