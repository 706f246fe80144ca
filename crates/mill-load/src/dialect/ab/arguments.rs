//! ab's command line: its letters, its numbers, its error messages.

use super::getopt::{Found, Getopt};
use super::strerror;
use super::tls::{Protocol, TlsOptions};
use super::url::Url;
use core::time::Duration;
use std::io;

/// The options of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `-n`; `-t` sets it too.
    pub(super) requests: u32,
    /// `-c`; 0 is accepted, and fails when the run begins.
    pub(super) concurrency: u32,
    /// `-t`.
    pub(super) time_limit: Option<Duration>,
    /// `-s`; `None` waits for ever.
    pub(super) timeout: Option<Duration>,
    /// `-b`; 0 leaves it to the system.
    pub(super) window_bytes: i32,
    /// `-B`.
    pub(super) source: Option<Vec<u8>>,
    /// `-i`, `-p`, `-u`, `-m`.
    pub(super) method: Method,
    /// The content of the file of `-p` or `-u`.
    pub(super) body: Option<Vec<u8>>,
    /// `-T`.
    pub(super) content_type: Option<Vec<u8>>,
    /// `-v`.
    pub(super) verbosity: i32,
    /// `-w`, `-x`, `-y`, `-z`.
    pub(super) html: Option<Html>,
    /// `-C`: the last one counts, although the usage says that they add up.
    pub(super) cookie: Option<Vec<u8>>,
    /// `-A` and `-P` as lines.
    pub(super) authorization: Vec<u8>,
    /// `-H` as lines.
    pub(super) fields: Vec<u8>,
    /// `-X`: name and port, which is 0 if none is given.
    pub(super) proxy: Option<(Vec<u8>, u16)>,
    /// `-k`.
    pub(super) keep_alive: bool,
    /// Not `-d`.
    pub(super) percentiles: bool,
    /// Not `-S`.
    pub(super) confidence: bool,
    /// Not `-q`.
    pub(super) progress: bool,
    /// `-l`.
    pub(super) any_length: bool,
    /// `-r`.
    pub(super) goes_on: bool,
    /// `-g`.
    pub(super) gnuplot: Option<Vec<u8>>,
    /// `-e`.
    pub(super) csv: Option<Vec<u8>>,
    /// `-f`, `-Z`, `-E`, `-I`.
    pub(super) tls: TlsOptions,
    pub(super) url: Url,
}

/// The request's method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    /// `-m`, of any value.
    Custom(Vec<u8>),
}

/// The attributes of the table, its rows and its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Html {
    pub(super) table: Vec<u8>,
    pub(super) row: Vec<u8>,
    pub(super) cell: Vec<u8>,
}

/// A command line that was read. ab goes on after an option that it does not know if a URL follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) complaint: Option<Vec<u8>>,
    pub(super) outcome: Result<Box<Options>, Refusal>,
}

/// Why there is no run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// `-V`, in HTML if an option before it asked for that.
    Version { html: bool },
    /// The usage, after a line that says what is wrong.
    Usage(Option<&'static str>),
    /// These lines and status 1.
    Fatal(String),
}

/// Parses the arguments after the program's name; `read` reads the file of `-p` and `-u`.
pub(super) fn parse(arguments: &[Vec<u8>], read: &dyn Fn(&[u8]) -> io::Result<Vec<u8>>) -> Parsed {
    let mut walk = Getopt::new(arguments);
    let mut draft = Draft::new();
    let mut complaint = None;
    loop {
        let step = match walk.next(LETTERS) {
            Found::Letter(letter, argument) => draft.take(letter, argument, read),
            Found::End => break,
            Found::Complaint(line) => {
                complaint = Some(line);
                break;
            }
        };
        if let Err(refusal) = step {
            return Parsed {
                complaint,
                outcome: Err(refusal),
            };
        }
    }
    Parsed {
        complaint,
        outcome: draft.finish(walk.rest()),
    }
}

impl Method {
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Self::Get => b"GET",
            Self::Head => b"HEAD",
            Self::Post => b"POST",
            Self::Put => b"PUT",
            Self::Custom(name) => name,
        }
    }
}

/// Options while they are read.
struct Draft {
    options: Options,
    method: Option<Method>,
}

impl Draft {
    fn new() -> Self {
        Self {
            options: Options {
                requests: 1,
                concurrency: 1,
                timeout: Some(TIMEOUT),
                percentiles: true,
                confidence: true,
                progress: true,
                ..Options::default()
            },
            method: None,
        }
    }

    fn take(
        &mut self,
        letter: u8,
        argument: &[u8],
        read: &dyn Fn(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<(), Refusal> {
        let options = &mut self.options;
        match letter {
            b'n' => options.requests = requests(argument)?,
            // A negative number is as much out of range as one that is too large.
            b'c' => options.concurrency = u32::try_from(atoi(argument)).unwrap_or(u32::MAX),
            b't' => {
                let seconds = atoi(argument);
                options.time_limit = (seconds != 0).then(|| seconds_of(seconds));
                options.requests = TIMED_REQUESTS;
            }
            b's' => {
                let seconds = atoi(argument);
                options.timeout = (seconds >= 0).then(|| seconds_of(seconds));
            }
            b'b' => options.window_bytes = atoi(argument),
            b'B' => options.source = Some(argument.to_vec()),
            b'i' => self.choose(Method::Head)?,
            b'p' => self.send(Method::Post, argument, read)?,
            b'u' => self.send(Method::Put, argument, read)?,
            b'm' => self.method = Some(Method::Custom(argument.to_vec())),
            b'T' => options.content_type = Some(argument.to_vec()),
            b'v' => options.verbosity = atoi(argument),
            b'w' => _ = self.html(),
            b'x' => self.html().table = argument.to_vec(),
            b'y' => self.html().row = argument.to_vec(),
            b'z' => self.html().cell = argument.to_vec(),
            b'C' => options.cookie = Some(argument.to_vec()),
            b'A' => self.authorize(b"Authorization", "Authentication", argument)?,
            b'P' => self.authorize(b"Proxy-Authorization", "Proxy", argument)?,
            b'H' => {
                options.fields.extend_from_slice(argument);
                options.fields.extend_from_slice(b"\r\n");
            }
            b'X' => options.proxy = Some(proxy(argument)),
            b'k' => options.keep_alive = true,
            b'd' => options.percentiles = false,
            b'S' => options.confidence = false,
            b'q' => options.progress = false,
            b'l' => options.any_length = true,
            b'r' => options.goes_on = true,
            b'g' => options.gnuplot = Some(argument.to_vec()),
            b'e' => options.csv = Some(argument.to_vec()),
            b'V' => {
                return Err(Refusal::Version {
                    html: options.html.is_some(),
                });
            }
            b'f' => options.tls.protocol = protocol(argument)?,
            b'Z' => options.tls.ciphers = Some(argument.to_vec()),
            b'E' => options.tls.certificate = Some(argument.to_vec()),
            b'I' => options.tls.is_nameless = true,
            _ => return Err(Refusal::Usage(None)),
        }
        Ok(())
    }

    fn choose(&mut self, method: Method) -> Result<(), Refusal> {
        if self.method.is_some() {
            let name = String::from_utf8_lossy(method.name()).into_owned();
            return Err(fatal(&format!("Cannot mix {name} with other methods\n")));
        }
        self.method = Some(method);
        Ok(())
    }

    fn send(
        &mut self,
        method: Method,
        file: &[u8],
        read: &dyn Fn(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<(), Refusal> {
        self.choose(method)?;
        let body = read(file).map_err(|error| {
            let reason = strerror::text(&error);
            if error.kind() == io::ErrorKind::IsADirectory {
                return fatal(&format!("ab: Could not read POST data file: {reason}"));
            }
            let file = String::from_utf8_lossy(file);
            fatal(&format!(
                "ab: Could not open POST data file ({file}): {reason}"
            ))
        })?;
        self.options.body = Some(body);
        Ok(())
    }

    fn html(&mut self) -> &mut Html {
        self.options.html.get_or_insert_with(|| Html {
            table: Vec::new(),
            row: Vec::new(),
            cell: b"bgcolor=white".to_vec(),
        })
    }

    fn authorize(&mut self, name: &[u8], whose: &str, argument: &[u8]) -> Result<(), Refusal> {
        let encoded = base64(argument.trim_ascii_start());
        if encoded.len() >= CREDENTIALS_MAX_BYTES {
            return Err(fatal(&format!("{whose} credentials too long\n")));
        }
        let line = [name, b": Basic ", &encoded, b"\r\n"].concat();
        self.options.authorization.extend_from_slice(&line);
        Ok(())
    }

    fn finish(self, rest: &[Vec<u8>]) -> Result<Box<Options>, Refusal> {
        let [url] = rest else {
            return Err(Refusal::Usage(Some("wrong number of arguments")));
        };
        let mut options = self.options;
        options.method = self.method.unwrap_or(Method::Get);
        options.url = Url::parse(url).ok_or(Refusal::Usage(Some("invalid URL")))?;
        if options.concurrency > CONCURRENCY_MAX {
            return Err(Refusal::Usage(Some(
                "Invalid Concurrency [Range 0..200000]",
            )));
        }
        if options.concurrency > options.requests {
            return Err(Refusal::Usage(Some(
                "Cannot use concurrency level greater than total number of requests",
            )));
        }
        Ok(Box::new(options))
    }
}

fn requests(argument: &[u8]) -> Result<u32, Refusal> {
    u32::try_from(atoi(argument))
        .ok()
        .filter(|requests| *requests > 0)
        .ok_or_else(|| fatal("Invalid number of requests\n"))
}

fn seconds_of(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// `name[:port]`.
fn proxy(argument: &[u8]) -> (Vec<u8>, u16) {
    let colon = argument.iter().position(|byte| *byte == b':');
    let (name, port) = argument.split_at(colon.unwrap_or(argument.len()));
    let port = atoi(port.get(1..).unwrap_or_default());
    (name.to_vec(), u16::try_from(port).unwrap_or(0))
}

/// C's atoi: blanks, a sign, digits; 0 if there are none. glibc's is strtol cut to 32 bits.
fn atoi(text: &[u8]) -> i32 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut value: i64 = 0;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        let digit = if negative { -digit } else { digit };
        value = value.saturating_mul(10).saturating_add(digit);
    }
    let [a, b, c, d, ..] = value.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// RFC 4648 4, padded.
fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place) & 63) as usize;
            let digit = DIGITS.get(sextet).copied().unwrap_or(b'=');
            text.push(if place <= group.len() { digit } else { b'=' });
        }
    }
    text
}

fn fatal(text: &str) -> Refusal {
    Refusal::Fatal(String::from(text))
}

fn protocol(word: &[u8]) -> Result<Protocol, Refusal> {
    Protocol::parse(word).map_err(|version| {
        fatal(&format!(
            "ab: -f {version}: TLS 1.0 and 1.1 are not there; use TLS1.2, TLS1.3 or ALL"
        ))
    })
}

/// The letters of ab built with TLS, as apr_getopt takes them.
const LETTERS: &[u8] = b"n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:";

/// The most connections at a time: ab's MAX_CONCURRENCY as Debian 12 has it; older releases said 20000.
const CONCURRENCY_MAX: u32 = 200_000;

/// Requests of a run that `-t` limits, unless a later `-n` says otherwise: ab's MAX_REQUESTS.
const TIMED_REQUESTS: u32 = 50_000;

/// How long a response may take unless `-s` says otherwise: ab's default.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of encoded credentials with their terminator: the size of ab's buffer.
const CREDENTIALS_MAX_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
