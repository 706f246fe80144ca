//! A message as it arrives: its head, and its content by its framing.

use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Readable, Stream, StreamError};
use mill_runtime::time::{Duration, Instant};

/// Reads messages of a stream, each step within [`PATIENCE`].
pub(crate) struct Incoming<'a, S: Stream> {
    pub(crate) stream: &'a S,
    pub(crate) scheduler: &'a Scheduler,
}

/// Why a message is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer has closed the connection; whether any byte of the message came.
    Closed {
        has_begun: bool,
    },
    Broken(StreamError),
    Late,
    /// It is none.
    Malformed(String),
    /// The reader has had enough.
    Enough,
}

/// How the end of content is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// A head's first line and fields.
#[derive(Clone, Debug)]
pub(crate) struct Head(pub(crate) String);

impl Head {
    pub(crate) fn first_line(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    /// The value of the only field of this name.
    pub(crate) fn field(&self, name: &str) -> Result<Option<&str>, End> {
        let lines = self.0.lines().skip(1);
        let fields = lines.filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.trim());
        match values.next() {
            Some(_) => Err(End::Malformed(format!("{name} twice: {}", self.0))),
            None => Ok(value),
        }
    }

    /// `otherwise` applies where nothing is said.
    pub(crate) fn framing(&self, otherwise: Framing) -> Result<Framing, End> {
        let malformed = || End::Malformed(self.0.clone());
        match (
            self.field("Content-Length")?,
            self.field("Transfer-Encoding")?,
        ) {
            (None, None) => Ok(otherwise),
            (Some(len), None) => len.parse().map(Framing::Length).map_err(|_| malformed()),
            (None, Some("chunked")) => Ok(Framing::Chunked),
            _ => Err(malformed()),
        }
    }
}

impl<S: Stream> Incoming<'_, S> {
    async fn readable(&self, least: usize, has_begun: bool) -> Result<Readable, End> {
        let deadline: Instant = self.scheduler.now() + PATIENCE;
        let readable = self.stream.readable(least);
        match self.scheduler.until(deadline, readable).await {
            Err(_) => Err(End::Late),
            Ok(Err(error)) => Err(End::Broken(error)),
            Ok(Ok(readable)) if readable.unread < least => Err(End::Closed {
                has_begun: has_begun || readable.unread > 0,
            }),
            Ok(Ok(readable)) => Ok(readable),
        }
    }

    /// Up to and with the text `end`.
    async fn up_to(&self, end: &[u8], has_begun: bool) -> Result<String, End> {
        let mut least = 1;
        loop {
            let readable = self.readable(least, has_begun).await?;
            let found = self.stream.read(|bytes| {
                let at = bytes.windows(end.len()).position(|window| window == end);
                let text = at.map(|at| String::from_utf8_lossy(&bytes[..at + end.len()]));
                let len = at.map_or(0, |at| at + end.len());
                (len, text.map(|text| text.into_owned()))
            });
            match found {
                Some(text) => return Ok(text),
                None => least = readable.unread + 1,
            }
        }
    }

    pub(crate) async fn head(&self) -> Result<Head, End> {
        let head = self.up_to(b"\r\n\r\n", false).await?;
        Ok(Head(head))
    }

    /// Passes content to `take`, piece by piece, until `take` says that it has enough.
    pub(crate) async fn content(
        &self,
        framing: Framing,
        mut take: impl FnMut(&[u8]) -> Result<(), End>,
    ) -> Result<(), End> {
        match framing {
            Framing::Length(len) => self.exactly(len, &mut take).await,
            Framing::UntilClose => loop {
                match self.exactly(1, &mut take).await {
                    Ok(()) => {}
                    Err(End::Closed { .. }) => return Ok(()),
                    Err(end) => return Err(end),
                }
            },
            Framing::Chunked => loop {
                let line = self.up_to(b"\r\n", true).await?;
                let len = usize::from_str_radix(line.trim_end(), 16);
                let len = len.map_err(|_| End::Malformed(format!("chunk {line:?}")))?;
                self.exactly(len, &mut take).await?;
                // Behind the last one there are no trailers.
                let end = self.up_to(b"\r\n", true).await?;
                if end != "\r\n" {
                    return Err(End::Malformed(format!("behind a chunk {end:?}")));
                }
                if len == 0 {
                    return Ok(());
                }
            },
        }
    }

    async fn exactly(
        &self,
        len: usize,
        take: &mut impl FnMut(&[u8]) -> Result<(), End>,
    ) -> Result<(), End> {
        let mut left = len;
        while left > 0 {
            self.readable(1, true).await?;
            let (len, taken) = self.stream.read(|bytes| {
                let piece = &bytes[..bytes.len().min(left)];
                (piece.len(), (piece.len(), take(piece)))
            });
            taken?;
            left -= len;
        }
        Ok(())
    }
}

/// Content that is compared with what it must be.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) bytes: &'static [u8],
    pub(crate) came: usize,
}

impl Expected {
    pub(crate) const fn new(bytes: &'static [u8]) -> Self {
        Self { bytes, came: 0 }
    }

    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), End> {
        let end = self.came + piece.len();
        if self.bytes.get(self.came..end) != Some(piece) {
            let came = self.came;
            return Err(End::Malformed(format!("a wrong byte behind byte {came}")));
        }
        self.came = end;
        Ok(())
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.came == self.bytes.len()
    }
}

/// Longer than any partition and any timeout of the proxy, with all tries.
const PATIENCE: Duration = Duration::from_secs(600);
