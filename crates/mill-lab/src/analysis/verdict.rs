//! The verdict on a ratio.
//!
//! The margin is the widest of the recipe's threshold and the noise floor (see `statistics::noise`); with fewer than six
//! pairs also what the pairs' own scatter allows, t(0.975, n-1)·s·√(π/2 / n).
//!
//! The test is Wilcoxon's of signed ranks. Where there are too few pairs for its p to come below 0.05 with any values
//! (2/2^n, times the family's size), it is Student's of the logarithms, which assumes more and works with three
//! pairs.
//!
//! ```text
//! no interval (fewer than three pairs)                                   inconclusive
//! the whole interval within ± margin, and the margin below 25 %          no difference
//! the interval without 1, the median beyond the margin, and the test,
//!   corrected for its family, below 0.05                                 better or worse
//! anything else                                                          inconclusive, with how many more blocks
//! ```

use super::wording::{counted, p_value, percent, percent_of_log, range_covers, signed_percent};
use crate::findings::{LEVEL, Verdict};
use crate::metric::{Better, Metric, Unit};
use crate::statistics::{
    Interval, NoiseFloor, PairedRatio, noise_detectable, noise_median_error, number, quantile,
    student_quantile,
};

/// The test for all comparisons of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Ranks,
    Student,
}

impl Test {
    /// Of ranks if each member can come below the level. The choice depends on the number of pairs only, not on their
    /// values.
    pub(super) fn of(family: &[&PairedRatio]) -> Self {
        let can_speak = |ratio: &&PairedRatio| ranks_can_speak(ratio.logs.len(), family.len());
        if family.iter().all(can_speak) {
            Self::Ranks
        } else {
            Self::Student
        }
    }

    /// Not yet corrected for the family.
    pub(super) fn p_value(self, ratio: &PairedRatio) -> Option<f64> {
        match self {
            Self::Ranks => ratio.p_rank,
            Self::Student => ratio.p_student,
        }
    }
}

/// Whether the least p that so many pairs can have, 2/2^n, is below the level for the first of a family.
fn ranks_can_speak(pairs: usize, family: usize) -> bool {
    let pairs = i32::try_from(pairs).unwrap_or(i32::MAX);
    2.0_f64.powi(1 - pairs) * number(family) < LEVEL
}

/// A ratio with all that it is judged by.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) ratio: &'a PairedRatio,
    pub(super) metric: &'a Metric,
    /// Corrected for its family, and how large that is.
    pub(super) p_value: Option<f64>,
    pub(super) test: Test,
    pub(super) family: usize,
    pub(super) noise: Option<NoiseFloor>,
    /// The recipe's, a share.
    pub(super) threshold: f64,
}

impl Case<'_> {
    fn pairs(&self) -> usize {
        self.ratio.logs.len()
    }

    /// |ln ratio| below which nothing is ranked.
    fn margin(&self) -> f64 {
        let pairs = self.pairs();
        let floor = self.noise.map_or(0.0, |noise| noise.floor(pairs));
        let own = match self.ratio.deviation() {
            Some(deviation) if pairs < RANK_TEST_MIN => {
                student_quantile(0.975, pairs - 1) * deviation * noise_median_error(pairs)
            }
            _ => 0.0,
        };
        self.threshold.max(0.0).ln_1p().max(floor).max(own)
    }

    /// |ln ratio| that this many pairs find in four of five cases: by the noise of equals, else by the pairs' own scatter.
    fn detectable(&self) -> Option<f64> {
        let found = match self.noise {
            Some(noise) => noise.detectable(self.pairs()),
            None => noise_detectable(self.ratio.deviation()?, self.pairs()),
        };
        Some(found.max(self.threshold.max(0.0).ln_1p()))
    }

    /// Whether the test finds a difference.
    fn is_told(&self) -> bool {
        self.p_value.is_some_and(|p| p < LEVEL)
    }

    pub(super) fn verdict(&self) -> Verdict {
        let Some(Interval { low, high, .. }) = self.ratio.interval else {
            return Verdict::Inconclusive;
        };
        let (margin, middle) = (self.margin(), self.ratio.middle);
        if low >= -margin && high <= margin {
            // A margin wider than any difference of interest decides nothing.
            return if margin <= MARGIN_LOG_MAX {
                Verdict::NoDifference
            } else {
                Verdict::Inconclusive
            };
        }
        let apart = low > 0.0 || high < 0.0;
        if !apart || middle.abs() <= margin || !self.is_told() {
            return Verdict::Inconclusive;
        }
        let rose = middle > 0.0;
        match self.metric.better {
            Better::Higher | Better::Neither if rose => Verdict::Better,
            Better::Lower if !rose => Verdict::Better,
            _ => Verdict::Worse,
        }
    }

    /// "faster by 12.1 % [9.8, 14.0], 12 pairs, p = 0.0005, smallest detectable 1.9 %".
    pub(super) fn words(&self) -> String {
        let middle = self.ratio.middle;
        let pairs = counted(self.pairs(), "pair");
        let p = self
            .p_value
            .map(|p| match self.test {
                Test::Ranks => format!(", {}", p_value(p)),
                Test::Student => format!(", {} (t-test)", p_value(p)),
            })
            .unwrap_or_default();
        let change = signed_percent(percent_of_log(middle));
        let Some(interval) = self.ratio.interval else {
            return format!("inconclusive: {change} % from {pairs}; three at least are needed");
        };
        let covers = range_covers(interval);
        match self.verdict() {
            Verdict::NoDifference => format!(
                "no difference above {} % ({change} % {}, {pairs}{covers}{p})",
                percent(percent_of_log(self.margin())),
                bounds(interval),
            ),
            Verdict::Inconclusive => format!(
                "inconclusive: {change} % {}, {pairs}{covers}{p}; {}",
                bounds(interval),
                self.wanted()
            ),
            Verdict::Better | Verdict::Worse => {
                let detectable = self
                    .detectable()
                    .map(|log| format!(", smallest detectable {} %", percent(percent_of_log(log))));
                format!(
                    "{} by {} % {}, {pairs}{covers}{p}{}",
                    direction(self.metric, middle > 0.0),
                    percent(percent_of_log(middle).abs()),
                    size(interval),
                    detectable.unwrap_or_default()
                )
            }
        }
    }

    /// How many blocks would decide, if further ones are like these.
    fn wanted(&self) -> String {
        let pairs = self.pairs();
        let steps = std::iter::successors(Some(1_usize), |more| Some(more + 1 + more / 5));
        let mut steps = steps.take_while(|more| *more <= MORE_MAX);
        match steps.find(|more| self.would_decide(pairs + more)) {
            Some(1) => String::from("about 1 more block would probably decide"),
            Some(more) => format!("about {more} more blocks would probably decide"),
            None => format!("more than {MORE_MAX} more blocks would be needed"),
        }
    }

    /// Whether this many pairs, with ratios distributed like these, have a verdict by all of its criteria.
    fn would_decide(&self, pairs: usize) -> bool {
        let shares = (0..pairs).map(|place| (number(place) + 0.5) / number(pairs));
        let alike: Vec<(f64, f64)> = shares
            .filter_map(|share| quantile(&self.ratio.logs, share))
            .map(|log| (1.0, log.exp()))
            .collect();
        let Some(ratio) = PairedRatio::of(&alike) else {
            return false;
        };
        let test = if ranks_can_speak(pairs, self.family) {
            Test::Ranks
        } else {
            Test::Student
        };
        let p_value = test.p_value(&ratio);
        let then = Case {
            ratio: &ratio,
            metric: self.metric,
            p_value: p_value.map(|p| (p * number(self.family)).min(1.0)),
            test,
            family: self.family,
            noise: self.noise,
            threshold: self.threshold,
        };
        then.verdict() != Verdict::Inconclusive
    }
}

/// ln 1.25: what is below a wider margin is not called equal.
const MARGIN_LOG_MAX: f64 = 0.223;

/// "faster" of a rate, "higher" of anything else.
pub(super) fn direction(metric: &Metric, rose: bool) -> &'static str {
    match (metric.unit, metric.better, rose) {
        (
            Unit::PerSecond | Unit::BytesPerSecond | Unit::GigabitsPerSecond,
            Better::Higher,
            true,
        ) => "faster",
        (
            Unit::PerSecond | Unit::BytesPerSecond | Unit::GigabitsPerSecond,
            Better::Higher,
            false,
        ) => "slower",
        (_, _, true) => "higher",
        (_, _, false) => "lower",
    }
}

/// "[-1.0, 4.5]", in percent.
fn bounds(interval: Interval) -> String {
    let (low, high) = (percent_of_log(interval.low), percent_of_log(interval.high));
    format!("[{}, {}]", percent(low), percent(high))
}

/// The same for a change whose direction is given in words: the smaller size first.
fn size(interval: Interval) -> String {
    let (low, high) = (percent_of_log(interval.low), percent_of_log(interval.high));
    let (a, b) = if high < 0.0 {
        (-high, -low)
    } else {
        (low, high)
    };
    format!("[{}, {}]", percent(a), percent(b))
}

/// Pairs from which Wilcoxon's test can reach 0.05 (2/2^6 = 0.031).
const RANK_TEST_MIN: usize = 6;

/// More blocks than this are no advice.
const MORE_MAX: usize = 200;
