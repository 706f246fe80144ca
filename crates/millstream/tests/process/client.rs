//! Requests, one connection each or several on one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A connection that stays open between requests.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// An answer: status and content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Vec<u8>,
}

/// Readable when something has come that was not read.
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.get_ref().as_fd()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// One request on the open connection.
    pub(crate) fn get(&mut self, path: &str) -> std::io::Result<Answer> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes())?;
        self.answer()
    }

    /// Reads an answer whose length is stated.
    pub(crate) fn answer(&mut self) -> std::io::Result<Answer> {
        let (status, len) = self.head()?;
        let mut content = vec![0; len];
        self.reader.read_exact(&mut content)?;
        Ok(Answer { status, content })
    }

    /// Reads the head of an answer: status, and length of the content.
    pub(crate) fn head(&mut self) -> std::io::Result<(u16, usize)> {
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        let line = self.line()?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(invalid)?;
        let mut len = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                return Ok((status, len));
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse().map_err(|_| invalid())?;
            }
        }
    }

    /// Reads this much content after `head`.
    pub(crate) fn content(&mut self, len: usize) -> std::io::Result<Vec<u8>> {
        let mut content = vec![0; len];
        self.reader.read_exact(&mut content)?;
        Ok(content)
    }

    /// Whether the server has closed the connection, or closes it in time.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 1]), Ok(0))
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
        }
        Ok(line.trim_end().to_owned())
    }
}

/// One request on a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str) -> std::io::Result<Answer> {
    Client::connect(address)?.get(path)
}

/// The time limit of any step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);
