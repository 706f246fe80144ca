//! wrk's command line.

use crate::dialect::wrk::getopt::{Found, Getopt, Opt, Takes};
use crate::dialect::wrk::units::{METRIC, SECONDS};
use crate::target::Url;

/// The options of a command line of wrk or wrk2.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) threads: u32,
    /// As given; the remainder of the division by the threads is not opened.
    pub(crate) connections: u32,
    pub(crate) duration_s: u64,
    pub(crate) timeout_s: u64,
    pub(crate) script: Option<Vec<u8>>,
    /// `-H`, in their order.
    pub(crate) headers: Vec<Vec<u8>>,
    /// `--latency`.
    pub(crate) latency: bool,
    /// The URL as given, and parsed.
    pub(crate) url_text: String,
    pub(crate) url: Url,
    /// The arguments after the URL: for the script.
    pub(crate) operands: Vec<Vec<u8>>,
    pub(crate) beyond: Beyond,
    /// wrk2's.
    pub(crate) constant: Constant,
}

/// sephe's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beyond {
    /// `-C`: requests per connection.
    pub(crate) connreqs: Option<u64>,
    /// `-N`; `--delay` implies it too.
    pub(crate) nodelay: bool,
    /// `-B`: the branch binds threads only on BSD, so it has no effect on Linux.
    pub(crate) bind_cpu: bool,
}

/// wrk2's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constant {
    /// Requests per second, all connections together.
    pub(crate) rate: u64,
    /// `-U`: print the latency from the actual start too.
    pub(crate) uncorrected: bool,
    /// `-B`: a pipelined batch counts once.
    pub(crate) batch: bool,
}

/// The result of reading a command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// How many times the version was asked for before reading ended.
    pub(crate) versions: u32,
    pub(crate) result: Result<Arguments, Refusal>,
}

/// Why there is no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The usage is printed, after an error if there is one.
    Usage(Option<String>),
    /// A message of ours alone.
    Sentence(String),
    /// wrk2's options: the command line is wrk2's.
    ConstantRate,
}

/// Which of the two tools reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Wrk,
    Wrk2,
}

/// Reads a command line without the tool's name.
pub(crate) fn parse(tool: Tool, arguments: &[Vec<u8>]) -> Reading {
    let mut reader = Reader::default();
    let result = reader.read(tool, arguments);
    Reading {
        versions: reader.versions,
        result,
    }
}

/// Values while options are read, initially wrk's defaults.
#[derive(Debug)]
struct Reader {
    threads: u64,
    connections: u64,
    duration_s: u64,
    timeout_s: u64,
    script: Option<Vec<u8>>,
    headers: Vec<Vec<u8>>,
    latency: bool,
    beyond: Beyond,
    constant: Constant,
    versions: u32,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            threads: 2,
            connections: 10,
            duration_s: 10,
            timeout_s: 2,
            script: None,
            headers: Vec::new(),
            latency: false,
            beyond: Beyond {
                connreqs: None,
                nodelay: true,
                bind_cpu: false,
            },
            constant: Constant::default(),
            versions: 0,
        }
    }
}

impl Reader {
    fn read(&mut self, tool: Tool, arguments: &[Vec<u8>]) -> Result<Arguments, Refusal> {
        let options = match tool {
            Tool::Wrk => WRK,
            Tool::Wrk2 => WRK2,
        };
        let mut getopt = Getopt::new(options, arguments);
        for found in &mut getopt {
            match found {
                Found::Fault(complaint) => {
                    return Err(Refusal::Usage(Some(format!("wrk: {complaint}"))));
                }
                Found::Option(letter, argument) => {
                    self.option(tool, letter, argument.unwrap_or_default())?;
                }
            }
        }
        let operands = getopt.into_operands();
        self.finish(tool, &operands)
    }

    fn option(&mut self, tool: Tool, letter: u8, argument: &[u8]) -> Result<(), Refusal> {
        let metric = || METRIC.scan(argument).ok_or(Refusal::Usage(None));
        let time = || SECONDS.scan(argument).ok_or(Refusal::Usage(None));
        match (letter, tool) {
            (b't', _) => self.threads = metric()?,
            (b'c', _) => self.connections = metric()?,
            (b'd', _) => self.duration_s = time()?,
            (b'T', _) => self.timeout_s = time()?,
            (b's', _) => self.script = Some(argument.to_vec()),
            (b'H', _) => self.headers.push(argument.to_vec()),
            (b'L', _) => self.latency = true,
            (b'v', _) => self.versions += 1,
            (b'C', Tool::Wrk) => self.beyond.connreqs = Some(metric()?),
            (b'N', Tool::Wrk) => self.beyond.nodelay = false,
            (b'B', Tool::Wrk) => self.beyond.bind_cpu = true,
            (RATE | UNCORRECTED | BATCH, Tool::Wrk) => return Err(Refusal::ConstantRate),
            (RATE, Tool::Wrk2) => self.constant.rate = metric()?,
            (UNCORRECTED, Tool::Wrk2) => {
                self.latency = true;
                self.constant.uncorrected = true;
            }
            (b'B', Tool::Wrk2) => self.constant.batch = true,
            _ => return Err(Refusal::Usage(None)),
        }
        Ok(())
    }

    fn finish(&mut self, tool: Tool, operands: &[&[u8]]) -> Result<Arguments, Refusal> {
        let Some((url, operands)) = operands.split_first() else {
            return Err(Refusal::Usage(None));
        };
        if self.threads == 0 || self.duration_s == 0 {
            return Err(Refusal::Usage(None));
        }
        let url_text = String::from_utf8_lossy(url).into_owned();
        let url = Url::parse(&url_text).map_err(|error| {
            Refusal::Usage(Some(format!(
                "invalid URL: {url_text}\nmillstream: {error}"
            )))
        })?;
        self.check_counts()?;
        if tool == Tool::Wrk2 && self.constant.rate == 0 {
            return Err(complaint(
                "Throughput MUST be specified with the --rate or -R option",
            ));
        }
        Ok(Arguments {
            threads: number("threads", self.threads)?,
            connections: number("connections", self.connections)?,
            duration_s: self.duration_s,
            timeout_s: self.timeout_s,
            script: self.script.take(),
            headers: std::mem::take(&mut self.headers),
            latency: self.latency,
            url_text,
            url,
            operands: operands.iter().map(|word| word.to_vec()).collect(),
            beyond: self.beyond,
            constant: self.constant,
        })
    }

    /// Checks connections against threads. sephe's branch lowers the threads instead of refusing, so a command line
    /// with one of its options does the same.
    fn check_counts(&mut self) -> Result<(), Refusal> {
        let beyond = self.beyond;
        let is_sephes = beyond.connreqs.is_some() || !beyond.nodelay || beyond.bind_cpu;
        if is_sephes && self.connections == 0 {
            return Err(complaint("number of connections is 0"));
        }
        if is_sephes {
            self.threads = self.threads.min(self.connections);
        }
        if self.connections == 0 || self.connections < self.threads {
            return Err(complaint("number of connections must be >= threads"));
        }
        Ok(())
    }
}

impl Arguments {
    /// Connections that wrk opens: the same number for each thread.
    pub(crate) const fn connections_opened(&self) -> u32 {
        self.connections / self.threads * self.threads
    }
}

fn complaint(text: &str) -> Refusal {
    Refusal::Usage(Some(String::from(text)))
}

fn number(what: &str, value: u64) -> Result<u32, Refusal> {
    u32::try_from(value).map_err(|_| {
        Refusal::Sentence(format!(
            "{value} {what} are more than the {} there can be",
            u32::MAX
        ))
    })
}

/// wrk's options, sephe's, and those that only wrk2 has.
const WRK: &[Opt] = &[
    option(b'c', "connections", Takes::Argument),
    option(b'd', "duration", Takes::Argument),
    option(b't', "threads", Takes::Argument),
    option(b's', "script", Takes::Argument),
    option(b'H', "header", Takes::Argument),
    option(b'L', "latency", Takes::Nothing),
    option(b'T', "timeout", Takes::Argument),
    HELP,
    option(b'v', "version", Takes::Nothing),
    option(b'r', "", Takes::Nothing),
    option(b'?', "", Takes::Nothing),
    beyond(b'C', "connreqs", Takes::Argument),
    beyond(b'N', "delay", Takes::Nothing),
    beyond(b'B', "bindcpu", Takes::Nothing),
    beyond(RATE, "rate", Takes::Argument),
    beyond(UNCORRECTED, "u_latency", Takes::Nothing),
    Opt {
        short: false,
        ..beyond(BATCH, "batch_latency", Takes::Nothing)
    },
];

const WRK2: &[Opt] = &[
    option(b'c', "connections", Takes::Argument),
    option(b'd', "duration", Takes::Argument),
    option(b't', "threads", Takes::Argument),
    option(b's', "script", Takes::Argument),
    option(b'H', "header", Takes::Argument),
    option(b'L', "latency", Takes::Nothing),
    option(UNCORRECTED, "u_latency", Takes::Nothing),
    option(b'B', "batch_latency", Takes::Nothing),
    option(b'T', "timeout", Takes::Argument),
    HELP,
    option(b'v', "version", Takes::Nothing),
    option(RATE, "rate", Takes::Argument),
    option(b'r', "", Takes::Nothing),
    option(b'?', "", Takes::Nothing),
];

const RATE: u8 = b'R';
const UNCORRECTED: u8 = b'U';
/// wrk2's `--batch_latency` on wrk's command line, where `-B` is sephe's; this letter cannot be typed.
const BATCH: u8 = 0;

/// `-h` is no option of wrk's, `--help` is.
const HELP: Opt = Opt {
    short: false,
    ..option(b'h', "help", Takes::Nothing)
};

const fn option(letter: u8, long: &'static str, takes: Takes) -> Opt {
    Opt {
        letter,
        short: true,
        long,
        takes,
        beyond: false,
    }
}

const fn beyond(letter: u8, long: &'static str, takes: Takes) -> Opt {
    Opt {
        beyond: true,
        ..option(letter, long, takes)
    }
}

#[cfg(test)]
mod tests;
