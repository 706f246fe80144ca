//! The plan of a run, as values: the reader of a command line makes a `Plan`, one loop carries it out.

use crate::failure::FailureKind;
use crate::origin::Origin;
use crate::source::Sources;
use crate::target::Endpoint;
use crate::tls::TlsPlan;
use core::num::NonZeroU32;
use core::ops::Range;
use core::time::Duration;
use mill_runtime::time::Instant;
use std::sync::Arc;

/// A whole run. Every dialect and the native command line make one of these.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where connections go; connection n goes to endpoint n modulo their number. Never empty.
    pub endpoints: Vec<Endpoint>,
    /// Where the connections of thread n go instead, if a script chose for each thread; else empty.
    pub endpoints_of_threads: Vec<Endpoint>,
    /// Connections that are kept open or busy at a time, all threads together; at least one per thread.
    pub connections: u32,
    pub threads: u32,
    pub pace: Pace,
    pub life: Life,
    pub opening: Opening,
    pub stop: Stop,
    /// Time before the measured period; its answers are not recorded.
    pub warm_up: Duration,
    pub sources: Sources,
    /// `None`: connections are in clear.
    pub tls: Option<TlsPlan>,
    /// HTTP/2 with so many requests at once on each connection; `None`: HTTP/1.1.
    pub streams: Option<NonZeroU32>,
    /// Of HTTP/2: bytes of a stream's window.
    pub window_bytes: u32,
    /// Whether small segments are sent at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// The time limit of a request from its actual start; `None` has no limit.
    pub timeout: Option<Duration>,
    pub after_failure: AfterFailure,
    pub ending: Ending,
    /// How long before a precise send time a thread stops sleeping and spins.
    pub spin: Duration,
    /// How often [`crate::record::Record::cut`] is called.
    pub interval: Duration,
    /// Each thread is bound to one CPU (sephe's wrk: `-B`).
    pub pin: bool,
    /// The server's process on this machine; `None`: the process that listens at the first endpoint, if that is local.
    pub server_pid: Option<u32>,
    /// Whether to read the kernel's counters: that costs CPU time, which measurements from outside would attribute to
    /// the generator.
    pub observe: bool,
    /// When the schedules begin, if not as soon as all threads are ready: several processes begin together.
    pub begin: Option<Instant>,
    /// For all random choices: arrivals, weights, requests per connection.
    pub seed: u64,
    /// The expected content of every answer of status 200; any other is [`crate::failure::Failure::WrongContent`].
    pub expected: Option<Arc<[u8]>>,
    /// The one thread also answers requests, those of a proxy.
    pub origin: Option<Origin>,
}

/// When the next request starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop: a connection sends the next request after the answer, and after thinking.
    Closed { think: Duration },
    /// Open loop: requests are due at times that do not depend on answers; any idle connection takes the next. `rate`
    /// is per second, all threads together.
    Open { rate: f64, arrivals: Arrivals },
    /// Each connection has its own even schedule at its share of `rate` and lags behind it alone (wrk2).
    Each { rate: f64 },
}

/// How requests of an open loop are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    Uniform,
    /// Exponentially distributed gaps: many independent users.
    Poisson,
}

/// How many requests a connection carries before it is closed.
#[derive(Clone, Debug, PartialEq)]
pub enum Life {
    Unlimited,
    Requests(u32),
    /// Requests and the weight of that number; weights are relative.
    Distribution(Vec<(u32, f64)>),
}

/// When connections are opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Opening {
    /// All at the start.
    Together,
    /// With this pause between two within a thread (wrk2 takes 5 ms).
    Staggered(Duration),
    /// Evenly over this time, all threads together.
    Ramp(Duration),
    /// At most so many new connections a second, all threads together, reopened ones included.
    Rate(f64),
}

/// What ends the measured period; at least one is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    pub after: Option<Duration>,
    /// Requests that are started, all threads together, warm-up included.
    pub requests: Option<u64>,
}

/// What a connection does after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Goes on; after a failed connect it waits first, from `pause` doubling to a hundred times that.
    Retry { pause: Duration },
    /// Goes on, but a connect that this machine could not even begin ends the connection for good (wrk). A refused one
    /// is repeated a millisecond later; wrk does so at once.
    GiveUpConnecting,
    /// The whole run ends.
    Abort,
    /// The whole run ends after a failure of these kinds; after another one the connection goes on at once, after a
    /// failed connect a millisecond later (ab).
    AbortOn(&'static [FailureKind]),
}

/// How the end of a response is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By its framing (RFC 9112 6.3).
    Framed,
    /// By the end of the connection, whatever its framing and however much was received (ab without `-k`).
    Close,
    /// By its framing, or by the end of the connection if that comes first (ab with `-k`).
    FramedOrClose,
}

/// One thread's part of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    pub thread: u32,
    /// Numbers of this thread's connections among all.
    pub connections: Range<u32>,
    /// Requests that this thread may start.
    pub requests: Option<u64>,
}

impl Plan {
    /// The defaults of dialects and tests: closed loop, ten seconds, persistent connections.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoints: vec![endpoint],
            endpoints_of_threads: Vec::new(),
            connections: 1,
            threads: 1,
            pace: Pace::Closed {
                think: Duration::ZERO,
            },
            life: Life::Unlimited,
            opening: Opening::Together,
            stop: Stop {
                after: Some(Duration::from_secs(10)),
                requests: None,
            },
            warm_up: Duration::ZERO,
            sources: Sources::default(),
            tls: None,
            streams: None,
            window_bytes: 1 << 30,
            nodelay: true,
            timeout: None,
            after_failure: AfterFailure::Retry {
                pause: Duration::from_millis(10),
            },
            ending: Ending::Framed,
            spin: Duration::ZERO,
            interval: Duration::from_secs(1),
            pin: false,
            server_pid: None,
            observe: false,
            begin: None,
            seed: 1,
            expected: None,
            origin: None,
        }
    }

    /// Requests at once on a connection.
    pub fn per_connection(&self) -> u32 {
        self.streams.map_or(1, NonZeroU32::get)
    }

    /// When time ends a run that begins at `begin`.
    pub(crate) fn end(&self, begin: Instant) -> Instant {
        let measure_from = begin + self.warm_up;
        self.stop
            .after
            .map_or(Instant::FAR, |after| measure_from + after)
    }

    /// Where connection `number`, one of `thread`, goes.
    pub fn endpoint(&self, thread: u32, number: u32) -> Option<&Endpoint> {
        let chosen = self.endpoints_of_threads.get(thread as usize);
        chosen.or_else(|| {
            let index = (number as usize).checked_rem(self.endpoints.len())?;
            self.endpoints.get(index)
        })
    }

    /// The part of each thread. Remainders are distributed one each to the first threads, never dropped.
    pub fn shares(&self) -> impl Iterator<Item = Share> + '_ {
        (0..self.threads).map(|thread| {
            let connections = cut(u64::from(self.connections), self.threads, thread);
            let requests = self.stop.requests.map(|requests| {
                let part = cut(requests, self.threads, thread);
                part.end - part.start
            });
            let number = |value| u32::try_from(value).unwrap_or(u32::MAX);
            Share {
                thread,
                connections: number(connections.start)..number(connections.end),
                requests,
            }
        })
    }
}

/// Part `index` of `parts` of `0..total`; parts differ by one at most.
pub(crate) fn cut(total: u64, parts: u32, index: u32) -> Range<u64> {
    let (parts, index) = (u64::from(parts.max(1)), u64::from(index));
    let (whole, rest) = (total / parts, total % parts);
    let start = index * whole + index.min(rest);
    start..start + whole + u64::from(index < rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_handed_out_and_nothing_is_dropped() {
        let check = |total, parts, expected: &[u64]| {
            let sizes: Vec<u64> = (0..parts)
                .map(|index| cut(total, parts, index))
                .map(|part| part.end - part.start)
                .collect();
            assert_eq!(sizes, expected);
        };
        check(100, 3, &[34, 33, 33]);
        check(5, 8, &[1, 1, 1, 1, 1, 0, 0, 0]);
        check(8, 2, &[4, 4]);
    }

    #[test]
    fn connections_go_round_the_endpoints_unless_their_thread_has_its_own() {
        let of = |text: &str| Endpoint::Unix(text.as_bytes().into());
        let mut plan = Plan::new(of("a"));
        plan.endpoints.push(of("b"));
        let check = |plan: &Plan, thread, number, expected: &str| {
            assert_eq!(plan.endpoint(thread, number), Some(&of(expected)));
        };
        check(&plan, 0, 2, "a");
        check(&plan, 1, 3, "b");
        plan.endpoints_of_threads = vec![of("c"), of("d")];
        check(&plan, 0, 3, "c");
        check(&plan, 1, 2, "d");
    }

    #[test]
    fn shares_follow_one_another() {
        let mut plan = Plan::new(Endpoint::example());
        plan.connections = 7;
        plan.threads = 3;
        plan.stop.requests = Some(10);
        let shares: Vec<Share> = plan.shares().collect();
        let ranges: Vec<Range<u32>> = shares
            .iter()
            .map(|share| share.connections.clone())
            .collect();
        assert_eq!(ranges, [0..3, 3..5, 5..7]);
        let requests: Vec<Option<u64>> = shares.iter().map(|share| share.requests).collect();
        assert_eq!(requests, [Some(4), Some(3), Some(3)]);
    }
}
