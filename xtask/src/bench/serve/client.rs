//! A client that asks one thing after another, for what wrk does not tell: the answer itself, an
//! exact number of requests, and connections that stay idle.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::case::Case;
use crate::bench::answer::{Answer, invalid};
use crate::bench::content::target;

/// A server under valgrind takes seconds for what takes microseconds otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One connection to the server.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    request: String,
}

impl Client {
    pub(super) fn connect(port: u16, case: &Case) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut request = format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", target());
        for line in case.field_lines() {
            request += &format!("{line}\r\n");
        }
        request += "\r\n";
        Ok(Self { stream, request })
    }

    pub(super) fn ask(&mut self) -> io::Result<Answer> {
        self.stream.write_all(self.request.as_bytes())?;
        Answer::read(&mut self.stream)
    }

    /// Asks `count` times, on a new connection when the server closes the last one.
    pub(super) fn ask_many(port: u16, case: &Case, count: u32) -> io::Result<()> {
        let mut connection = None;
        for _ in 0..count {
            let mut client = match connection.take() {
                Some(client) => client,
                None => Self::connect(port, case)?,
            };
            let answer = client.ask()?;
            if answer.status != 200 {
                return Err(invalid(&format!("status {}", answer.status)));
            }
            if !answer.closes {
                connection = Some(client);
            }
        }
        Ok(())
    }
}
