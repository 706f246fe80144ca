//! Histograms as figures and as curves.

use super::Printed;
use super::figures::percentile_name;
use mill_metrics::Histogram;

impl Printed {
    /// Figures of a family from its histogram; those of `latency_s` give the curve as well.
    pub(super) fn set_histogram(&mut self, family: &str, histogram: Histogram) {
        if histogram.is_empty() {
            return;
        }
        for (part, duration) in [
            ("min", histogram.min()),
            ("mean", histogram.mean()),
            ("stdev", histogram.stdev()),
            ("median", histogram.percentile(50.0)),
            ("max", histogram.max()),
        ] {
            if part != "median" || family != LATENCY {
                self.set(&format!("{family}.{part}"), duration.as_secs_f64());
            }
        }
        for percent in NAMED_PERCENTS {
            let seconds = histogram.percentile(percent).as_secs_f64();
            self.set(&percentile_name(family, percent), seconds);
        }
        if family == LATENCY {
            self.percentiles = curve(&histogram);
        }
        self.histograms.insert(String::from(family), histogram);
    }
}

/// The percentiles that get a name; the rest is in the curve.
const NAMED_PERCENTS: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// The family whose curve is shown.
pub(super) const LATENCY: &str = "latency_s";

/// The curve as HdrHistogram's tools step through it: five steps, then the distance to 100 % is halved, until a step would be less
/// than one request; then 100 %.
fn curve(histogram: &Histogram) -> Vec<(f64, f64)> {
    let at = |percent| (percent, histogram.percentile(percent).as_secs_f64());
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count of requests is far below 2^53"
    )]
    let smallest = 100.0 / histogram.count() as f64;
    let mut points = Vec::new();
    let mut distance = 100.0;
    while distance > smallest {
        for tick in 0..TICKS {
            points.push(at(
                100.0 - distance + distance * f64::from(tick) / 2.0 / f64::from(TICKS)
            ));
        }
        distance /= 2.0;
    }
    points.push(at(100.0));
    points
}

/// Points for each halving of the distance, as in wrk2's spectrum.
const TICKS: u32 = 5;
