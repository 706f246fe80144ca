//! The bytes of a connection, compared as they come.

use super::{Problem, Talking, WorldStream};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;

/// Reads a stream. `limit` is how many bytes of content are read before the client leaves.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) stream: &'a WorldStream,
    scheduler: &'a Scheduler,
    pause: Duration,
    limit: usize,
    /// Bytes of content that came, and of them those over earlier connections.
    pub(super) came: usize,
    came_before: usize,
}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    All,
    /// The client leaves now.
    Enough,
}

impl<'a> Reader<'a> {
    /// `came` bytes of content have come over earlier connections.
    pub(super) fn new(
        stream: &'a WorldStream,
        talking: &Talking<'a>,
        limit: usize,
        came: usize,
    ) -> Self {
        Self {
            stream,
            scheduler: &talking.client.scheduler,
            pause: talking.plan.pause,
            limit,
            came,
            came_before: came,
        }
    }

    /// The head of an answer, up to and with the empty line.
    pub(super) async fn head(&mut self) -> Result<String, Problem> {
        let mut least = 1;
        loop {
            let readable = self.readable(least).await?;
            let head = self.stream.read(|bytes| {
                let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
                match end {
                    Some(end) => {
                        let head = String::from_utf8_lossy(&bytes[..end + 4]).into_owned();
                        (end + 4, Some(head))
                    }
                    None => (0, None),
                }
            });
            if let Some(head) = head {
                return Ok(head);
            }
            if readable.finished {
                return Err(Problem::Short { after: self.came });
            }
            least = readable.unread + 1;
        }
    }

    /// Exactly these bytes.
    pub(super) async fn content(&mut self, expected: &[u8]) -> Result<Read, Problem> {
        let mut rest = expected;
        while !rest.is_empty() {
            if self.came >= self.limit {
                return Ok(Read::Enough);
            }
            if !self.pause.is_zero() && (self.came == 0 || rest.len() < expected.len() / 2) {
                let pause = std::mem::take(&mut self.pause);
                self.scheduler.sleep(pause).await;
                if self.came == 0 {
                    // Again halfway.
                    self.pause = pause / 2;
                }
            }
            let readable = self.readable(1).await?;
            let came = self.came;
            let taken = self.stream.read(|bytes| {
                let len = bytes.len().min(rest.len());
                let differs = bytes[..len].iter().zip(rest).position(|(a, b)| a != b);
                (len, differs.map_or(Ok(len), Err))
            });
            match taken {
                Err(at) => return Err(Problem::WrongByte { at: came + at }),
                Ok(0) if readable.finished => return Err(Problem::Short { after: came }),
                Ok(len) => {
                    rest = &rest[len..];
                    self.came += len;
                }
            }
        }
        Ok(Read::All)
    }

    /// The end of the connection, and nothing before it.
    pub(super) async fn end(&mut self) -> Result<(), Problem> {
        let readable = self.readable(1).await?;
        if readable.unread > 0 {
            return Err(Problem::Surplus);
        }
        Ok(())
    }

    async fn readable(&self, least: usize) -> Result<mill_runtime::stream::Readable, Problem> {
        let broken = |error| match self.came {
            after if after == self.came_before => Problem::Refused(error),
            after => Problem::Broken { after, error },
        };
        self.stream.readable(least).await.map_err(broken)
    }
}
