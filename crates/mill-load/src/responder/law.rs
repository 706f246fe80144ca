//! The delays of answers.

use crate::random::Random;
use mill_runtime::time::{Duration, Instant};
use thiserror::Error;

/// The delays of a responder: one for each request, and optionally a time without answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Law {
    pub delay: Delay,
    pub stall: Option<Stall>,
}

/// From the arrival of a request to its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Delay {
    #[default]
    None,
    Constant(Duration),
    /// `first` with this probability, else `second`.
    TwoPeaked {
        probability: f64,
        first: Duration,
        second: Duration,
    },
    /// Many small ones and few large ones, with this mean.
    Exponential(Duration),
}

/// A time without answers; answers due in it are sent at its end. Counted from a thread's first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub at: Duration,
    pub lasts: Duration,
}

/// Why a text is no law.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is no delay; use none, 2ms, 0.9:1ms,20ms (two peaks), exp:2ms or stall:5s,1s (at, for), or one of the former with a stall: 2ms+stall:5s,1s"
)]
pub struct LawError(String);

impl Law {
    /// Parses `2ms`, `0.9:1ms,20ms`, `exp:2ms`, `stall:5s,1s`, or a delay and a stall joined by `+`.
    pub fn parse(text: &str) -> Result<Self, LawError> {
        let mut law = Self::default();
        let (mut delays, mut stalls) = (0, 0);
        for part in text.split('+') {
            if let Some(times) = part.strip_prefix("stall:") {
                let (at, lasts) = pair(times).ok_or_else(|| LawError(String::from(text)))?;
                law.stall = Some(Stall { at, lasts });
                stalls += 1;
            } else {
                law.delay = delay(part).ok_or_else(|| LawError(String::from(text)))?;
                delays += 1;
            }
        }
        if delays > 1 || stalls > 1 {
            return Err(LawError(String::from(text)));
        }
        Ok(law)
    }

    /// Whether every answer is due at once.
    pub(super) fn is_none(&self) -> bool {
        self.delay == Delay::None && self.stall.is_none()
    }

    /// When the answer is due to a request that arrived at `arrival`; `first` is the arrival of the first request.
    pub(super) fn due(&self, arrival: Instant, first: Instant, random: &mut Random) -> Instant {
        let delay = match self.delay {
            Delay::None => Duration::ZERO,
            Delay::Constant(delay) => delay,
            Delay::TwoPeaked {
                probability,
                first,
                second,
            } => {
                if random.unit() < probability {
                    first
                } else {
                    second
                }
            }
            Delay::Exponential(mean) => mean.mul_f64(random.exponential()),
        };
        let due = arrival + delay;
        match self.stall {
            Some(Stall { at, lasts }) if due >= first + at => due.max(first + at + lasts),
            _ => due,
        }
    }
}

/// Parses a number with its unit, `250us`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    let duration = Duration::try_from_secs_f64(number * seconds).ok()?;
    (duration <= DELAY_MAX).then_some(duration)
}

fn delay(text: &str) -> Option<Delay> {
    if text == "none" {
        return Some(Delay::None);
    }
    if let Some(mean) = text.strip_prefix("exp:") {
        return duration(mean).map(Delay::Exponential);
    }
    match text.split_once(':') {
        None => duration(text).map(Delay::Constant),
        Some((probability, times)) => {
            let probability: f64 = probability.parse().ok()?;
            let (first, second) = pair(times)?;
            (0.0..=1.0)
                .contains(&probability)
                .then_some(Delay::TwoPeaked {
                    probability,
                    first,
                    second,
                })
        }
    }
}

fn pair(text: &str) -> Option<(Duration, Duration)> {
    let (first, second) = text.split_once(',')?;
    Some((duration(first)?, duration(second)?))
}

/// An hour: the maximum of histograms.
const DELAY_MAX: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[track_caller]
    fn check(text: &str, delay: Delay, stall: Option<(u32, u32)>) {
        let stall = stall.map(|(at, lasts)| Stall {
            at: at * MS,
            lasts: lasts * MS,
        });
        assert_eq!(Law::parse(text), Ok(Law { delay, stall }));
    }

    #[test]
    fn laws_are_parsed() {
        check("none", Delay::None, None);
        check("2ms", Delay::Constant(2 * MS), None);
        check("1.5s", Delay::Constant(1500 * MS), None);
        check("exp:2ms", Delay::Exponential(2 * MS), None);
        check("stall:5s,1s", Delay::None, Some((5000, 1000)));
        check(
            "stall:5s,1s+2ms",
            Delay::Constant(2 * MS),
            Some((5000, 1000)),
        );
        let peaks = Delay::TwoPeaked {
            probability: 0.9,
            first: MS,
            second: 20 * MS,
        };
        check("0.9:1ms,20ms", peaks, None);
    }

    #[test]
    fn malformed_laws_are_quoted() {
        for text in [
            "",
            "2",
            "ms",
            "2h",
            "1:2ms",
            "2:1ms,2ms",
            "exp:",
            "stall:1s",
            "1ms+2ms",
            "9999s",
            "-1s",
            "stall:1s,1s+stall:2s,1s",
        ] {
            let error = Law::parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("\"{text}\" is no delay")),
                "{error}"
            );
        }
    }

    fn dues(text: &str, arrivals_ms: &[u32]) -> Vec<u128> {
        let law = Law::parse(text).unwrap();
        let first = Instant::from_nanos(1_000_000_000);
        let mut random = Random::new(3);
        let due = |at: &u32| law.due(first + *at * MS, first, &mut random);
        let dues = arrivals_ms.iter().map(due);
        dues.map(|due| due.since(first).as_millis()).collect()
    }

    #[test]
    fn answers_due_in_a_stall_wait_for_its_end() {
        assert_eq!(dues("2ms", &[0, 7]), [2, 9]);
        assert_eq!(
            dues("2ms+stall:10ms,5ms", &[0, 7, 8, 12, 13, 14]),
            [2, 9, 15, 15, 15, 16]
        );
    }

    #[test]
    fn random_delays_have_their_probabilities() {
        let delays = dues("0.75:1ms,9ms", &[0; 4000]);
        let first = delays.iter().filter(|delay| **delay == 1).count();
        assert!((2900..3100).contains(&first), "{first}");
        let sum: u128 = dues("exp:100ms", &[0; 4000]).iter().sum();
        assert!((95..105).contains(&(sum / 4000)), "{sum}");
    }
}
