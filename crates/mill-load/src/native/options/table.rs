//! All options of `millstream load`: their list, which is also the text of the help, and what each one sets.

use super::values::{count, duration, life, moment, positive, small_count, some_duration};
use super::words::{
    arrivals, file, header, interval, method, one_body, origin, tls_versions, user, version,
};
use super::{Body, Draft, addresses};
use crate::native::part::PartIndex;
use crate::native::requirements::{LATENCIES, MostErrors, Requirement};
use crate::native::search::Objective;
use crate::native::sweep::Sweep;
use crate::tls::Handshakes;
use core::num::NonZeroU32;

/// One option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its heading in the long help; empty: no help lists it.
    pub(super) heading: &'static str,
    /// Its names and its value's placeholder: `-c, --connections N`.
    pub(super) usage: &'static str,
    pub(super) help: &'static str,
    /// Whether the short help lists it.
    pub(super) often: bool,
}

/// All options, by subject.
pub(super) fn entries() -> impl Iterator<Item = Entry> {
    let mut heading = "";
    LIST.lines().filter_map(move |line| {
        let Some((usage, help)) = line.split_once('|') else {
            heading = line.trim_end_matches(':');
            return None;
        };
        Some(Entry {
            heading,
            usage: usage.trim_start_matches('*').trim(),
            help: help.trim(),
            often: usage.starts_with('*'),
        })
    })
}

impl Entry {
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

    /// Takes the option's value into the draft.
    pub(super) fn set(&self, draft: &mut Draft, value: &str) -> Result<(), String> {
        match self.long() {
            "--duration" => draft.duration = Some(some_duration(value)?),
            "--requests" => draft.requests = Some(count(value, 1)?),
            "--rate" => draft.rate = Some(positive(value)?),
            "--arrivals" => draft.arrivals = Some(arrivals(value)?),
            "--think" | "--send-delay" => draft.think = Some(duration(value)?),
            "--warm-up" => draft.warm_up = Some(duration(value)?),
            "--connections" => draft.connections = Some(small_count(value, 1)?),
            "--threads" => draft.threads = Some(small_count(value, 1)?),
            "--no-keepalive" => draft.closes = true,
            "--requests-per-connection" => draft.life = Some(life(value)?),
            "--connection-rate" => draft.connection_rate = Some(positive(value)?),
            "--ramp" => draft.ramp = Some(some_duration(value)?),
            "--timeout" => draft.timeout = Some(duration(value)?),
            "--method" => draft.method = Some(method(value)?),
            "--header" => draft.headers.push(header(value)?),
            "--body" => draft.body = one_body(&draft.body, Body::Text(String::from(value)))?,
            "--body-file" => draft.body = one_body(&draft.body, Body::File(String::from(value)))?,
            "--user" => draft.user = Some(user(value)?),
            "--replay" => draft.replay = Some(String::from(value)),
            "--expect" => draft.expect = Some(String::from(value)),
            "--http" => draft.version = Some(version(value)?),
            "--source" => draft.sources.addresses = addresses::parse(value)?,
            "--source-ports" => draft.sources.ports = Some(addresses::ports(value)?),
            "--tls" => draft.tls_versions = tls_versions(value)?,
            "--tls-resume" => {
                if draft.handshakes == Handshakes::Full {
                    draft.handshakes = Handshakes::Resumed;
                }
            }
            "--tls-early" => draft.handshakes = Handshakes::Early,
            "--h2" => draft.streams = draft.streams.or(NonZeroU32::new(1)),
            "--streams" => draft.streams = NonZeroU32::new(small_count(value, 1)?),
            "--no-nodelay" => draft.delays_small = true,
            "--spin" => draft.spin = Some(duration(value)?),
            "--pin" => draft.pin = true,
            "--seed" => draft.seed = Some(count(value, 0)?),
            "--server-pid" => draft.server_pid = Some(small_count(value, 1)?),
            "--origin" => draft.origin = Some(origin(value)?),
            "--processes" => draft.processes = Some(small_count(value, 1)?),
            "--start-at" => draft.start_at = Some(moment(value)?),
            "--search" => draft.search = Some(Objective::parse(value).map_err(text)?),
            "--sweep" => draft.sweep = Some(Sweep::parse(value).map_err(text)?),
            "--part" => draft.part = Some(PartIndex::parse(value).ok_or("no part")?),
            "--max-errors" => {
                let most = MostErrors::parse(value)?;
                draft.requirements.push(Requirement::Errors(most));
            }
            "--min-rate" => {
                let least = positive(value)?;
                draft.requirements.push(Requirement::Rate { least });
            }
            "--threshold" => draft.thresholds.set(value).map_err(text)?,
            "--json" => draft.outputs.json = Some(file(value)?),
            "--hlog" => draft.outputs.hlog = Some(file(value)?),
            "--csv" => draft.outputs.csv = Some(file(value)?),
            "--svg" => draft.outputs.svg = Some(file(value)?),
            "--interval" => draft.interval = Some(interval(value)?),
            "--quiet" => draft.quiet = true,
            "--no-color" => draft.no_colour = true,
            option => draft.requirements.push(latency(option, value)?),
        }
        Ok(())
    }
}

fn latency(option: &str, value: &str) -> Result<Requirement, String> {
    let known = LATENCIES.iter().find(|(_, known, _)| *known == option);
    let (percent, _, _) = *known.ok_or("the list has this option, and nothing carries it out")?;
    let most = some_duration(value)?;
    Ok(Requirement::Latency { percent, most })
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Short names known from other tools, besides those of the list.
const ALIASES: [(&str, &str); 1] = [("-z", "--duration")];

/// Headings, and an option a line; `*`: the short help lists it too. Those before the first heading are used between
/// processes of this program.
const LIST: &str = "\
--part N/COUNT               |
How much:
* -d, --duration TIME          | measure so long: 30s, 1.5m, 250ms (default 10s); -z too, as in hey and oha
* -n, --requests N             | end after so many requests
* -r, --rate N                 | open loop: so many requests are due a second
  --arrivals KIND              | gaps of an open loop: uniform (default) or poisson
  --think TIME                 | closed loop: wait so long after an answer
  --send-delay TIME            | the same, as dpdk-httpperf calls it (-D)
* --warm-up TIME               | load so long before measuring (at a rate: 1s)
Connections:
* -c, --connections N          | connections at a time (default 10)
* -t, --threads N              | threads (default: as many as CPUs)
* --no-keepalive               | one request per connection: Connection: close
  --requests-per-connection N  | close after N requests, or by shares: 1:35%,4:25%,14:40%
  --connection-rate N          | open at most N connections each second
  --ramp TIME                  | open the connections evenly over this time
* --timeout TIME               | a request fails after this time (default 30s, 0: never)
Requests:
* -X, --method METHOD          | default GET, with a body POST
* -H, --header LINE            | add a field 'Name: value'; may be repeated
* --body TEXT                  | send this content
  --body-file FILE             | send the content of a file
  --user NAME:PASSWORD         | basic authentication
  --replay FILE                | send a file's requests in turn, one METHOD TARGET a line
  --expect FILE                | count answers of status 200 as failed if their content is not FILE's
  --http VERSION               | 1.1 (default) or 1.0; 2 and 3 come later
Network and timing:
  --source LIST                | from these addresses: 10.0.0.1-10.0.0.20,10.0.1.0/28
  --source-ports LO-HI         | take source ports from this range, in turn
  --tls VERSION                | of https://: 1.2 or 1.3 (default both); certificates are not checked
  --h2                         | HTTP/2: by ALPN under TLS, with prior knowledge in clear
  --streams N                  | so many requests at once on each connection, of HTTP/2 (default 1)
  --tls-resume                 | resume sessions (default: every handshake is a full one)
  --tls-early                  | the same, and safe requests go with the first flight (0-RTT)
  --no-nodelay                 | no TCP_NODELAY: Nagle's algorithm delays
  --spin TIME                  | stay awake so long before a request is due (default 50us with --rate)
  --pin                        | keep each thread on one CPU
  --seed N                     | of all random choices (default 1)
  --server-pid PID             | the server's process, for its CPU time (default: the listener of the URL)
  --origin PORT,BYTES          | answer requests at PORT too, with BYTES of content: both sides of a proxy
Several processes, several runs:
  --processes N                | share the load among N processes
  --start-at SECONDS           | begin at this moment, in seconds since 1970
* --search OBJECTIVE           | find the highest rate that keeps it: 'p99<5ms,errors<0.1%'
  --sweep LISTS                | a run for each combination: 'processes=1,2 connections=1..64'
Success (exit status 2 if one does not hold):
  --max-p50 TIME               | the median of latency
  --max-p90 TIME               | the 90th percentile
* --max-p99 TIME               | at most this 99th percentile of latency
  --max-p999 TIME              | the 99.9th percentile
  --max-latency TIME           | the longest latency
* --max-errors N               | at most N (or N%) failures and answers above 399
* --min-rate N                 | at least N answers each second
  --threshold NAME=WARN:FAIL   | change a limit of the verdict, such as client_cpu=85:95
Output:
* --json FILE                  | everything as JSON; - is standard output
  --hlog FILE                  | the latencies of each interval as an HdrHistogram log
  --csv FILE                   | the time series as comma-separated values
* --svg FILE                   | the latency's percentiles as a picture
  --interval TIME              | of the time series and the live screen (default 1s)
* -q, --quiet                  | no progress and no summary
  --no-color                   | no colours (also the environment's NO_COLOR)
";
