//! HyStart++ (RFC 9406): slow start ends when round trips become longer, before anything is lost.

use mill_wire::seq::SeqNumber;

/// RFC 9406 4.2.
#[derive(Debug, Default)]
pub struct Hystart {
    phase: HystartPhase,
    /// `windowEnd`: where the round ends.
    round_end: Option<SeqNumber>,
    /// Microseconds.
    current_round_min_us: Option<u32>,
    last_round_min_us: Option<u32>,
    samples: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HystartPhase {
    #[default]
    SlowStart,
    /// Conservative slow start: perhaps the network is full.
    Conservative {
        baseline_us: u32,
        rounds: u8,
    },
    Over,
}

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    Full,
    /// By a part of it, `SLOW_DIVISOR`.
    Slow,
    /// Slow start is over: `ssthresh` becomes the window.
    Over,
}

impl Hystart {
    /// A loss ended slow start.
    pub(super) const fn end(&mut self) {
        self.phase = HystartPhase::Over;
    }

    #[inline]
    pub(super) fn on_sample(&mut self, rtt_us: u32) {
        self.samples = self.samples.saturating_add(1);
        let min = self.current_round_min_us.get_or_insert(rtt_us);
        *min = rtt_us.min(*min);
    }

    /// An acknowledgement of new data, after its sample.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: SeqNumber, snd_nxt: SeqNumber) -> Growth {
        let is_round_over = match self.round_end {
            None => {
                self.round_end = Some(snd_nxt);
                false
            }
            Some(end) => ack.is_at_or_after(end),
        };
        self.judge();
        let growth = match &mut self.phase {
            HystartPhase::SlowStart => Growth::Full,
            HystartPhase::Conservative { rounds, .. } => {
                *rounds += u8::from(is_round_over);
                if *rounds >= CONSERVATIVE_ROUNDS {
                    self.phase = HystartPhase::Over;
                    Growth::Over
                } else {
                    Growth::Slow
                }
            }
            HystartPhase::Over => Growth::Full,
        };
        if is_round_over {
            self.round_end = Some(snd_nxt);
            self.last_round_min_us = self.current_round_min_us.take();
            self.samples = 0;
        }
        growth
    }

    /// RFC 9406 4.2: compares this round's shortest trip with the last one's.
    fn judge(&mut self) {
        let (Some(current), Some(last)) = (self.current_round_min_us, self.last_round_min_us)
        else {
            return;
        };
        if self.samples < SAMPLES {
            return;
        }
        match self.phase {
            HystartPhase::SlowStart => {
                let threshold = (last / DELAY_DIVISOR).clamp(DELAY_US_MIN, DELAY_US_MAX);
                if current >= last.saturating_add(threshold) {
                    self.phase = HystartPhase::Conservative {
                        baseline_us: current,
                        rounds: 0,
                    };
                }
            }
            // The delay was a chance one: slow start goes on.
            HystartPhase::Conservative { baseline_us, .. } if current < baseline_us => {
                self.phase = HystartPhase::SlowStart;
            }
            HystartPhase::Conservative { .. } | HystartPhase::Over => {}
        }
    }
}

/// RFC 9406 4.3: `N_RTT_SAMPLE`, samples of a round before it is judged.
const SAMPLES: u8 = 8;

/// RFC 9406 4.3: `MIN_RTT_DIVISOR`; an eighth more than the last round is a delay …
const DELAY_DIVISOR: u32 = 8;

/// … but at least `MIN_RTT_THRESH` and at most `MAX_RTT_THRESH`, microseconds.
const DELAY_US_MIN: u32 = 4_000;
const DELAY_US_MAX: u32 = 16_000;

/// RFC 9406 4.3: `CSS_GROWTH_DIVISOR`.
pub(super) const SLOW_DIVISOR: u32 = 4;

/// RFC 9406 4.3: `CSS_ROUNDS`.
const CONSERVATIVE_ROUNDS: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of `samples` trips of `rtt_us`; what the last acknowledgement said.
    fn round(hystart: &mut Hystart, number: u32, rtt_us: u32, samples: u32) -> Growth {
        let (start, end) = (SeqNumber(number * 1_000), SeqNumber((number + 1) * 1_000));
        let mut growth = Growth::Full;
        for sample in 0..samples {
            hystart.on_sample(rtt_us);
            growth = hystart.on_ack(start + sample, end);
        }
        growth
    }

    #[test]
    fn a_longer_round_slows_growth_and_five_such_rounds_end_slow_start() {
        let mut hystart = Hystart::default();
        assert_eq!(round(&mut hystart, 0, 40_000, 10), Growth::Full);
        assert_eq!(round(&mut hystart, 1, 40_000, 10), Growth::Full);
        // An eighth is 5 ms.
        assert_eq!(round(&mut hystart, 2, 44_999, 10), Growth::Full);
        assert_eq!(round(&mut hystart, 3, 50_700, 10), Growth::Slow);
        for number in 4..8 {
            assert_eq!(
                round(&mut hystart, number, 50_700, 10),
                Growth::Slow,
                "{number}"
            );
        }
        hystart.on_sample(50_700);
        assert_eq!(
            hystart.on_ack(SeqNumber(8_000), SeqNumber(9_000)),
            Growth::Over
        );
        assert_eq!(round(&mut hystart, 9, 90_000, 10), Growth::Full);
    }

    #[test]
    fn too_few_samples_say_nothing() {
        let mut hystart = Hystart::default();
        round(&mut hystart, 0, 40_000, 10);
        round(&mut hystart, 1, 40_000, 10);
        // The first acknowledgement of a round still belongs to the one before.
        assert_eq!(round(&mut hystart, 2, 80_000, 7), Growth::Full);
    }

    #[test]
    fn a_round_shorter_than_the_delayed_one_resumes_slow_start() {
        let mut hystart = Hystart::default();
        round(&mut hystart, 0, 40_000, 10);
        round(&mut hystart, 1, 40_000, 10);
        assert_eq!(round(&mut hystart, 2, 60_000, 10), Growth::Slow);
        assert_eq!(round(&mut hystart, 3, 40_000, 10), Growth::Full);
    }

    #[test]
    fn short_and_long_trips_have_bounds_of_their_own() {
        let check = |before, now, expected| {
            let mut hystart = Hystart::default();
            round(&mut hystart, 0, before, 10);
            round(&mut hystart, 1, before, 10);
            assert_eq!(round(&mut hystart, 2, now, 10), expected, "{before} {now}");
        };
        check(1_000, 4_999, Growth::Full);
        check(1_000, 5_000, Growth::Slow);
        check(400_000, 415_999, Growth::Full);
        check(400_000, 416_000, Growth::Slow);
    }
}
