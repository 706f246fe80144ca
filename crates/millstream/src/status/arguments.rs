//! The command line of `millstream status`.

use mill_config::suggest::nearest;
use mill_status::request::Filter;
use mill_status::{Request, TableName};
use std::path::PathBuf;
use std::time::Duration;

/// The options of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    /// A process, a pid file, or another name of a server.
    pub(super) server: Option<String>,
    pub(super) views: Vec<View>,
    pub(super) limit: Option<u32>,
    pub(super) filter: Filter,
    pub(super) json: bool,
    /// The interval of updates.
    pub(super) watch: Option<Duration>,
    pub(super) capture: Option<Capture>,
    /// Interfaces instead of a server: that one, or all.
    pub(super) link: bool,
    pub(super) help: bool,
}

/// A capture of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Capture {
    pub(super) file: PathBuf,
    pub(super) time: Duration,
    pub(super) frames: Option<u64>,
}

/// Views besides the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Connections,
    Listeners,
    Neighbors,
    Routes,
    Rings,
    Timers,
    Drops,
    Counters,
    Options,
    Upstreams,
    Zones,
    Cache,
    Blocks,
    Certificates,
}

impl View {
    pub(super) const ALL: [(&'static str, Self); 14] = [
        ("connections", Self::Connections),
        ("listeners", Self::Listeners),
        ("neighbors", Self::Neighbors),
        ("routes", Self::Routes),
        ("rings", Self::Rings),
        ("timers", Self::Timers),
        ("drops", Self::Drops),
        ("counters", Self::Counters),
        ("options", Self::Options),
        ("upstreams", Self::Upstreams),
        ("zones", Self::Zones),
        ("cache", Self::Cache),
        ("blocks", Self::Blocks),
        ("certificates", Self::Certificates),
    ];

    /// The table that workers have to make for it.
    const fn table(self) -> Option<TableName> {
        match self {
            Self::Connections => Some(TableName::Connections),
            Self::Listeners => Some(TableName::Listeners),
            Self::Neighbors => Some(TableName::Neighbors),
            Self::Routes => Some(TableName::Routes),
            Self::Rings => Some(TableName::Rings),
            Self::Timers => Some(TableName::Timers),
            Self::Upstreams => Some(TableName::Upstreams),
            Self::Zones => Some(TableName::Zones),
            Self::Cache => Some(TableName::Caches),
            Self::Blocks => Some(TableName::Blocks),
            Self::Certificates => Some(TableName::Certificates),
            Self::Drops | Self::Counters | Self::Options => None,
        }
    }

    fn named(word: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == word);
        found.map(|(_, view)| view)
    }
}

impl Arguments {
    /// Parses the words after `status`; the error is a message.
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else {
                parsed.take_word(word)?;
                continue;
            };
            let (name, joined) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            if !parsed.take_flag(name, joined.as_deref())? {
                let needed = || format!("\"--{name}\" needs a value");
                let value = joined
                    .or_else(|| words.next().cloned())
                    .ok_or_else(needed)?;
                parsed.take_value(name, &value)?;
            }
        }
        Ok(parsed)
    }

    /// Whether the overview is asked for, once and as text.
    pub(super) fn is_overview(&self) -> bool {
        let is_other = self.json || self.watch.is_some() || self.capture.is_some();
        self.views.is_empty() && !is_other
    }

    /// The request to the server.
    pub(super) fn request(&self) -> Request {
        let tables = self.views.iter().filter_map(|view| view.table());
        Request {
            tables: tables.collect(),
            limit: self.limit.unwrap_or(LIMIT),
            filter: self.filter.clone(),
            capture: None,
        }
    }

    fn take_word(&mut self, word: &str) -> Result<(), String> {
        if matches!(word, "-h" | "-?" | "help") {
            self.help = true;
        } else if let Some(view) = View::named(word) {
            self.add(view);
        } else if word.starts_with('-') && word.len() > 1 {
            return Err(unknown(word));
        } else if let Some(other) = &self.server {
            let views = View::ALL.iter().map(|(name, _)| *name);
            return Err(match nearest(word.as_bytes(), views) {
                Some(view) => format!("\"{word}\" is no table, did you mean \"{view}\"?"),
                None => format!("one server at a time: \"{other}\" or \"{word}\""),
            });
        } else {
            self.server = Some(word.to_owned());
        }
        Ok(())
    }

    /// Options without a value, and with one that may be missing; false if it is none of them.
    fn take_flag(&mut self, name: &str, value: Option<&str>) -> Result<bool, String> {
        if name == "watch" {
            self.watch = Some(match value {
                None => Duration::from_secs(1),
                Some(value) => seconds(value)
                    .filter(|time| *time >= WATCH_MIN)
                    .ok_or_else(|| {
                        format!(
                            "\"--watch={value}\" means nothing: seconds are wanted, 0.1 or more"
                        )
                    })?,
            });
            return Ok(true);
        }
        let is_flag = match name {
            "help" => {
                self.help = true;
                true
            }
            "json" => {
                self.json = true;
                true
            }
            "link" => {
                self.link = true;
                true
            }
            "all" => {
                for (_, view) in View::ALL {
                    self.add(view);
                }
                true
            }
            _ => match View::named(name) {
                Some(view) => {
                    self.add(view);
                    true
                }
                None if VALUES.contains(&name) => return Ok(false),
                None => return Err(unknown(&format!("--{name}"))),
            },
        };
        match value {
            Some(_) => Err(format!("\"--{name}\" takes no value")),
            None => Ok(is_flag),
        }
    }

    fn take_value(&mut self, name: &str, value: &str) -> Result<(), String> {
        let refused =
            |wanted: &str| format!("\"--{name} {value}\" means nothing: {wanted} is wanted");
        match name {
            "limit" => self.limit = Some(value.parse().map_err(|_| refused("a number of rows"))?),
            "port" => self.filter.port = Some(value.parse().map_err(|_| refused("a port"))?),
            "address" => {
                self.filter.address = Some(value.parse().map_err(|_| refused("an address"))?);
            }
            "state" if STATES.contains(&value) => self.filter.state = Some(value.to_owned()),
            "state" => {
                return Err(match nearest(value.as_bytes(), STATES.into_iter()) {
                    Some(state) => format!("\"{value}\" is no state, did you mean \"{state}\"?"),
                    None => format!("\"{value}\" is no state: there are {}", STATES.join(", ")),
                });
            }
            "filter" => self.take_filter(value)?,
            "pcap" => self.capture().file = PathBuf::from(value),
            "for" => {
                let time = seconds(value.strip_suffix('s').unwrap_or(value));
                self.capture().time = time.ok_or_else(|| refused("a time as \"10s\""))?;
            }
            "count" => {
                let count = value.parse().map_err(|_| refused("a number of frames"))?;
                self.capture().frames = Some(count);
            }
            _ => return Err(unknown(&format!("--{name}"))),
        }
        Ok(())
    }

    /// `port=80`, `address=10.0.0.1`, `state=established`.
    fn take_filter(&mut self, value: &str) -> Result<(), String> {
        for word in value.split(',') {
            match word.split_once('=') {
                Some((name @ ("port" | "address" | "state"), value)) => {
                    self.take_value(name, value)?
                }
                _ => {
                    return Err(format!(
                        "\"{word}\" is no filter: there are port=, address= and state="
                    ));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, view: View) {
        if !self.views.contains(&view) {
            self.views.push(view);
        }
    }

    fn capture(&mut self) -> &mut Capture {
        self.capture.get_or_insert_with(|| Capture {
            file: PathBuf::new(),
            time: CAPTURE_TIME,
            frames: None,
        })
    }

    /// Checks that need all options.
    pub(super) fn check(&self) -> Result<(), String> {
        let has_other = self.json || self.watch.is_some() || self.capture.is_some();
        if self.link && (has_other || !self.views.is_empty()) {
            return Err(String::from(
                "\"--link\" tells of interfaces, not of a server: nothing but the name of one goes with it",
            ));
        }
        match &self.capture {
            Some(capture) if capture.file.as_os_str().is_empty() => Err(String::from(
                "\"--for\" and \"--count\" belong to \"--pcap FILE\"",
            )),
            Some(_) if self.watch.is_some() => Err(String::from(
                "\"--pcap\" and \"--watch\" are two things: one at a time",
            )),
            _ => Ok(()),
        }
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= TIME_MAX)
}

fn unknown(option: &str) -> String {
    let views = View::ALL.iter().map(|(name, _)| *name);
    let known = views.chain(FLAGS).chain(VALUES);
    let name = option.trim_start_matches('-');
    match nearest(name.as_bytes(), known) {
        Some(known) => format!("unknown option \"{option}\", did you mean \"--{known}\"?"),
        None => format!("unknown option \"{option}\"; \"millstream status --help\" lists all"),
    }
}

const FLAGS: [&str; 5] = ["json", "watch", "all", "link", "help"];
const VALUES: [&str; 8] = [
    "limit", "port", "address", "state", "filter", "pcap", "for", "count",
];

/// States of connections, as in tables and in `ss`.
const STATES: [&str; 10] = [
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "closing",
];

/// Rows of a table of each worker: more than a person reads, and a tenth of a second's work.
const LIMIT: u32 = 1000;

const WATCH_MIN: Duration = Duration::from_millis(100);
const TIME_MAX: Duration = Duration::from_secs(86_400);
const CAPTURE_TIME: Duration = Duration::from_secs(10);

pub(super) const HELP: &str = "\
Usage: millstream status [PID|NAME] [OPTIONS]

Shows a running server: its workers, hanging ones, its stack. Without PID or NAME the only server
there is, or a list of all. NAME is a pid file, or a name that one server has alone: its configuration
file, its device (af_xdp:eth0) or interface (eth0). Beside servers there is a line for each program
of \"millstream run\"; \"millstream stackdump\" tells more about these.

  --connections   connections of the stack, as \"ss -ti\"        --listeners  queues of listening addresses
  --drops         frames dropped, by reason                    --counters   all counters, as \"nstat\"
  --rings         device, rings, what the kernel counts        --timers     armed timers
  --neighbors     Ethernet addresses                           --routes     where packets go
  --options       options in force and their origin            --upstreams  servers that requests are passed to
  --zones         what each status_zone counted                --certificates  of servers, with the days left
  --cache         caches: hit ratio, answers by outcome, fills, evictions, purges, the largest objects
  --blocks        addresses that are blocked by frang's ip_block, or through the API
  --all           all of these

  --limit N           rows of a table, of each worker (1000)
  --port N, --address A, --state S     connections of these only; --filter port=N,address=A,state=S
  --pcap FILE [--for 10s] [--count N]  frames of the stack for a while, for Wireshark; with --port, --address
  --json              all of it for programs; docs/status.md names the fields
  --watch[=SECONDS]   look again every so often, with rates (1); q or Ctrl-C ends it

  --link [INTERFACE]  instead of a server: what the network interfaces of this machine have for
                      \"serve --stack af_xdp:eth0\", and what is in the way; docs/cards.md tells more
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let parsed = Arguments::parse(&words)?;
        parsed.check()?;
        Ok(parsed)
    }

    #[test]
    fn views_are_options_or_words() {
        let check = |line, server: Option<&str>, views: &[View]| {
            let parsed = parse(line).unwrap();
            let found = (parsed.server.as_deref(), parsed.views.as_slice());
            assert_eq!(found, (server, views), "{line}");
        };
        check("", None, &[]);
        check("4711", Some("4711"), &[]);
        check("4711 connections", Some("4711"), &[View::Connections]);
        check(
            "--drops eth0 --rings --drops",
            Some("eth0"),
            &[View::Drops, View::Rings],
        );
        assert_eq!(parse("--all").unwrap().views.len(), View::ALL.len());
        assert_eq!(parse("--all").unwrap().request().tables.len(), 11);
    }

    #[test]
    fn values_are_joined_or_apart() {
        let parsed =
            parse("--limit 5 --port=80 --filter address=::1,state=time-wait --watch=0.5").unwrap();
        assert_eq!(parsed.request().limit, 5);
        assert_eq!(parsed.filter.port, Some(80));
        assert_eq!(parsed.filter.address, Some("::1".parse().unwrap()));
        assert_eq!(parsed.filter.state.as_deref(), Some("time-wait"));
        assert_eq!(parsed.watch, Some(Duration::from_millis(500)));
        assert_eq!(
            parse("--watch").unwrap().watch,
            Some(Duration::from_secs(1))
        );
        let capture = parse("--pcap a.pcap --for 3s --count 9").unwrap().capture;
        let expected = Capture {
            file: PathBuf::from("a.pcap"),
            time: Duration::from_secs(3),
            frames: Some(9),
        };
        assert_eq!(capture, Some(expected));
    }

    #[test]
    fn typing_errors_get_an_answer() {
        let check = |line: &str, expected: &str| {
            assert_eq!(parse(line).unwrap_err(), expected, "{line}");
        };
        check(
            "--conections",
            "unknown option \"--conections\", did you mean \"--connections\"?",
        );
        check(
            "-x",
            "unknown option \"-x\"; \"millstream status --help\" lists all",
        );
        check("1 2", "one server at a time: \"1\" or \"2\"");
        check(
            "1 conections",
            "\"conections\" is no table, did you mean \"connections\"?",
        );
        check(
            "--state estab",
            "\"estab\" is no state: there are established, syn-sent, syn-recv, fin-wait-1, fin-wait-2, time-wait, closed, \
             close-wait, last-ack, closing",
        );
        check(
            "--filter state=time-wai",
            "\"time-wai\" is no state, did you mean \"time-wait\"?",
        );
        check("--limit", "\"--limit\" needs a value");
        check(
            "--limit x",
            "\"--limit x\" means nothing: a number of rows is wanted",
        );
        check("--json=1", "\"--json\" takes no value");
        check(
            "--watch=0",
            "\"--watch=0\" means nothing: seconds are wanted, 0.1 or more",
        );
        check(
            "--filter x=1",
            "\"x=1\" is no filter: there are port=, address= and state=",
        );
        check(
            "--link eth0 --json",
            "\"--link\" tells of interfaces, not of a server: nothing but the name of one goes with it",
        );
        check(
            "--for 3s",
            "\"--for\" and \"--count\" belong to \"--pcap FILE\"",
        );
        check(
            "--pcap a --watch",
            "\"--pcap\" and \"--watch\" are two things: one at a time",
        );
    }
}
