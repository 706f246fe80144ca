//! What is said of a ratio.
//!
//! The margin is the widest of the recipe's threshold and the noise floor (see `statistics::noise`); with fewer than six
//! pairs also what the pairs' own scatter allows, t(0.975, n-1)·s·√(π/2 / n), because no rank test can speak there.
//!
//! ```text
//! no interval (fewer than three pairs)                                   inconclusive
//! the whole interval within ± margin, and the margin below 25 %          no difference
//! the interval without 1, the median beyond the margin, and the rank
//!   test below 0.05 if this many pairs can bring it there                better or worse
//! anything else                                                          inconclusive, with how many more blocks
//! ```

use super::wording::{counted, p_value, percent, percent_of_log, signed_percent};
use crate::findings::Verdict;
use crate::metric::{Better, Metric, Unit};
use crate::statistics::{
    Interval, IntervalKind, NoiseFloor, PairedRatio, noise_detectable, noise_median_error,
    student_quantile,
};

/// A ratio with all that it is judged by.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) ratio: &'a PairedRatio,
    pub(super) metric: &'a Metric,
    /// Corrected for its family, and how large that is.
    pub(super) p_value: Option<f64>,
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

    /// Whether the rank test speaks against a difference, where it could speak at all.
    fn refuted(&self) -> bool {
        let pairs = i32::try_from(self.pairs()).unwrap_or(i32::MAX);
        let least = 2.0_f64.powi(1 - pairs) * crate::statistics::number(self.family);
        least < LEVEL && self.p_value.is_some_and(|p| p >= LEVEL)
    }

    pub(super) fn verdict(&self) -> Verdict {
        let Some(Interval { low, high, .. }) = self.ratio.interval else {
            return Verdict::Inconclusive;
        };
        let (margin, middle) = (self.margin(), self.ratio.middle);
        if low >= -margin && high <= margin {
            // A margin that hides any difference that people look for says nothing about one.
            return if margin <= MARGIN_LOG_MAX {
                Verdict::NoDifference
            } else {
                Verdict::Inconclusive
            };
        }
        let apart = low > 0.0 || high < 0.0;
        if !apart || middle.abs() <= margin || self.refuted() {
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
            .map(|p| format!(", {}", p_value(p)))
            .unwrap_or_default();
        let change = signed_percent(percent_of_log(middle));
        let Some(interval) = self.ratio.interval else {
            return format!("inconclusive: {change} % from {pairs}; three at least are needed");
        };
        let covers = match interval.kind {
            IntervalKind::Range { covers } => {
                format!(" (their range, which covers {} %)", percent(covers * 100.0))
            }
            _ => String::new(),
        };
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

    /// How many blocks would decide: an interval narrows with the root of its pairs.
    fn wanted(&self) -> String {
        let Some(interval) = self.ratio.interval else {
            return String::from("three pairs at least are needed");
        };
        let pairs = crate::statistics::number(self.pairs());
        let half = (interval.high - interval.low) / 2.0;
        let (margin, middle) = (self.margin(), self.ratio.middle.abs());
        // Either the interval has to leave 1, or to fit into the margin; a median at the margin itself would take for ever.
        let target = if middle > margin {
            middle
        } else {
            (margin - middle).max(margin / 4.0)
        };
        let needed =
            (pairs * (half / target).powi(2)).max(crate::statistics::number(RANK_TEST_MIN));
        let more = (needed - pairs).ceil().max(1.0);
        if more > MORE_MAX {
            format!("more than {MORE_MAX:.0} more blocks would be needed")
        } else {
            format!("about {more:.0} more blocks would probably decide")
        }
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

/// The same of a change whose direction was said: the smaller size first.
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

/// Level of the rank test.
const LEVEL: f64 = 0.05;

/// More blocks than this are no advice.
const MORE_MAX: f64 = 200.0;
