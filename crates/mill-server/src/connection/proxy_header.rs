//! The header of the PROXY protocol, before the first request: `listen … proxy_protocol`.

use super::Connection;
use crate::log::Text;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_upstream::proxy_protocol::{self, ProxyProtocolFault};
use std::fmt;
use std::task::Poll;

/// Why there is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It did not come whole.
    Missing,
    Broken,
}

/// What has arrived.
enum Arrived {
    Header(Box<[u8]>),
    /// This many bytes of it.
    Part(usize),
    Broken(ProxyProtocolFault, Vec<u8>),
}

impl<E: Engine> Connection<E> {
    /// Whether the connection has to begin with a header which it has not sent yet.
    pub(super) fn awaits_proxy_header(&self) -> bool {
        self.facts.is_none() && self.listener.has_proxy_protocol(|| self.stream.local())
    }

    /// Reads the header within `client_header_timeout`; ready with an error when the connection is to be closed.
    pub(super) fn poll_proxy_header(&mut self) -> Poll<Result<(), Unread>> {
        let mut least = 1;
        loop {
            let finished = match self.stream.poll_readable(least) {
                Poll::Ready(Ok(readable)) if readable.unread == 0 => {
                    self.log_end();
                    return Poll::Ready(Err(Unread::Missing));
                }
                Poll::Ready(Ok(readable)) => readable.finished,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Unread::Missing)),
                Poll::Pending => return self.poll_idle_end().map(|_| Err(Unread::Missing)),
            };
            match self.stream.read(|bytes| look(bytes, finished)) {
                Arrived::Header(header) => {
                    self.facts = Some(self.new_facts(Some(header)));
                    return Poll::Ready(Ok(()));
                }
                Arrived::Part(len) => least = len + 1,
                Arrived::Broken(fault, bytes) => {
                    self.local.counters.borrow_mut().refused_proxy_header += 1;
                    self.log_broken(fault, &bytes);
                    return Poll::Ready(Err(Unread::Broken));
                }
            }
        }
    }

    fn log_broken(&self, fault: ProxyProtocolFault, bytes: &[u8]) {
        let log = |message: fmt::Arguments<'_>| {
            let listener = (!self.listener.is_gone()).then(|| self.listener.listener());
            self.local.log_connection_error(
                self.number,
                || self.stream.peer(),
                listener,
                LogLevel::Error,
                format_args!("{message} while reading PROXY protocol"),
            );
        };
        match fault {
            ProxyProtocolFault::Signature
            | ProxyProtocolFault::Line
            | ProxyProtocolFault::Address => log(format_args!("{fault}: \"{}\"", Text(bytes))),
            fault => log(format_args!("{fault}")),
        }
    }
}

/// The first return value is the number of bytes that are consumed.
fn look(bytes: &[u8], finished: bool) -> (usize, Arrived) {
    let fault = match proxy_protocol::parse(bytes) {
        Ok(Some(header)) => {
            let whole = bytes.get(..header.len).unwrap_or_default();
            return (header.len, Arrived::Header(whole.into()));
        }
        Ok(None) if !finished => return (0, Arrived::Part(bytes.len())),
        Ok(None) => ProxyProtocolFault::Line,
        Err(fault) => fault,
    };
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let line = line.unwrap_or_default().to_vec();
    (bytes.len(), Arrived::Broken(fault, line))
}
