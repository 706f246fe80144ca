//! Whether latencies are told as they were: known delays, told by each client, held against the truth.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::block::Setting;
use super::case::CONCURRENCY;
use super::client::CommandLine;
use super::results::Measured;
use super::run;
use super::server::{Kind, Server, Service};
use super::truth::{Situation, percentile};
use crate::bench::failure::{Failure, Result};
use crate::bench::told::{self, Latency};

/// The delays of a server, and how its truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delays {
    Constant,
    TwoPeaked,
    Stall,
}

/// Who measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measurer {
    OpenLoop,
    ClosedLoop,
    Wrk2,
    Wrk,
    Ab,
}

/// What one client said of one server.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) measurer: Measurer,
    pub(super) measured: Measured<Found>,
}

/// Latencies in milliseconds, as told and as they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) told: Latency,
    pub(super) truth: Latency,
    /// Of 1: how long others kept the client waiting for its CPU.
    pub(super) waited: f64,
}

#[derive(Debug)]
pub(super) struct AccuracyResult {
    pub(super) delays: Delays,
    pub(super) accounts: Vec<Account>,
}

/// Of 1: the most that an open loop may be off at every percentile up to p99.9.
pub(super) const ERROR_MAX: f64 = 0.02;

/// The stall and its run have fixed lengths, whatever `--seconds` is: a quarter of all requests are
/// due in it, so that no percentile shown lies at its edge.
const STALL_RUN_SECONDS: u64 = 4;
const STALL_AT_MS: u32 = 1500;
const STALL_LASTS_MS: u32 = 1000;
/// So long that what the network and two wake-ups add, some 40 us, is below a hundredth.
const STALL_DELAY_MS: u32 = 5;

/// ab ends with its time or with so many requests.
const AB_REQUESTS: &str = "20000000";

impl Delays {
    pub(super) const ALL: [Self; 3] = [Self::Constant, Self::TwoPeaked, Self::Stall];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Constant => "20 ms",
            Self::TwoPeaked => "90 % 10 ms, 10 % 50 ms",
            Self::Stall => "5 ms, a stall of 1 s",
        }
    }

    /// As `millstream load respond --delay` reads it.
    fn law(self) -> String {
        match self {
            Self::Constant => "20ms".to_owned(),
            Self::TwoPeaked => "0.9:10ms,50ms".to_owned(),
            Self::Stall => {
                format!("{STALL_DELAY_MS}ms+stall:{STALL_AT_MS}ms,{STALL_LASTS_MS}ms")
            }
        }
    }

    /// Per second; low enough that connections and CPUs are idle most of the time.
    pub(super) const fn rate(self) -> u32 {
        match self {
            Self::Constant | Self::TwoPeaked => 2000,
            Self::Stall => 1000,
        }
    }

    fn seconds(self, block_seconds: u64) -> u64 {
        match self {
            // Enough requests that 0.1 % of them are several.
            Self::Constant | Self::TwoPeaked => (2 * block_seconds).max(3),
            Self::Stall => STALL_RUN_SECONDS,
        }
    }
}

impl Measurer {
    pub(super) const ALL: [Self; 5] = [
        Self::OpenLoop,
        Self::ClosedLoop,
        Self::Wrk2,
        Self::Wrk,
        Self::Ab,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OpenLoop => "millstream load, open loop",
            Self::ClosedLoop => "millstream load, closed loop",
            Self::Wrk2 => "millstream wrk2",
            Self::Wrk => "wrk",
            Self::Ab => "ab",
        }
    }

    fn command_line(
        self,
        setting: Setting<'_>,
        rate: u32,
        seconds: u64,
        url: &str,
    ) -> Vec<OsString> {
        let Setting {
            programs, files, ..
        } = setting;
        let many = format!("-t1 -c{CONCURRENCY} -d{seconds}s");
        let start = |program: &Path, words: &str| {
            let mut line = CommandLine::new(program);
            line.add(words);
            line
        };
        let ours = &programs.millstream;
        let mut line = match self {
            Self::OpenLoop => start(ours, &format!("load --quiet {many} --rate {rate} --json")),
            Self::ClosedLoop => start(ours, &format!("load --quiet {many} --json")),
            Self::Wrk2 => start(ours, &format!("wrk2 {many} -R{rate} -L")),
            Self::Wrk => start(
                &programs.wrk,
                &format!("{many} --timeout={}s -s", seconds + 5),
            ),
            Self::Ab => {
                let words = format!("-k -q -d -S -c{CONCURRENCY} -t{seconds} -n{AB_REQUESTS} -e");
                start(&programs.ab, &words)
            }
        };
        match self {
            Self::OpenLoop | Self::ClosedLoop => line.file(&files.json),
            Self::Wrk => line.file(&files.script),
            Self::Ab => line.file(&files.percentages),
            Self::Wrk2 => &mut line,
        };
        line.add(url);
        line.0
    }

    fn told(self, setting: Setting<'_>, text: &str) -> Option<Latency> {
        let file = |file| fs::read_to_string(file).unwrap_or_default();
        let files = setting.files;
        let told = match self {
            Self::OpenLoop | Self::ClosedLoop => told::native::parse(&file(&files.json))?.told,
            Self::Wrk2 => told::wrk2::parse(text)?,
            Self::Wrk => told::wrk::parse(text)?,
            Self::Ab => told::ab::parse(text, &file(&files.percentages))?,
        };
        Some(told.latency)
    }
}

/// Every client against a server of these delays.
pub(super) fn measure(setting: Setting<'_>, delays: Delays) -> AccuracyResult {
    let accounts = Measurer::ALL.map(|measurer| Account {
        measurer,
        measured: find(setting, delays, measurer).map_err(|failure| failure.to_string()),
    });
    AccuracyResult {
        delays,
        accounts: accounts.into(),
    }
}

fn find(setting: Setting<'_>, delays: Delays, measurer: Measurer) -> Result<Found> {
    let seconds = delays.seconds(setting.seconds);
    let service = Service {
        body_bytes: 0,
        delay: Some(delays.law()),
    };
    let server = Server::start(setting.lab, setting.programs, Kind::Respond, &service)?;
    run::forget(setting.files);
    let line = measurer.command_line(setting, delays.rate(), seconds, &server.url());
    let ended = run::run(setting.lab, &line, seconds)?;
    let said = server.stop()?;
    let told = measurer.told(setting, &ended.text).ok_or_else(|| {
        let last = ended.text.trim().lines().last().unwrap_or("nothing");
        Failure(format!("{} told no figures: {last}", measurer.name()))
    })?;
    let truth = match delays {
        Delays::Constant | Delays::TwoPeaked => given(&said)
            .ok_or_else(|| Failure(format!("the responder told no delays: {}", said.trim())))?,
        Delays::Stall => of_stall(),
    };
    Ok(Found {
        told,
        truth,
        waited: ended.waited(),
    })
}

/// What a client that starts its requests in time must see of the stall.
fn of_stall() -> Latency {
    let latencies = Situation {
        rate: f64::from(Delays::Stall.rate()),
        seconds: STALL_RUN_SECONDS as f64,
        connections: CONCURRENCY,
        delay_ms: f64::from(STALL_DELAY_MS),
        stall_at_ms: f64::from(STALL_AT_MS),
        stall_lasts_ms: f64::from(STALL_LASTS_MS),
    }
    .latencies_ms();
    let at = |percent| percentile(&latencies, percent);
    Latency {
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p999: at(99.9),
        max: at(100.0),
    }
}

/// The responder's own histogram of the delays it gave: a row of figures, "2.004 ms" each, under
/// 50 %, 90 %, 99 %, 99.9 %, 99.99 % and the longest.
fn given(said: &str) -> Option<Latency> {
    let row = said
        .lines()
        .find_map(|line| line.strip_prefix("delay given"))?;
    let figures: Option<Vec<f64>> = row
        .split_whitespace()
        .filter(|word| *word != "ms")
        .map(|word| word.parse().ok())
        .collect();
    let figures = figures?;
    let &[p50, p90, p99, p999, _, max] = figures.as_slice() else {
        return None;
    };
    let [p50, p90, p99, p999, max] = [p50, p90, p99, p999, max].map(Some);
    Some(Latency {
        p50,
        p90,
        p99,
        p999,
        max,
    })
}

impl Found {
    /// Of 1, in the order of [`Latency::NAMES`].
    pub(super) fn errors(&self) -> [Option<f64>; 5] {
        let mut truths = self.truth.all().into_iter();
        self.told.all().map(|told| {
            let truth = truths.next().flatten().filter(|truth| *truth > 0.0)?;
            Some(told? / truth - 1.0)
        })
    }

    /// The largest error up to p99.9, without its sign; `None` where one is not told.
    pub(super) fn worst(&self) -> Option<f64> {
        let errors = self.errors();
        let [p50, p90, p99, p999, _] = errors;
        let all = [p50?, p90?, p99?, p999?];
        Some(all.into_iter().map(f64::abs).fold(0.0, f64::max))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Found, Latency, given, of_stall};

    pub(in super::super) fn latency(values: [f64; 5]) -> Latency {
        let [p50, p90, p99, p999, max] = values.map(Some);
        Latency {
            p50,
            p90,
            p99,
            p999,
            max,
        }
    }

    #[test]
    fn the_responders_row_is_the_truth() {
        let said = "answered 80 requests on 4 connections, 7200 bytes sent\n\
                    \x20                   50%        90%        99%      99.9%     99.99%        max\n\
                    delay given    5.001 ms   5.002 ms   5.010 ms   5.100 ms   5.200 ms   6.000 ms\n\
                    of it late     0.001 ms   0.002 ms   0.010 ms   0.100 ms   0.200 ms   1.000 ms\n";
        let expected = latency([5.001, 5.002, 5.010, 5.1, 6.0]);
        assert_eq!(given(said), Some(expected));
        assert_eq!(given("answered 80 requests\n"), None);
        assert_eq!(given("delay given  1 ms\n"), None);
    }

    #[test]
    fn errors_are_shares_of_the_truth() {
        let found = Found {
            told: latency([1.01, 1.98, 3.0, 4.0, 9.0]),
            truth: latency([1.0, 2.0, 3.0, 4.0, 4.5]),
            waited: 0.0,
        };
        assert!((found.worst().unwrap() - 0.01).abs() < 1e-9);
        assert!((found.errors()[4].unwrap() - 1.0).abs() < 1e-9);
        let mute = Found {
            told: Latency {
                p999: None,
                ..found.told
            },
            ..found
        };
        assert_eq!(mute.worst(), None);
    }

    #[test]
    fn a_stall_of_a_second_is_seen_by_who_is_due_in_it() {
        let truth = of_stall();
        let near = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() / expected - 1.0).abs() < 0.02, "{truth:?}");
        };
        near(truth.p50, 5.0);
        near(truth.p90, 636.0);
        near(truth.p99, 966.0);
        near(truth.max, 1005.0);
    }
}
