//! Medians, intervals, tests and curves; pure arithmetic with known vectors as tests.
//!
//! ```text
//! order        median, quantiles, intervals of quantiles from order statistics
//! normal       the normal distribution, Student's quantile
//! random       the generator of resamples, seeded
//! student      Student's and Welch's tests of means
//! bootstrap    the interval of two samples' ratio
//! signed_rank  Wilcoxon's test of pairs, Hodges-Lehmann
//! rank_sum     Mann-Whitney's test of two samples, Hodges-Lehmann's shift
//! holm         p-values of a family of tests
//! ratio        the ratio of pairs
//! noise        how much a system differs from itself, and the smallest detectable difference
//! steady       where the steady part of a series begins, trends
//! batches      how far the seconds of a series depend on each other
//! scaling      the universal scalability law
//! ```
//!
//! Invariants: no figure here is random, the same input gives the same output on every machine; what a sample cannot
//! give is `None` or an error with the number of values needed, never a guess.

mod batches;
mod bootstrap;
mod holm;
mod noise;
mod normal;
mod order;
mod random;
mod rank_sum;
mod ratio;
mod scaling;
mod signed_rank;
mod steady;
mod student;

pub use batches::{Batches, batches};
pub use bootstrap::bootstrap_two;
pub use holm::holm;
pub use noise::NoiseFloor;
pub(crate) use noise::{detectable as noise_detectable, median_error as noise_median_error};
pub use normal::{normal_cdf, normal_quantile, student_quantile};
pub use order::{Interval, median, median_interval, quantile, quantile_interval};
pub use random::Generator;
pub use rank_sum::{RankSum, mann_whitney};
pub use ratio::{PairedRatio, log_ratios};
pub use scaling::{Scaling, ScalingError, ScalingPoint, fit_scaling};
pub use signed_rank::{SignedRank, wilcoxon};
pub use steady::{Trend, mann_kendall, mser5};
pub use student::{paired_student, student_tails, welch};

/// A count as a number of arithmetic.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts here are of trials, seconds and resamples, far below 2^53"
)]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}
