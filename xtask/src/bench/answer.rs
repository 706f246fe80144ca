//! One answer as a client reads it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::content;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Head, content and its framing.
    pub(super) wire_bytes: usize,
    pub(super) content: Vec<u8>,
    pub(super) closes: bool,
}

impl Answer {
    /// Asks once for what is served. Patience is for each step.
    pub(super) fn ask(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let target = content::target();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        Self::read(&mut stream)
    }

    /// Reads one answer whose end its head tells.
    pub(super) fn read(stream: &mut impl Read) -> io::Result<Self> {
        let mut received = Received {
            stream,
            bytes: Vec::new(),
            read: 0,
        };
        let head = received.until(b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| invalid("no status"))?;
        let field = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find_map(|(n, value)| (n == name).then(|| value.trim()))
        };
        let mut content = Vec::new();
        if field("transfer-encoding") == Some("chunked") {
            while let chunk @ 1.. = received.chunk_bytes()? {
                content.extend(received.exactly(chunk)?);
                received.exactly(2)?;
            }
            received.exactly(2)?;
        } else {
            let length = field("content-length").and_then(|length| length.parse().ok());
            content = received.exactly(length.ok_or_else(|| invalid("no length"))?)?;
        }
        Ok(Self {
            status,
            wire_bytes: received.read,
            content,
            closes: field("connection") == Some("close"),
        })
    }
}

/// More than any answer of a case.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The bytes of one answer as they come.
struct Received<'a, S> {
    stream: &'a mut S,
    /// Read from the stream, not taken yet.
    bytes: Vec<u8>,
    /// Taken so far.
    read: usize,
}

impl<S: Read> Received<'_, S> {
    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 65_536];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes.extend(buffer.iter().take(count));
        Ok(())
    }

    fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        if count > ANSWER_BYTES_MAX {
            return Err(invalid("too long"));
        }
        while self.bytes.len() < count {
            self.more()?;
        }
        let rest = self.bytes.split_off(count);
        self.read += count;
        Ok(std::mem::replace(&mut self.bytes, rest))
    }

    /// The bytes up to and with `end`.
    fn until(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            let mut windows = self.bytes.windows(end.len());
            if let Some(at) = windows.position(|window| window == end) {
                return self.exactly(at + end.len());
            }
            if self.bytes.len() > ANSWER_BYTES_MAX {
                return Err(invalid("too long"));
            }
            self.more()?;
        }
    }

    fn chunk_bytes(&mut self) -> io::Result<usize> {
        let line = self.until(b"\r\n")?;
        let text = String::from_utf8_lossy(&line);
        usize::from_str_radix(text.trim(), 16).map_err(|_| invalid("bad chunk size"))
    }
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("answer with {what}"))
}

#[cfg(test)]
mod tests {
    use super::Answer;

    fn check(text: &str, expected: Option<(u16, usize, &str, bool)>) {
        let answer = Answer::read(&mut text.as_bytes()).ok();
        let expected = expected.map(|(status, wire_bytes, content, closes)| Answer {
            status,
            wire_bytes,
            content: content.as_bytes().to_vec(),
            closes,
        });
        assert_eq!(answer, expected, "{text:?}");
    }

    #[test]
    fn an_answer_ends_where_its_head_says() {
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            Some((200, 60, "abc", true)),
        );
        check(
            "HTTP/1.1 404 N\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n",
            Some((404, 73, "ab0123456789", false)),
        );
    }

    #[test]
    fn an_answer_that_breaks_off_or_has_no_length_is_an_error() {
        check("", None);
        check("HTTP/1.1 200 OK\r\n\r\n", None);
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", None);
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            None,
        );
    }
}
