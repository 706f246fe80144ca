//! All options of `millstream load`, one entry each, by subject.

use super::values::{count, duration, life, moment, positive, small_count, some_duration};
use super::words::{arrivals, file, header, interval, method, one_body, user, version};
use super::{Body, Draft, addresses};
use crate::native::part::PartIndex;
use crate::native::requirements::{LATENCIES, MostErrors, Requirement};
use crate::native::search::Objective;
use crate::native::sweep::Sweep;

/// One option.
pub(super) struct Entry {
    pub(super) subject: Subject,
    /// Its names and its value's placeholder: `-c, --connections N`.
    pub(super) usage: &'static str,
    pub(super) help: &'static str,
    /// Whether the short help lists it.
    pub(super) often: bool,
    pub(super) set: Set,
}

type Set = fn(&mut Draft, &str) -> Result<(), String>;

/// The heading of an option in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Load,
    Connections,
    Requests,
    Network,
    Several,
    Success,
    Output,
    /// Used between processes of this program; no help lists it.
    Hidden,
}

impl Subject {
    pub(super) const ALL: [Self; 7] = [
        Self::Load,
        Self::Connections,
        Self::Requests,
        Self::Network,
        Self::Several,
        Self::Success,
        Self::Output,
    ];

    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Load => "How much",
            Self::Connections => "Connections",
            Self::Requests => "Requests",
            Self::Network => "Network and timing",
            Self::Several => "Several processes, several runs",
            Self::Success => "Success (exit status 2 if one does not hold)",
            Self::Output => "Output",
            Self::Hidden => "",
        }
    }
}

impl Entry {
    /// An option that the short help lists too.
    const fn often(subject: Subject, usage: &'static str, help: &'static str, set: Set) -> Self {
        Self {
            often: true,
            ..Self::rare(subject, usage, help, set)
        }
    }

    const fn rare(subject: Subject, usage: &'static str, help: &'static str, set: Set) -> Self {
        Self {
            subject,
            usage,
            help,
            often: false,
            set,
        }
    }

    /// With both dashes.
    pub(super) fn long(&self) -> &'static str {
        self.usage
            .split([' ', ','])
            .find(|word| word.starts_with("--"))
            .unwrap_or(self.usage)
    }

    pub(super) fn short(&self) -> Option<&'static str> {
        self.usage.split_once(", ").map(|(short, _)| short)
    }

    /// The placeholder of its value; `None`: it has none.
    pub(super) fn value(&self) -> Option<&'static str> {
        let names = self.usage.split_once("--").map_or("", |(_, name)| name);
        names.split_once(' ').map(|(_, value)| value)
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        let is_alias = ALIASES
            .iter()
            .any(|(alias, long)| *alias == name && *long == self.long());
        name == self.long() || self.short() == Some(name) || is_alias
    }
}

/// Short names known from other tools, besides those of the table.
const ALIASES: [(&str, &str); 1] = [("-z", "--duration")];

use Subject::{Connections, Hidden, Load, Network, Output, Requests, Several, Success};

pub(super) const TABLE: &[Entry] = &[
    Entry::often(
        Load,
        "-d, --duration TIME",
        "measure so long: 30s, 1.5m, 250ms (default 10s); -z too, as in hey and oha",
        |draft, value| put(&mut draft.duration, some_duration(value)),
    ),
    Entry::often(
        Load,
        "-n, --requests N",
        "end after so many requests",
        |draft, value| put(&mut draft.requests, count(value, 1)),
    ),
    Entry::often(
        Load,
        "-r, --rate N",
        "open loop: so many requests are due a second",
        |draft, value| put(&mut draft.rate, positive(value)),
    ),
    Entry::rare(
        Load,
        "--arrivals KIND",
        "gaps of an open loop: uniform (default) or poisson",
        |draft, value| put(&mut draft.arrivals, arrivals(value)),
    ),
    Entry::rare(
        Load,
        "--think TIME",
        "closed loop: wait so long after an answer",
        |draft, value| put(&mut draft.think, duration(value)),
    ),
    Entry::rare(
        Load,
        "--send-delay TIME",
        "the same, as dpdk-httpperf calls it (-D)",
        |draft, value| put(&mut draft.think, duration(value)),
    ),
    Entry::often(
        Load,
        "--warm-up TIME",
        "load so long before measuring (at a rate: 1s)",
        |draft, value| put(&mut draft.warm_up, duration(value)),
    ),
    Entry::often(
        Connections,
        "-c, --connections N",
        "connections at a time (default 10)",
        |draft, value| put(&mut draft.connections, small_count(value, 1)),
    ),
    Entry::often(
        Connections,
        "-t, --threads N",
        "threads (default: as many as CPUs)",
        |draft, value| put(&mut draft.threads, small_count(value, 1)),
    ),
    Entry::often(
        Connections,
        "--no-keepalive",
        "one request per connection: Connection: close",
        |draft, _| {
            draft.closes = true;
            Ok(())
        },
    ),
    Entry::rare(
        Connections,
        "--requests-per-connection N",
        "close after N requests, or by shares: 1:35%,4:25%,14:40%",
        |draft, value| put(&mut draft.life, life(value)),
    ),
    Entry::rare(
        Connections,
        "--connection-rate N",
        "open at most N connections each second",
        |draft, value| put(&mut draft.connection_rate, positive(value)),
    ),
    Entry::rare(
        Connections,
        "--ramp TIME",
        "open the connections evenly over this time",
        |draft, value| put(&mut draft.ramp, some_duration(value)),
    ),
    Entry::often(
        Connections,
        "--timeout TIME",
        "a request fails after this time (default 30s, 0: never)",
        |draft, value| put(&mut draft.timeout, duration(value)),
    ),
    Entry::often(
        Requests,
        "-X, --method METHOD",
        "default GET, with a body POST",
        |draft, value| put(&mut draft.method, method(value)),
    ),
    Entry::often(
        Requests,
        "-H, --header LINE",
        "add a field 'Name: value'; may be repeated",
        |draft, value| {
            draft.headers.push(header(value)?);
            Ok(())
        },
    ),
    Entry::often(
        Requests,
        "--body TEXT",
        "send this content",
        |draft, value| {
            draft.body = one_body(&draft.body, Body::Text(String::from(value)))?;
            Ok(())
        },
    ),
    Entry::rare(
        Requests,
        "--body-file FILE",
        "send the content of a file",
        |draft, value| {
            draft.body = one_body(&draft.body, Body::File(String::from(value)))?;
            Ok(())
        },
    ),
    Entry::rare(
        Requests,
        "--user NAME:PASSWORD",
        "basic authentication",
        |draft, value| put(&mut draft.user, user(value)),
    ),
    Entry::rare(
        Requests,
        "--replay FILE",
        "send a file's requests in turn, one METHOD TARGET a line",
        |draft, value| put(&mut draft.replay, Ok(String::from(value))),
    ),
    Entry::rare(
        Requests,
        "--expect FILE",
        "count answers of status 200 as failed if their content is not FILE's",
        |draft, value| put(&mut draft.expect, Ok(String::from(value))),
    ),
    Entry::rare(
        Requests,
        "--http VERSION",
        "1.1 (default) or 1.0; 2 and 3 come later",
        |draft, value| put(&mut draft.version, version(value)),
    ),
    Entry::rare(
        Network,
        "--source LIST",
        "from these addresses: 10.0.0.1-10.0.0.20,10.0.1.0/28",
        |draft, value| {
            draft.sources.addresses = addresses::parse(value)?;
            Ok(())
        },
    ),
    Entry::rare(
        Network,
        "--source-ports LO-HI",
        "take source ports from this range, in turn",
        |draft, value| {
            draft.sources.ports = Some(addresses::ports(value)?);
            Ok(())
        },
    ),
    Entry::rare(
        Network,
        "--no-nodelay",
        "no TCP_NODELAY: Nagle's algorithm delays",
        |draft, _| {
            draft.delays_small = true;
            Ok(())
        },
    ),
    Entry::rare(
        Network,
        "--spin TIME",
        "stay awake so long before a request is due (default 50us with --rate)",
        |draft, value| put(&mut draft.spin, duration(value)),
    ),
    Entry::rare(
        Network,
        "--pin",
        "keep each thread on one CPU",
        |draft, _| {
            draft.pin = true;
            Ok(())
        },
    ),
    Entry::rare(
        Network,
        "--seed N",
        "of all random choices (default 1)",
        |draft, value| put(&mut draft.seed, count(value, 0)),
    ),
    Entry::rare(
        Network,
        "--server-pid PID",
        "the server's process, for its CPU time (default: the listener of the URL)",
        |draft, value| put(&mut draft.server_pid, small_count(value, 1)),
    ),
    Entry::rare(
        Several,
        "--processes N",
        "share the load among N processes",
        |draft, value| put(&mut draft.processes, small_count(value, 1)),
    ),
    Entry::rare(
        Several,
        "--start-at SECONDS",
        "begin at this moment, in seconds since 1970",
        |draft, value| put(&mut draft.start_at, moment(value)),
    ),
    Entry::often(
        Several,
        "--search OBJECTIVE",
        "find the highest rate that keeps it: 'p99<5ms,errors<0.1%'",
        |draft, value| {
            let objective = Objective::parse(value).map_err(|error| error.to_string());
            put(&mut draft.search, objective)
        },
    ),
    Entry::rare(
        Several,
        "--sweep LISTS",
        "a run for each combination: 'processes=1,2 connections=1..64'",
        |draft, value| {
            let sweep = Sweep::parse(value).map_err(|error| error.to_string());
            put(&mut draft.sweep, sweep)
        },
    ),
    Entry::rare(Hidden, "--part N/COUNT", "", |draft, value| {
        let place = PartIndex::parse(value);
        put(
            &mut draft.part,
            place.ok_or_else(|| String::from("no part")),
        )
    }),
    requirement("--max-p50 TIME", "the median of latency", |draft, value| {
        latency(draft, "--max-p50", value)
    }),
    requirement("--max-p90 TIME", "the 90th percentile", |draft, value| {
        latency(draft, "--max-p90", value)
    }),
    Entry::often(
        Success,
        "--max-p99 TIME",
        "at most this 99th percentile of latency",
        |draft, value| latency(draft, "--max-p99", value),
    ),
    requirement(
        "--max-p999 TIME",
        "the 99.9th percentile",
        |draft, value| latency(draft, "--max-p999", value),
    ),
    requirement(
        "--max-latency TIME",
        "the longest latency",
        |draft, value| latency(draft, "--max-latency", value),
    ),
    Entry::often(
        Success,
        "--max-errors N",
        "at most N (or N%) failures and answers above 399",
        |draft, value| {
            draft
                .requirements
                .push(Requirement::Errors(MostErrors::parse(value)?));
            Ok(())
        },
    ),
    Entry::often(
        Success,
        "--min-rate N",
        "at least N answers each second",
        |draft, value| {
            draft.requirements.push(Requirement::Rate {
                least: positive(value)?,
            });
            Ok(())
        },
    ),
    Entry::rare(
        Success,
        "--threshold NAME=WARN:FAIL",
        "change a limit of the verdict, such as client_cpu=85:95",
        |draft, value| {
            draft
                .thresholds
                .set(value)
                .map_err(|error| error.to_string())
        },
    ),
    Entry::often(
        Output,
        "--json FILE",
        "everything as JSON; - is standard output",
        |draft, value| put(&mut draft.outputs.json, file(value)),
    ),
    Entry::rare(
        Output,
        "--hlog FILE",
        "the latencies of each interval as an HdrHistogram log",
        |draft, value| put(&mut draft.outputs.hlog, file(value)),
    ),
    Entry::rare(
        Output,
        "--csv FILE",
        "the time series as comma-separated values",
        |draft, value| put(&mut draft.outputs.csv, file(value)),
    ),
    Entry::often(
        Output,
        "--svg FILE",
        "the latency's percentiles as a picture",
        |draft, value| put(&mut draft.outputs.svg, file(value)),
    ),
    Entry::rare(
        Output,
        "--interval TIME",
        "of the time series and the live screen (default 1s)",
        |draft, value| put(&mut draft.interval, interval(value)),
    ),
    Entry::often(
        Output,
        "-q, --quiet",
        "no progress and no summary",
        |draft, _| {
            draft.quiet = true;
            Ok(())
        },
    ),
    Entry::rare(
        Output,
        "--no-color",
        "no colours (also the environment's NO_COLOR)",
        |draft, _| {
            draft.no_colour = true;
            Ok(())
        },
    ),
];

const fn requirement(usage: &'static str, help: &'static str, set: Set) -> Entry {
    Entry::rare(Success, usage, help, set)
}

fn put<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *place = Some(value?);
    Ok(())
}

fn latency(draft: &mut Draft, option: &str, value: &str) -> Result<(), String> {
    let most = some_duration(value)?;
    let known = LATENCIES.iter().find(|(_, known, _)| *known == option);
    let percent = known.map_or(100.0, |(percent, _, _)| *percent);
    draft
        .requirements
        .push(Requirement::Latency { percent, most });
    Ok(())
}
