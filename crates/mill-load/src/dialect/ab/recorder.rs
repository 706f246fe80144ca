//! Every sample, as ab keeps them, and ab's counters.

use super::arguments::Options;
use super::tls::Secured;
use crate::failure::{Failure, FailureKind};
use crate::record::Record;
use crate::sample::Sample;
use crate::tally::Tally;
use core::time::Duration;
use mill_runtime::time::Instant;
use mill_tls::facts::TlsFacts;
use std::collections::TryReserveError;
use std::io::Write;

/// One request that was answered: four times in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// From the beginning of the run to the request's start.
    pub(super) started_us: u64,
    /// Time to connect; 0 on a kept connection.
    pub(super) connect_us: u64,
    /// From the start, connecting included, to the last byte or, without `-k`, to the connection's end.
    pub(super) total_us: u64,
    /// From the sending to the first byte.
    pub(super) wait_us: u64,
}

const _: () = assert!(
    size_of::<Row>() == 32,
    "-n times this is allocated at the start"
);

/// What ab counts, each failed request once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests that ended, answered or not.
    pub(super) done: u64,
    pub(super) connect: u64,
    pub(super) receive: u64,
    pub(super) length: u64,
    pub(super) exceptions: u64,
    pub(super) non_2xx: u64,
    pub(super) kept_alive: u64,
}

/// Keeps the data of a run's report.
#[derive(Debug)]
pub(super) struct Recorder {
    /// Never grows beyond what was reserved.
    pub(super) rows: Vec<Row>,
    pub(super) counts: Counts,
    /// Content bytes of the first response; others must have the same number.
    pub(super) document_len: Option<u64>,
    /// The `Server` of the first response.
    pub(super) server: Option<Vec<u8>>,
    /// Of the first handshake.
    pub(super) secured: Option<Secured>,
    begin: Instant,
    last: Instant,
    any_length: bool,
    verbosity: i32,
    tells_failures: bool,
    lines: Lines,
}

/// Lines to be written during the run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) done: u64,
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
}

impl Recorder {
    /// A recorder with room for as many rows as `options` ask for requests.
    pub(super) fn new(options: &Options) -> Result<Self, TryReserveError> {
        let mut rows = Vec::new();
        rows.try_reserve_exact(options.requests as usize)?;
        Ok(Self {
            rows,
            counts: Counts::default(),
            document_len: None,
            server: None,
            secured: None,
            begin: Instant::default(),
            last: Instant::default(),
            any_length: options.any_length,
            verbosity: options.verbosity,
            tells_failures: options.goes_on && options.verbosity >= 1,
            lines: Lines::default(),
        })
    }

    /// From the beginning to the last event, as ab takes the time.
    pub(super) const fn taken(&self) -> Duration {
        self.last.since(self.begin)
    }

    /// The lines since the last call.
    pub(super) fn take_lines(&mut self) -> Lines {
        Lines {
            done: self.counts.done,
            ..core::mem::take(&mut self.lines)
        }
    }

    fn count_length(&mut self, content_bytes: u64) {
        let expected = *self.document_len.get_or_insert(content_bytes);
        if content_bytes != expected && !self.any_length {
            self.counts.length += 1;
        }
    }

    /// Lines go to memory, which accepts any write.
    fn say(&mut self, status: u16) {
        if self.verbosity >= 2 && status / 100 != 2 {
            let _ = writeln!(self.lines.out, "WARNING: Response code not 2xx ({status})");
        } else if self.verbosity >= 3 {
            let _ = writeln!(self.lines.out, "LOG: Response code = {status}");
        }
    }
}

impl Record for Recorder {
    type Interval = Lines;

    fn on_begin(&mut self, now: Instant) {
        (self.begin, self.last) = (now, now);
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.last = self.last.max(sample.done);
        self.counts.done += 1;
        self.counts.kept_alive += u64::from(sample.keep_alive);
        // A response whose head never ended has no status, and ab counts none.
        if sample.status != 0 {
            self.counts.non_2xx += u64::from(sample.status / 100 != 2);
            self.say(sample.status);
        }
        self.count_length(sample.content_bytes);
        if self.rows.len() < self.rows.capacity() {
            self.rows.push(Row {
                started_us: micros(sample.started.since(self.begin)),
                connect_us: micros(sample.connect_time().unwrap_or_default()),
                total_us: micros(sample.time()),
                wait_us: micros(sample.first_byte_time()),
            });
        }
    }

    fn on_failure(&mut self, failure: Failure, now: Instant) {
        self.last = self.last.max(now);
        self.counts.done += 1;
        match failure.kind() {
            kind if kind.is_connecting() => self.counts.connect += 1,
            FailureKind::Garbage => {
                self.counts.exceptions += 1;
                self.counts.non_2xx += 1;
            }
            _ => self.counts.receive += 1,
        }
        // The failure that ends the run is reported where it ends.
        let is_told = match failure.kind() {
            // ab tells these with any options.
            FailureKind::Handshake => self.lines.err.len() < LINES_MAX_BYTES,
            kind => self.tells_failures && !ends_always(kind),
        };
        if is_told {
            let message = super::message::of(failure);
            let _ = writeln!(self.lines.err, "{}", message.text);
        }
    }

    fn on_secured(&mut self, _: Duration, facts: &TlsFacts) {
        self.secured.get_or_insert_with(|| Secured::of(facts));
    }

    fn wants_head(&self) -> bool {
        self.server.is_none() || self.verbosity >= 2
    }

    fn on_head(&mut self, bytes: &[u8], head_len: usize) {
        let head = bytes.get(..head_len).unwrap_or_default();
        self.server.get_or_insert_with(|| server(head).to_vec());
        if self.verbosity >= 2 {
            // ab prints its buffer as a string of C: head and content up to the first zero.
            let end = bytes.iter().position(|byte| *byte == 0);
            let room = LINES_MAX_BYTES.saturating_sub(self.lines.out.len());
            let len = end.unwrap_or(bytes.len()).min(BUFFER_BYTES).min(room);
            self.lines.out.extend_from_slice(b"LOG: header received:\n");
            self.lines
                .out
                .extend_from_slice(bytes.get(..len).unwrap_or_default());
            self.lines.out.push(b'\n');
        }
    }

    fn cut(&mut self, _now: Instant, _tally: &Tally) -> Lines {
        self.take_lines()
    }
}

impl Counts {
    /// Requests that failed in any way.
    pub(super) const fn failed(&self) -> u64 {
        self.connect + self.receive + self.length + self.exceptions
    }
}

/// Whether ab gives up after such a failure even with `-r`.
fn ends_always(kind: FailureKind) -> bool {
    super::run::ENDING_ALWAYS.contains(&kind)
}

/// The first word after the first "Server:", anywhere in the head, as ab finds it.
fn server(head: &[u8]) -> &[u8] {
    const NAME: &[u8] = b"Server:";
    let start = head
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME));
    let Some(start) = start else {
        return &[];
    };
    // ab assumes that one blank follows.
    let value = head.get(start + NAME.len() + 1..).unwrap_or_default();
    let is_word = |byte: &&u8| (33..=127).contains(*byte);
    let len = value.iter().take_while(is_word).count();
    value.get(..len.min(SERVER_MAX_BYTES)).unwrap_or_default()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Bytes of a server's name that are kept: ab's buffer without its terminator.
const SERVER_MAX_BYTES: usize = 1023;

/// Bytes of a response in ab's buffer, without its terminator.
const BUFFER_BYTES: usize = 8191;

/// Bytes of heads that wait to be written with `-v 2`, between two intervals; more is cut off.
const LINES_MAX_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;
    use mill_runtime::stream::StreamError;

    #[track_caller]
    fn check_server(head: &str, expected: &str) {
        assert_eq!(server(head.as_bytes()), expected.as_bytes());
    }

    #[test]
    fn the_server_is_one_word() {
        check_server(
            "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n\r\n",
            "nginx/1.22.1",
        );
        check_server("HTTP/1.1 200 OK\r\nserver: a/1 (b)\r\n\r\n", "a/1");
        check_server("HTTP/1.1 200 OK\r\nserver:", "");
        check_server("HTTP/1.1 200 OK\r\n\r\n", "");
        check_server("X-Server: t\u{e9}\r\n", "t");
        let long = "x".repeat(2000);
        check_server(&format!("Server: {long}"), &long[..1023]);
    }

    fn recorder(line: &str) -> Recorder {
        let arguments: Vec<Vec<u8>> = line.split(' ').map(Vec::from).collect();
        let parsed = parse(&arguments, &|_| Ok(Vec::new()));
        Recorder::new(&parsed.outcome.unwrap()).unwrap()
    }

    fn sample(content_bytes: u64, status: u16) -> Sample {
        let at = |us: u64| Instant::from_nanos(us * 1000);
        Sample {
            connected: Some(at(1100)),
            sent: at(1100),
            first_byte: at(1500),
            done: at(1700),
            status,
            content_bytes,
            keep_alive: false,
            ..Sample::example(at(1000))
        }
    }

    #[test]
    fn a_sample_becomes_a_row_and_the_first_ones_length_is_the_documents() {
        let mut recorder = recorder("-n 2 a/");
        recorder.on_begin(Instant::from_nanos(400_000));
        for (content, status) in [(5, 200), (5, 404), (4, 0)] {
            recorder.on_sample(&sample(content, status));
        }
        assert_eq!(
            recorder.rows,
            [Row {
                started_us: 600,
                connect_us: 100,
                total_us: 700,
                wait_us: 400,
            }; 2],
            "never more rows than were reserved"
        );
        let counts = Counts {
            done: 3,
            length: 1,
            non_2xx: 1,
            ..Counts::default()
        };
        assert_eq!(recorder.counts, counts);
        assert_eq!(recorder.document_len, Some(5));
        assert_eq!(recorder.taken(), Duration::from_micros(1300));
    }

    #[test]
    fn with_any_length_none_is_wrong() {
        let mut recorder = recorder("-n 2 -l a/");
        recorder.on_sample(&sample(1, 200));
        recorder.on_sample(&sample(2, 200));
        assert_eq!(recorder.counts.failed(), 0);
    }

    #[test]
    fn a_failure_is_counted_once() {
        let mut recorder = recorder("-r -v 1 a/");
        let refused = Failure::Connect(StreamError::Refused);
        let reset = Failure::Stream(StreamError::Reset);
        for failure in [refused, reset, reset] {
            recorder.on_failure(failure, Instant::from_nanos(5));
        }
        let counts = Counts {
            done: 3,
            connect: 1,
            receive: 2,
            ..Counts::default()
        };
        assert_eq!(recorder.counts, counts);
        let lines = recorder.take_lines();
        assert_eq!(lines.done, 3);
        let text = String::from_utf8(lines.err).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("apr_socket_recv: Connection reset by peer (104)\n"));
        assert_eq!(recorder.take_lines().err, b"");
    }

    #[test]
    fn heads_are_shown_when_asked_for() {
        let shown_of = |received: &[u8], verbosity, status| {
            let mut recorder = recorder(&format!("-v {verbosity} a/"));
            recorder.on_head(received, 5);
            recorder.on_sample(&sample(1, status));
            String::from_utf8(recorder.take_lines().out).unwrap()
        };
        let shown = |verbosity, status| shown_of(b"H\r\n\r\n", verbosity, status);
        let head = "LOG: header received:\nH\r\n\r\n\n";
        // What came with the head is shown as ab shows it.
        let with_content = "LOG: header received:\nH\r\n\r\nhello\n\n";
        assert_eq!(shown_of(b"H\r\n\r\nhello\n", 2, 200), with_content);
        assert_eq!(shown_of(b"H\r\n\r\nhello\n\0x", 2, 200), with_content);
        let long = shown_of(&[b"H\r\n\r\n".as_slice(), &[b'x'; 9000]].concat(), 2, 200);
        assert_eq!(long.len(), "LOG: header received:\n".len() + 8191 + 1);
        assert_eq!(shown(1, 404), "");
        let warning = "WARNING: Response code not 2xx (404)\n";
        assert_eq!(shown(2, 404), format!("{head}{warning}"));
        assert_eq!(shown(2, 200), head);
        assert_eq!(shown(3, 200), format!("{head}LOG: Response code = 200\n"));
    }
}
