//! h2load's command line.

use super::STREAMS;
use crate::dialect::wrk::getopt::{Found, Getopt, Opt, Takes};
use crate::target::{Scheme, Url};
use core::num::NonZeroU32;
use core::time::Duration;

/// The options of a command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arguments {
    pub(super) requests: u64,
    pub(super) clients: u32,
    pub(super) threads: u32,
    pub(super) streams: NonZeroU32,
    pub(super) http1: bool,
    /// Bytes of a stream's window.
    pub(super) window_bytes: u32,
    pub(super) duration: Option<Duration>,
    pub(super) warm_up: Duration,
    /// Connections a second.
    pub(super) rate: Option<f64>,
    /// Of each client.
    pub(super) requests_per_second: Option<f64>,
    pub(super) timeout: Option<Duration>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content: Option<Vec<u8>>,
    /// Where the connections go, with the scheme and the authority of the requests.
    pub(super) url: Url,
    /// What is asked for, in this order.
    pub(super) targets: Vec<String>,
    pub(super) base: Option<Base>,
}

/// Where connections go instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Address(String, u16),
    Unix(Vec<u8>),
}

/// Why there is no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// What was asked for.
    Text(String),
    /// For standard error.
    Sentence(String),
}

const fn option(letter: u8, short: bool, long: &'static str, takes: Takes) -> Opt {
    Opt {
        letter,
        short,
        long,
        takes,
        beyond: false,
    }
}

const WITH: Takes = Takes::Argument;

/// Letters from 128 on are ours, for options without one.
const OPTIONS: &[Opt] = &[
    option(b'n', true, "requests", WITH),
    option(b'c', true, "clients", WITH),
    option(b't', true, "threads", WITH),
    option(b'i', true, "input-file", WITH),
    option(b'm', true, "max-concurrent-streams", WITH),
    option(b'f', true, "max-frame-size", WITH),
    option(b'w', true, "window-bits", WITH),
    option(b'W', true, "connection-window-bits", WITH),
    option(b'H', true, "header", WITH),
    option(b'p', true, "no-tls-proto", WITH),
    option(b'd', true, "data", WITH),
    option(b'r', true, "rate", WITH),
    option(RATE_PERIOD, false, "rate-period", WITH),
    option(b'D', true, "duration", WITH),
    option(WARM_UP, false, "warm-up-time", WITH),
    option(b'T', true, "connection-active-timeout", WITH),
    option(b'N', true, "connection-inactivity-timeout", WITH),
    option(b'B', true, "base-uri", WITH),
    option(HTTP1, false, "h1", Takes::Nothing),
    option(CONNECT_TO, false, "connect-to", WITH),
    option(RPS, false, "rps", WITH),
    option(OTHER, false, "ciphers", WITH),
    option(OTHER, false, "tls13-ciphers", WITH),
    option(OTHER, false, "groups", WITH),
    option(OTHER, false, "npn-list", WITH),
    option(OTHER, false, "alpn-list", WITH),
    option(OTHER, false, "header-table-size", WITH),
    option(OTHER, false, "encoder-header-table-size", WITH),
    option(OTHER, false, "log-file", WITH),
    option(OTHER, false, "timing-script-file", WITH),
    option(OTHER, false, "qlog-file-base", WITH),
    option(OTHER, false, "no-udp-gso", Takes::Nothing),
    option(OTHER, false, "max-udp-payload-size", WITH),
    option(OTHER, false, "ktls", Takes::Nothing),
    option(b'v', true, "verbose", Takes::Nothing),
    option(VERSION, false, "version", Takes::Nothing),
    option(b'h', true, "help", Takes::Nothing),
];

const RATE_PERIOD: u8 = 128;
const WARM_UP: u8 = 129;
const HTTP1: u8 = 130;
const CONNECT_TO: u8 = 131;
const RPS: u8 = 132;
const OTHER: u8 = 133;
const VERSION: u8 = 134;

const USAGE: &str = "Usage: h2load [OPTIONS]... [URI]...
  -n, --requests=N                     requests of all clients together (default 1)
  -c, --clients=N                      connections (default 1)
  -t, --threads=N                      threads (default 1)
  -m, --max-concurrent-streams=N       requests at once on each connection (default 1)
  -D, --duration=TIME                  for so long instead of -n; --warm-up-time=TIME before
  -r, --rate=N                         new connections in each --rate-period (default 1s)
      --rps=N                          requests a second of each client
  -H, --header=HEADER                  a field of requests; \":method: NAME\" is their method
  -d, --data=FILE                      the content of requests, which are POST
  -i, --input-file=FILE                one URI a line; - is standard input
  -B, --base-uri=URI                   the scheme, host and port of all requests, or unix:PATH
      --connect-to=HOST[:PORT]         where connections go instead
  -w, --window-bits=N                  a stream's window is 2**N - 1 (default 30); -W is the connection's
  -N, --connection-inactivity-timeout=TIME   the longest a request may take
      --h1, -p http/1.1                HTTP/1.1
";

/// Values while options are read, initially h2load's defaults.
struct Reader {
    requests: u64,
    clients: u64,
    threads: u64,
    streams: u64,
    http1: bool,
    window_bits: u64,
    duration: Option<Duration>,
    warm_up: Option<Duration>,
    rate: u64,
    rate_period: Duration,
    requests_per_second: Option<f64>,
    timeout: Option<Duration>,
    headers: Vec<(String, String)>,
    content: Option<Vec<u8>>,
    input: Option<Vec<String>>,
    base: Option<String>,
    connect_to: Option<String>,
}

/// Reads a command line without the tool's name.
pub(super) fn parse(arguments: &[Vec<u8>]) -> Result<Arguments, Refusal> {
    let mut reader = Reader {
        requests: 1,
        clients: 1,
        threads: 1,
        streams: STREAMS.get().into(),
        http1: false,
        window_bits: 30,
        duration: None,
        warm_up: None,
        rate: 0,
        rate_period: Duration::from_secs(1),
        requests_per_second: None,
        timeout: None,
        headers: Vec::new(),
        content: None,
        input: None,
        base: None,
        connect_to: None,
    };
    let mut getopt = Getopt::new(OPTIONS, arguments);
    for found in &mut getopt {
        match found {
            Found::Fault(complaint) => return Err(sentence(&complaint)),
            Found::Option(letter, argument) => {
                let text = String::from_utf8_lossy(argument.unwrap_or_default());
                reader.option(letter, &text)?;
            }
        }
    }
    let operands = getopt.into_operands().into_iter();
    reader.finish(
        operands
            .map(|uri| String::from_utf8_lossy(uri).into_owned())
            .collect(),
    )
}

fn sentence(what: &str) -> Refusal {
    Refusal::Sentence(format!("h2load: {what}"))
}

impl Reader {
    fn option(&mut self, letter: u8, text: &str) -> Result<(), Refusal> {
        let named = || OPTIONS.iter().find(|option| option.letter == letter);
        let name = named().map_or("", |option| option.long);
        let bad = || sentence(&format!("--{name}: bad option value: {text}"));
        let number = || text.parse::<u64>().map_err(|_| bad());
        let time = || duration(text).ok_or_else(bad);
        match letter {
            b'n' => self.requests = number()?,
            b'c' => self.clients = number()?,
            b't' => self.threads = number()?,
            b'm' => self.streams = number()?,
            b'w' => self.window_bits = number()?,
            // The connection's window is as large as it can be.
            b'W' | b'v' => {}
            b'H' => self.headers.push(header(text).ok_or_else(bad)?),
            b'p' => {
                self.http1 = match text {
                    "http/1.1" => true,
                    "h2c" => false,
                    _ => return Err(bad()),
                };
            }
            b'd' => self.content = Some(read(text)?),
            b'i' => {
                let text = String::from_utf8_lossy(&read(text)?).into_owned();
                let lines = text.lines().filter(|line| !line.is_empty());
                self.input = Some(lines.map(str::to_owned).collect());
            }
            b'r' => self.rate = number()?,
            RATE_PERIOD => self.rate_period = time()?,
            b'D' => self.duration = Some(time()?),
            WARM_UP => self.warm_up = Some(time()?),
            b'N' => self.timeout = Some(time()?),
            b'B' => self.base = Some(text.to_owned()),
            HTTP1 => self.http1 = true,
            CONNECT_TO => self.connect_to = Some(text.to_owned()),
            RPS => {
                let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0);
                self.requests_per_second = Some(rate.ok_or_else(bad)?);
            }
            b'h' => return Err(Refusal::Text(USAGE.to_owned())),
            VERSION => return Err(Refusal::Text(String::from("h2load nghttp2/1.52.0\n"))),
            b'f' if text == "16K" || text == "16384" => {}
            b'f' => return Err(sentence("-f: frames of 16K are taken, no others")),
            b'T' => return Err(sentence("-T is not there; -N bounds each request")),
            _ => {
                let list = "--ciphers, --tls13-ciphers, --groups, --alpn-list, --npn-list, --log-file, \
                            --timing-script-file, --ktls and the options of tables and of QUIC";
                return Err(sentence(&format!("{list} are not there")));
            }
        }
        Ok(())
    }

    fn finish(self, operands: Vec<String>) -> Result<Arguments, Refusal> {
        let uris = self.input.unwrap_or(operands);
        let Some(first) = uris.first() else {
            return Err(Refusal::Sentence(String::from(
                "no URI or input file given",
            )));
        };
        let path = self
            .base
            .as_deref()
            .and_then(|text| text.strip_prefix("unix:"));
        let base = path.map(|path| Base::Unix(path.as_bytes().to_vec()));
        let whole = match (&self.base, &base) {
            (Some(text), None) => text,
            _ => first,
        };
        let url = Url::parse(whole)
            .map_err(|error| sentence(&format!("invalid URI: {whole}: {error}")))?;
        let target = |text: &String| {
            let parsed = Url::parse(text).map(|url| url.target);
            parsed.unwrap_or_else(|_| text.clone())
        };
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let streams = NonZeroU32::new(small(self.streams));
        let streams = streams.ok_or_else(|| {
            sentence("-m: the number of streams must be strictly greater than 0.")
        })?;
        for (what, number) in [
            ("-n: requests", self.requests),
            ("-c: clients", self.clients),
            ("-t: threads", self.threads),
        ] {
            if number == 0 {
                let text = format!("{what} must be strictly greater than 0.");
                return Err(Refusal::Sentence(text));
            }
        }
        let is_timed = self.duration.is_some();
        let contradictions = [
            (
                !is_timed && self.requests < self.clients,
                "-n, -c: the number of requests must be greater than or equal to the clients.",
            ),
            (
                self.clients < self.threads,
                "-c, -t: the number of clients must be greater than or equal to the number of threads.",
            ),
            (
                is_timed && self.rate > 0,
                "-r, -D: they are mutually exclusive.",
            ),
            (
                self.warm_up.is_some() && !is_timed,
                "--warm-up-time needs -D.",
            ),
            (
                self.http1 && streams.get() > 1,
                "-m with HTTP/1.1: pipelining is not there.",
            ),
            (
                !(8..=30).contains(&self.window_bits),
                "-w: windows of 2**8 to 2**30 are taken.",
            ),
        ];
        if let Some((_, why)) = contradictions.iter().find(|(holds, _)| *holds) {
            return Err(Refusal::Sentence((*why).to_owned()));
        }
        let base = match self.connect_to {
            Some(text) => Some(
                address(&text, &url)
                    .ok_or_else(|| sentence(&format!("--connect-to: bad option value: {text}")))?,
            ),
            None => base,
        };
        let period = self.rate_period.as_secs_f64().max(1e-6);
        Ok(Arguments {
            requests: self.requests,
            clients: small(self.clients),
            threads: small(self.threads),
            streams,
            http1: self.http1,
            window_bytes: (1_u32 << self.window_bits) - 1,
            duration: self.duration,
            warm_up: self.warm_up.unwrap_or_default(),
            rate: (self.rate > 0).then(|| self.rate as f64 / period),
            requests_per_second: self.requests_per_second,
            timeout: self.timeout,
            headers: self.headers,
            content: self.content,
            targets: uris.iter().map(target).collect(),
            url,
            base,
        })
    }
}

impl Arguments {
    /// The protocol, as h2load names it.
    pub(super) fn protocol(&self) -> &'static str {
        match (self.http1, self.url.scheme) {
            (true, _) => "http/1.1",
            (false, Scheme::Https) => "h2",
            (false, Scheme::Http) => "h2c",
        }
    }
}

fn read(file: &str) -> Result<Vec<u8>, Refusal> {
    let read = match file {
        "-" => std::io::read_to_string(std::io::stdin()).map(String::into_bytes),
        file => std::fs::read(file),
    };
    read.map_err(|error| sentence(&format!("{file}: {error}")))
}

/// `name: value`, or `:name: value`.
fn header(text: &str) -> Option<(String, String)> {
    let colon = text.get(1..)?.find(':')? + 1;
    let (name, value) = text.split_at(colon);
    let value = value.get(1..)?.trim();
    let is_name = !name.trim_start_matches(':').is_empty() && !value.contains(['\r', '\n']);
    is_name.then(|| (name.to_ascii_lowercase(), value.to_owned()))
}

fn address(text: &str, url: &Url) -> Option<Base> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (text, url.port_or_default()),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| Base::Address(host.to_owned(), port))
}

/// A number with `ms`, `s`, `m` or `h`; seconds without.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match text.get(digits.len()..)? {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = digits.parse::<f64>().ok()? * scale;
    (seconds > 0.0 && seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, Refusal> {
        let words: Vec<Vec<u8>> = line
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        parse(&words)
    }

    #[test]
    fn options_are_read_as_h2load_reads_them() {
        let found = read("-n100 -c 10 -t2 --max-concurrent-streams=5 -H a:b -H :method:PUT --rps=2.5 https://h:1/x?y /z").unwrap();
        assert_eq!((found.requests, found.clients, found.threads), (100, 10, 2));
        assert_eq!(found.streams.get(), 5);
        assert_eq!(
            found.headers,
            [("a".into(), "b".into()), (":method".into(), "PUT".into())]
        );
        assert_eq!(found.requests_per_second, Some(2.5));
        assert_eq!(
            (found.url.host.as_str(), found.targets),
            ("h", vec!["/x?y".to_owned(), "/z".to_owned()])
        );
        let found = read("-D 500ms --warm-up-time 1 --h1 -w 16 http://h/").unwrap();
        assert_eq!(found.duration, Some(Duration::from_millis(500)));
        assert_eq!(
            (found.warm_up, found.http1, found.window_bytes),
            (Duration::from_secs(1), true, 65_535)
        );
        let found = read("-B unix:/a --connect-to [::1]:8 http://h/").unwrap();
        assert_eq!(found.base, Some(Base::Address("::1".to_owned(), 8)));
        let found = read("-r 10 --rate-period=100ms -n 20 -c 20 http://h/").unwrap();
        assert_eq!(found.rate, Some(100.0));
    }

    #[test]
    fn wrong_command_lines_get_a_sentence() {
        for (line, expected) in [
            ("-n 1", "no URI or input file given"),
            (
                "-n 2 -c 3 http://h/",
                "must be greater than or equal to the clients",
            ),
            (
                "-c 1 -t 2 http://h/",
                "greater than or equal to the number of threads",
            ),
            ("-m 0 http://h/", "strictly greater than 0"),
            ("-n x http://h/", "--requests: bad option value: x"),
            ("-D 1 -r 1 http://h/", "mutually exclusive"),
            ("-z http://h/", "invalid option -- 'z'"),
            ("--ciphers=a http://h/", "are not there"),
            ("--h1 -m 3 http://h/", "pipelining is not there"),
            ("ftp://h/", "invalid URI"),
            ("-H broken http://h/", "--header: bad option value"),
        ] {
            match read(line) {
                Err(Refusal::Sentence(said)) => assert!(said.contains(expected), "{line}: {said}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
