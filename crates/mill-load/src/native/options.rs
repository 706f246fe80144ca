//! The command line of `millstream load`: arguments in, options out, or an error message.
//!
//! The options are lines of one table (`table`), from which the help texts are made too. Clap would bring a dozen
//! crates and its own error messages; a loop over a table is enough, and its messages say what to write.

/// Address ranges.
mod addresses;
/// Defaults, and checks of options against each other.
mod finish;
/// The texts of `--help`.
pub(crate) mod help;
/// The nearest known option.
mod nearest;
/// All options.
mod table;
/// Numbers, times, weights.
pub(crate) mod values;
/// Methods, fields, versions.
mod words;

use crate::native::part::PartIndex;
use crate::native::requirements::Requirement;
use crate::native::search::Objective;
use crate::native::sweep::Sweep;
use crate::native::verdict::Thresholds;
use crate::origin::Origin;
use crate::plan::{Arrivals, Life};
use crate::source::Sources;
use crate::target::Url;
use crate::tls::{Handshakes, TlsVersions};
use core::num::NonZeroU32;
use core::time::Duration;
use mill_runtime::time::UnixTime;
use table::entries;
use thiserror::Error;

/// The request of a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadCommand {
    /// The text to print.
    Help(String),
    Load(Box<Options>),
}

/// The options of a run, consistent with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// URLs and their weights; all have the same host and port. Never empty.
    pub urls: Vec<(Url, f64)>,
    pub connections: u32,
    /// `None`: as many as there are CPUs, and no more than connections.
    pub threads: Option<u32>,
    pub duration: Option<Duration>,
    pub requests: Option<u64>,
    pub warm_up: Duration,
    pub rate: Option<f64>,
    pub arrivals: Arrivals,
    pub think: Duration,
    pub life: Life,
    pub connection_rate: Option<f64>,
    pub ramp: Option<Duration>,
    /// `None`: no time limit of requests.
    pub timeout: Option<Duration>,
    pub message: Message,
    pub sources: Sources,
    /// Of `https://`.
    pub tls_versions: TlsVersions,
    pub handshakes: Handshakes,
    /// HTTP/2 with so many requests at once on each connection.
    pub streams: Option<NonZeroU32>,
    pub nodelay: bool,
    pub spin: Duration,
    pub pin: bool,
    pub seed: u64,
    pub interval: Duration,
    pub processes: u32,
    pub start_at: Option<UnixTime>,
    /// This process was started by another one to run this part.
    pub part: Option<PartIndex>,
    /// Search for the highest rate that meets this.
    pub search: Option<Objective>,
    /// Run every combination, each in processes of its own.
    pub sweep: Option<Sweep>,
    pub server_pid: Option<u32>,
    /// Also be the server behind the proxy that is under load.
    pub origin: Option<Origin>,
    pub requirements: Vec<Requirement>,
    pub thresholds: Thresholds,
    pub outputs: Outputs,
    /// Only errors on standard error, and only requested files on standard output.
    pub quiet: bool,
    pub colour: bool,
}

/// The parts of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub method: String,
    pub version: Version,
    /// Name and value, in the order given.
    pub headers: Vec<(String, String)>,
    pub body: Body,
    /// `name:password`
    pub user: Option<String>,
    pub keep_alive: bool,
    /// The file of requests to send instead.
    pub replay: Option<String>,
    /// The file whose content answers must have.
    pub expect: Option<String>,
}

/// The version in requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    Http10,
    #[default]
    Http11,
}

/// The content of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    #[default]
    None,
    Text(String),
    File(String),
}

/// Files to write; `-` is standard output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    pub json: Option<String>,
    pub hlog: Option<String>,
    pub csv: Option<String>,
    pub svg: Option<String>,
}

impl Options {
    /// Whether requests have due times of their own.
    pub const fn is_open_loop(&self) -> bool {
        self.rate.is_some() || self.search.is_some()
    }
}

impl Outputs {
    /// All output files.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.json, &self.hlog, &self.csv, &self.svg]
            .into_iter()
            .filter_map(|file| file.as_deref())
    }

    /// Whether standard output is one of them, so that nothing else may be written there.
    pub fn take_standard_output(&self) -> bool {
        self.all().any(|file| file == "-")
    }
}

/// Why a command line is refused: one message, with the option it is about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Reads the arguments after the command's name.
pub fn parse(arguments: &[Vec<u8>]) -> Result<LoadCommand, Refused> {
    let mut draft = Draft::default();
    let mut arguments = arguments.iter();
    let mut only_urls = false;
    while let Some(argument) = arguments.next() {
        let argument = text(argument)?;
        if only_urls || !argument.starts_with('-') || argument == "-" {
            draft.url(argument)?;
            continue;
        }
        let (name, joined) = match argument {
            "--" => {
                only_urls = true;
                continue;
            }
            "-h" | "--help" | "-?" => return Ok(LoadCommand::Help(help::screen())),
            "--help-all" => return Ok(LoadCommand::Help(help::everything())),
            _ => split(argument),
        };
        let Some(entry) = entries().find(|entry| entry.is_called(name)) else {
            return Err(unknown(name));
        };
        let value = match (entry.value(), joined) {
            (None, None) => "",
            (None, Some(_)) => return Err(Refused(format!("{name} takes no value"))),
            (Some(_), Some(value)) => value,
            (Some(what), None) => match arguments.next() {
                Some(value) => text(value)?,
                None => return Err(Refused(format!("{name} needs a value: {name} {what}"))),
            },
        };
        let set = entry.set(&mut draft, value);
        set.map_err(|why| Refused(format!("{name}: {why}")))?;
    }
    finish::finish(draft).map(|options| LoadCommand::Load(Box::new(options)))
}

/// The options so far.
#[derive(Debug, Default)]
struct Draft {
    urls: Vec<(Url, f64)>,
    connections: Option<u32>,
    threads: Option<u32>,
    duration: Option<Duration>,
    requests: Option<u64>,
    warm_up: Option<Duration>,
    rate: Option<f64>,
    arrivals: Option<Arrivals>,
    think: Option<Duration>,
    life: Option<Life>,
    connection_rate: Option<f64>,
    ramp: Option<Duration>,
    timeout: Option<Duration>,
    method: Option<String>,
    version: Option<Version>,
    headers: Vec<(String, String)>,
    body: Body,
    user: Option<String>,
    closes: bool,
    replay: Option<String>,
    expect: Option<String>,
    sources: Sources,
    tls_versions: TlsVersions,
    handshakes: Handshakes,
    streams: Option<NonZeroU32>,
    delays_small: bool,
    spin: Option<Duration>,
    pin: bool,
    seed: Option<u64>,
    interval: Option<Duration>,
    processes: Option<u32>,
    start_at: Option<UnixTime>,
    part: Option<PartIndex>,
    search: Option<Objective>,
    sweep: Option<Sweep>,
    server_pid: Option<u32>,
    origin: Option<Origin>,
    requirements: Vec<Requirement>,
    thresholds: Thresholds,
    outputs: Outputs,
    quiet: bool,
    no_colour: bool,
}

impl Draft {
    /// `URL` or `WEIGHT=URL`.
    fn url(&mut self, argument: &str) -> Result<(), Refused> {
        let refuse = |why: String| Refused(format!("{argument}: {why}"));
        let (weight, url) = match argument.split_once('=') {
            Some((weight, url)) if !weight.contains(['/', '?', ':']) => {
                let weight = values::positive(weight).map_err(refuse)?;
                (weight, url)
            }
            _ => (1.0, argument),
        };
        let url = Url::parse_lenient(url).map_err(|error| refuse(error.to_string()))?;
        self.urls.push((url, weight));
        Ok(())
    }
}

fn text(argument: &[u8]) -> Result<&str, Refused> {
    std::str::from_utf8(argument).map_err(|_| {
        let shown = argument.escape_ascii();
        Refused(format!("\"{shown}\" is not UTF-8"))
    })
}

/// Splits `--name=value` and `-nvalue`.
fn split(argument: &str) -> (&str, Option<&str>) {
    if argument.starts_with("--") {
        return match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
    }
    let end = argument.char_indices().nth(2).map(|(index, _)| index);
    match end {
        Some(end) => {
            let (name, value) = argument.split_at(end);
            (name, Some(value))
        }
        None => (argument, None),
    }
}

fn unknown(name: &str) -> Refused {
    let names = entries().map(|entry| entry.long());
    Refused(match nearest::nearest(name, names) {
        Some(known) => format!("{name} is not an option, did you mean {known}?"),
        None => format!("{name} is not an option"),
    })
}

#[cfg(test)]
mod tests;
