//! Requests that the lab itself sends, one after another, for what load generators do not report: the response
//! itself, an exact number of requests, connections that stay idle.

use crate::host::Host;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A request, its server, and the host to send it from.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub client: &'a Host,
    /// Host and port.
    pub authority: String,
    pub path: &'a str,
    /// Besides `Host`.
    pub fields: &'a [String],
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    head: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub content: Vec<u8>,
    /// It is the connection's last.
    pub closes: bool,
}

/// A server under valgrind takes seconds for what takes microseconds otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Request<'_> {
    pub fn connect(&self) -> io::Result<Connection> {
        let mut addresses = self.authority.to_socket_addrs()?;
        let address: SocketAddr = addresses.next().ok_or(io::ErrorKind::NotFound)?;
        let stream = self
            .client
            .within(|| TcpStream::connect_timeout(&address, TIMEOUT))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let fields: String = self
            .fields
            .iter()
            .map(|line| format!("{line}\r\n"))
            .collect();
        let (path, authority) = (self.path, &self.authority);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n");
        Ok(Connection { stream, head })
    }

    /// Sends this many requests, on a new connection when the server has closed the last one.
    pub fn repeat(&self, count: u32) -> io::Result<()> {
        let mut open = None;
        for _ in 0..count {
            let mut connection = match open.take() {
                Some(connection) => connection,
                None => self.connect()?,
            };
            let answer = connection.ask()?;
            if answer.status != 200 {
                return Err(invalid(&format!("status {}", answer.status)));
            }
            if !answer.closes {
                open = Some(connection);
            }
        }
        Ok(())
    }
}

impl Connection {
    pub fn ask(&mut self) -> io::Result<Answer> {
        self.stream.write_all(self.head.as_bytes())?;
        Answer::read(&mut self.stream)
    }
}

/// More than any file that the lab serves.
const ANSWER_BYTES_MAX: usize = 1 << 30;

impl Answer {
    /// Reads one response whose end follows from its head.
    fn read(stream: &mut impl Read) -> io::Result<Self> {
        let mut received = Received {
            stream,
            bytes: Vec::new(),
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
            content,
            closes: field("connection") == Some("close"),
        })
    }
}

/// The bytes of one response as they arrive.
struct Received<'a, S> {
    stream: &'a mut S,
    /// Read from the stream, not consumed yet.
    bytes: Vec<u8>,
}

impl<S: Read> Received<'_, S> {
    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 65_536];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes.extend_from_slice(&buffer[..count]);
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
        Ok(std::mem::replace(&mut self.bytes, rest))
    }

    /// The bytes up to and including `end`.
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

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("answer with {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u16, &str, bool)>) {
        let answer = Answer::read(&mut text.as_bytes()).ok();
        let expected = expected.map(|(status, content, closes)| Answer {
            status,
            content: content.as_bytes().to_vec(),
            closes,
        });
        assert_eq!(answer, expected, "{text:?}");
    }

    #[test]
    fn a_response_ends_where_its_head_says() {
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            Some((200, "abc", true)),
        );
        check(
            "HTTP/1.1 404 N\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n",
            Some((404, "ab0123456789", false)),
        );
    }

    #[test]
    fn a_response_that_breaks_off_or_has_no_length_is_an_error() {
        check("", None);
        check("HTTP/1.1 200 OK\r\n\r\n", None);
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", None);
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            None,
        );
    }
}
