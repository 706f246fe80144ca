//! Stretches of a run without an answer although requests waited: a server that has died, hangs or stands still is not
//! visible in latencies, because an unanswered request has none.
//!
//! Each thread records its own gaps between answers; a silence is a stretch in the gaps of all threads.

use crate::tally::Tally;
use core::time::Duration;
use mill_runtime::time::Instant;

/// Time without an answer, since the beginning of the measured period. A gap that was not over at the end of a thread
/// lasts for [`Duration::MAX`]: the thread got no further answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub begin: Duration,
    /// Since when a request waited; [`Duration::MAX`] if none did.
    pub waiting_from: Duration,
    pub end: Duration,
}

/// A stretch in which requests waited and none was answered, since the beginning of the measured period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    pub begin: Duration,
    pub end: Duration,
}

/// One thread's gaps. A request costs some comparisons; only a gap is kept.
#[derive(Debug)]
pub(crate) struct Quiet {
    /// Connections that wait for an answer, including those that failed and try again.
    waiting: u32,
    waiting_from: Instant,
    last_answer: Instant,
    /// The beginning of the measured period.
    base: Instant,
    /// The shortest gap that is kept; grows when there are too many.
    least: Duration,
    gaps: Vec<Gap>,
}

impl Quiet {
    pub(crate) const fn new(begin: Instant) -> Self {
        Self {
            waiting: 0,
            waiting_from: Instant::FAR,
            last_answer: begin,
            base: begin,
            least: KEPT_MIN,
            gaps: Vec::new(),
        }
    }

    /// The measured period begins: earlier gaps are discarded.
    pub(crate) fn restart(&mut self, now: Instant) {
        (self.base, self.last_answer) = (now, now);
        if self.waiting > 0 {
            self.waiting_from = now;
        }
        self.gaps.clear();
    }

    /// A connection has begun to wait.
    pub(crate) fn on_start(&mut self, at: Instant) {
        if self.waiting == 0 {
            self.waiting_from = at;
        }
        self.waiting += 1;
    }

    /// A connection has got its answer.
    pub(crate) fn on_answer(&mut self, at: Instant) {
        if at.since(self.last_answer) >= self.least {
            self.keep(at.since(self.base));
        }
        self.last_answer = self.last_answer.max(at);
        self.on_rest();
    }

    /// A connection no longer waits.
    pub(crate) fn on_rest(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.waiting_from = Instant::FAR;
        }
    }

    /// No connection waits any more.
    pub(crate) fn rest(&mut self) {
        self.waiting = 0;
        self.waiting_from = Instant::FAR;
    }

    /// All gaps of a thread that has ended.
    pub(crate) fn finish(mut self) -> Vec<Gap> {
        self.keep(Duration::MAX);
        self.gaps
    }

    fn keep(&mut self, end: Duration) {
        let waiting_from = match self.waiting_from {
            Instant::FAR => Duration::MAX,
            from => from.max(self.last_answer).since(self.base),
        };
        self.gaps.push(Gap {
            begin: self.last_answer.since(self.base),
            waiting_from,
            end,
        });
        while self.gaps.len() > GAPS_MAX {
            self.least *= 2;
            let least = self.least;
            self.gaps.retain(|gap| gap.end - gap.begin >= least);
        }
    }
}

/// The gaps that all of `threads` share, in the order of time. Without a thread there is none.
pub fn common<'a>(threads: impl IntoIterator<Item = &'a [Gap]>) -> Vec<Gap> {
    let mut threads = threads.into_iter();
    let mut common = threads.next().map(<[Gap]>::to_vec).unwrap_or_default();
    for gaps in threads {
        common = overlaps(&common, gaps);
    }
    common
}

/// Both lists are in the order of time and have no overlaps of their own.
fn overlaps(one: &[Gap], other: &[Gap]) -> Vec<Gap> {
    let (mut ones, mut others) = (one.iter().peekable(), other.iter().peekable());
    let mut overlaps = Vec::new();
    while let (Some(a), Some(b)) = (ones.peek(), others.peek()) {
        let overlap = Gap {
            begin: a.begin.max(b.begin),
            waiting_from: a.waiting_from.min(b.waiting_from),
            end: a.end.min(b.end),
        };
        if overlap.begin < overlap.end {
            overlaps.push(overlap);
        }
        if a.end <= b.end {
            ones.next();
        } else {
            others.next();
        }
    }
    overlaps
}

/// How many of the answers, by their latency, were usual: longer ones occurred less than `UNUSUAL_TIMES` times on each
/// connection, as when a server stands still, so they are not those of a slow page.
pub fn usual_rank(answers: u64, connections: u32) -> u64 {
    answers.saturating_sub(u64::from(connections) * UNUSUAL_TIMES)
}

/// The same as a percentile.
pub fn usual_percent(answers: u64, connections: u32) -> f64 {
    usual_rank(answers, connections) as f64 * 100.0 / answers.max(1) as f64
}

/// The stretches of a run of `measured` that are reported: at least `TOLD_MIN`, and longer than answers usually take.
/// `usual` is the latency at [`usual_percent`]; zero if none was answered.
pub fn silences(gaps: &[Gap], measured: Duration, usual: Duration) -> Vec<Silence> {
    let least = TOLD_MIN.max(usual.saturating_mul(USUAL_TIMES));
    gaps.iter()
        .map(|gap| Silence {
            begin: gap.begin.max(gap.waiting_from).min(measured),
            end: gap.end.min(measured),
        })
        .filter(|silence| silence.length() >= least)
        .collect()
}

/// The total time without an answer.
pub fn total(silences: &[Silence]) -> Duration {
    silences.iter().map(|silence| silence.length()).sum()
}

/// The share of the connections' time, 0 to 1, that was lost to failures and to requests that were never answered.
pub fn lost_share(tally: &Tally, connections: u32, measured: Duration) -> f64 {
    let whole = measured.as_secs_f64() * f64::from(connections);
    if whole > 0.0 {
        (Duration::from_micros(tally.lost_us).as_secs_f64() / whole).min(1.0)
    } else {
        0.0
    }
}

/// The description of silences: `no answer came from 2.01 s to the end, 49.8 % of the run`. `None` without any.
pub fn words(silences: &[Silence], measured: Duration) -> Option<String> {
    let longest = silences.iter().max_by_key(|silence| silence.length())?;
    let share = total(silences).as_secs_f64() / measured.as_secs_f64().max(f64::MIN_POSITIVE);
    let percent = share.min(1.0) * 100.0;
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let stretch = match (longest.begin.is_zero(), longest.end == measured) {
        (true, true) => return Some(format!("no answer came in all of {}", seconds(measured))),
        (_, true) => format!(
            "from {} to the end at {}",
            seconds(longest.begin),
            seconds(longest.end)
        ),
        (_, false) => format!(
            "from {} to {}",
            seconds(longest.begin),
            seconds(longest.end)
        ),
    };
    Some(if silences.len() == 1 {
        let length = seconds(longest.length());
        format!("no answer came for {length}, {stretch} ({percent:.1} % of the run)")
    } else {
        format!(
            "no answer came for {} in {} stretches, the longest {stretch} ({percent:.1} % of the run)",
            seconds(total(silences)),
            silences.len()
        )
    })
}

/// A remark beside a report whose form has no place for it: about silences, else about requests that hang. Failures are
/// in every report. `None` if there are none.
pub(crate) fn remark(
    (gaps, tally): (&[Gap], &Tally),
    connections: u32,
    measured: Duration,
    usual: Duration,
) -> Option<String> {
    if let Some(words) = words(&silences(gaps, measured, usual), measured) {
        return Some(words);
    }
    let lost = lost_share(tally, connections, measured) * 100.0;
    (tally.hanging > 0).then(|| {
        format!(
            "{} of {connections} connections waited in vain at the end: they could not be served for {lost:.1} % of their time",
            tally.hanging
        )
    })
}

impl Silence {
    pub fn length(&self) -> Duration {
        self.end.saturating_sub(self.begin)
    }
}

/// Shorter gaps are not even recorded: half of `TOLD_MIN`.
const KEPT_MIN: Duration = Duration::from_millis(250);

/// Gaps that a thread keeps; with more the shortest are dropped.
const GAPS_MAX: usize = 256;

/// The shortest silence that is reported. A retransmitted segment or a garbage collection takes 200 ms and more.
const TOLD_MIN: Duration = Duration::from_millis(500);

/// How many times longer than usual answers a silence is: with few connections slow answers leave gaps of their length.
const USUAL_TIMES: u32 = 2;

/// How often a connection has to see a latency for it to be usual.
const UNUSUAL_TIMES: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn gap(begin: u64, waiting_from: u64, end: u64) -> Gap {
        Gap {
            begin: ms(begin),
            waiting_from: ms(waiting_from),
            end: ms(end),
        }
    }

    #[test]
    fn a_thread_keeps_long_gaps_and_since_when_it_waited() {
        let mut quiet = Quiet::new(at(1000));
        quiet.on_start(at(1000));
        quiet.on_answer(at(1010));
        // No request waits for a second, then one does for half a second.
        quiet.on_start(at(2010));
        quiet.on_start(at(2100));
        quiet.on_answer(at(2510));
        quiet.on_answer(at(2600));
        let end = Gap {
            begin: ms(1600),
            waiting_from: Duration::MAX,
            end: Duration::MAX,
        };
        assert_eq!(quiet.finish(), [gap(10, 1010, 1510), end]);
    }

    #[test]
    fn a_request_that_waits_on_has_waited_since_the_last_answer() {
        let mut quiet = Quiet::new(at(0));
        quiet.on_start(at(0));
        quiet.on_start(at(0));
        quiet.on_answer(at(100));
        quiet.on_start(at(100));
        assert_eq!(
            quiet.finish(),
            [Gap {
                begin: ms(100),
                waiting_from: ms(100),
                end: Duration::MAX
            }]
        );
    }

    #[test]
    fn many_gaps_are_bounded_and_the_longest_stay() {
        let mut quiet = Quiet::new(at(0));
        for n in 1..10_000 {
            quiet.on_start(at(n * 300));
            quiet.on_answer(at(n * 300));
        }
        quiet.on_start(at(3_000_000));
        quiet.on_answer(at(3_100_000));
        let gaps = quiet.finish();
        assert!(gaps.len() <= GAPS_MAX, "{}", gaps.len());
        assert!(gaps.iter().any(|gap| gap.end == ms(3_100_000)), "{gaps:?}");
    }

    #[test]
    fn only_what_all_threads_share_is_silence() {
        let check = |threads: &[&[Gap]], expected: &[Gap]| {
            assert_eq!(common(threads.iter().copied()), expected);
        };
        check(&[], &[]);
        check(&[&[gap(0, 0, 9)], &[]], &[]);
        check(&[&[gap(0, 1, 9)], &[gap(5, 7, 12)]], &[gap(5, 1, 9)]);
        check(&[&[gap(0, 0, 4)], &[gap(4, 4, 8)]], &[]);
        check(
            &[&[gap(0, 0, 9)], &[gap(1, 1, 3), gap(4, 4, 20)]],
            &[gap(1, 0, 3), gap(4, 0, 9)],
        );
    }

    #[test]
    fn a_silence_is_longer_than_usual_answers_and_only_while_requests_wait() {
        let check = |gaps: &[Gap], usual: u64, expected: &[(u64, u64)]| {
            let silences = silences(gaps, ms(10_000), ms(usual));
            let silences: Vec<_> = silences.iter().map(|it| (it.begin, it.end)).collect();
            let expected: Vec<_> = expected.iter().map(|(a, b)| (ms(*a), ms(*b))).collect();
            assert_eq!(silences, expected);
        };
        check(&[gap(1000, 1000, 1499)], 1, &[]);
        check(&[gap(1000, 1000, 1500)], 1, &[(1000, 1500)]);
        check(&[gap(1000, 1400, 1500)], 1, &[]);
        check(&[gap(1000, 1000, 1999)], 500, &[]);
        check(&[gap(1000, 1000, 2000)], 500, &[(1000, 2000)]);
        let never = Gap {
            begin: ms(9000),
            waiting_from: Duration::MAX,
            end: Duration::MAX,
        };
        check(&[never], 1, &[]);
        let till_the_end = Gap {
            waiting_from: ms(9000),
            ..never
        };
        check(&[till_the_end], 1, &[(9000, 10_000)]);
    }

    #[test]
    fn silences_are_described() {
        let check = |stretches: &[(u64, u64)], expected: Option<&str>| {
            let silences: Vec<Silence> = stretches
                .iter()
                .map(|(begin, end)| Silence {
                    begin: ms(*begin),
                    end: ms(*end),
                })
                .collect();
            assert_eq!(words(&silences, ms(4000)).as_deref(), expected);
        };
        check(&[], None);
        check(&[(0, 4000)], Some("no answer came in all of 4.00 s"));
        check(
            &[(2000, 4000)],
            Some("no answer came for 2.00 s, from 2.00 s to the end at 4.00 s (50.0 % of the run)"),
        );
        check(
            &[(0, 1000)],
            Some("no answer came for 1.00 s, from 0.00 s to 1.00 s (25.0 % of the run)"),
        );
        check(
            &[(0, 1000), (2000, 2600)],
            Some(
                "no answer came for 1.60 s in 2 stretches, the longest from 0.00 s to 1.00 s (40.0 % of the run)",
            ),
        );
    }
}
