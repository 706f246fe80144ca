//! What the asking end of raw frames has found, and how it says it.

use std::time::Duration;

use crate::bench::told::Latency;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) exchanges: u64,
    pub(super) duration: Duration,
    /// Exchanges that were not answered in time.
    pub(super) lost: u64,
    pub(super) latency: Latency,
}

/// What the line begins with.
const WORD: &str = "FIGURES";

impl Figures {
    pub(super) fn of(mut latencies_ns: Vec<u32>, lost: u64, duration: Duration) -> Self {
        latencies_ns.sort_unstable();
        let at = |thousandths: usize| {
            let index = (latencies_ns.len() * thousandths).div_ceil(1000);
            let ns = latencies_ns.get(index.saturating_sub(1))?;
            Some(f64::from(*ns) / 1e6)
        };
        Self {
            exchanges: latencies_ns.len() as u64,
            duration,
            lost,
            latency: Latency {
                p50: at(500),
                p90: at(900),
                p99: at(990),
                p999: at(999),
                max: at(1000),
            },
        }
    }

    pub(super) fn emit(&self) -> String {
        let (exchanges, lost) = (self.exchanges, self.lost);
        let ns = self.duration.as_nanos();
        let latency = self.latency.all().map(|ms| ms.unwrap_or(f64::NAN));
        let latency = latency.map(|ms| ms.to_string()).join(" ");
        format!("{WORD} {exchanges} {ns} {lost} {latency}")
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix(WORD))?;
        let mut words = line.split_whitespace();
        let mut count = || words.next()?.parse().ok();
        let (exchanges, ns, lost) = (count()?, count()?, count()?);
        let latency: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let known = |ms: &f64| Some(*ms).filter(|ms| ms.is_finite());
        let [p50, p90, p99, p999, max] = latency.as_slice() else {
            return None;
        };
        Some(Self {
            exchanges,
            duration: Duration::from_nanos(ns),
            lost,
            latency: Latency {
                p50: known(p50),
                p90: known(p90),
                p99: known(p99),
                p999: known(p999),
                max: known(max),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Figures;

    #[test]
    fn what_is_said_is_understood() {
        let ten = (1..=10).map(|us| us * 1000).collect();
        let figures = Figures::of(ten, 3, Duration::from_nanos(1_000_000_007));
        assert_eq!((figures.exchanges, figures.lost), (10, 3));
        let latency = [0.005, 0.009, 0.01, 0.01, 0.01].map(Some);
        assert_eq!(figures.latency.all(), latency);
        let none = Figures::of(Vec::new(), 0, Duration::ZERO);
        assert_eq!(none.latency.all(), [None; 5]);
        for figures in [figures, none] {
            let said = format!("something else\n{}\n", figures.emit());
            assert_eq!(Figures::parse(&said), Some(figures));
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for text in ["", "FIGURES 1 2 3 4 5 6 7", "FIGURES 1 2 x 4 5 6 7 8"] {
            assert_eq!(Figures::parse(text), None, "{text}");
        }
    }
}
