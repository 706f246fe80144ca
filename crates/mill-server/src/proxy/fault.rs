//! Why a try at an upstream server failed: what the log says, what the client gets, and whether another server may be
//! tried.

use crate::exchange::ContentError;
use crate::log::{Errno, Text};
use mill_config::config::LogLevel;
use mill_config::config::settings::NextUpstream;
use mill_http::h1::response::ResponseFault;
use mill_http::status::Status;
use mill_runtime::stream::StreamError;
use mill_upstream::fastcgi::FastcgiFault;
use std::fmt;

/// A failed try, or content of an answer that ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Which step took longer than its timeout.
    TimedOut(Step),
    /// The system's error in a step.
    Failed(Step, StreamError),
    /// The system refused to begin a connection.
    NotConnected(StreamError),
    /// The server ended the connection before its answer was whole.
    ClosedEarly(Step),
    /// The head of the answer is not one.
    InvalidHead(ResponseFault),
    /// The content of the answer is framed wrongly.
    InvalidContent(ResponseFault),
    /// 101 where the client has not asked for another protocol.
    InvalidSwitch,
    /// The head is longer than `proxy_buffer_size`.
    HeadTooBig,
    /// Interim answers without end.
    TooManyInterims,
    /// Records of FastCGI that are not an answer.
    Fastcgi(FastcgiFault, Step),
    /// The head of the answer is not one, and the log says why.
    Logged,
    /// The request cannot be said in the server's protocol, and the log says why.
    NotSpelled,
    /// The local address of the connection cannot be had, and the log says why.
    NotBound,
    /// The handshake of TLS failed, or the server's certificate is not valid, and the log says why.
    NotSecured,
    /// The server has said that it did not begin with the request (GOAWAY or REFUSED_STREAM, RFC 9113 8.7).
    NotBegun,
    /// The group has no server that may be tried.
    NoPeer,
    /// An answer with a status that `proxy_next_upstream` names.
    Status(u16),
    /// The client closed its connection.
    ClientGone(Step),
    /// The request's content did not arrive, or is malformed.
    Content(ContentError),
}

/// The steps of a try, in the words of nginx's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Connecting,
    Sending,
    ReadingHead,
    Reading,
    ReadingUpgraded,
}

impl Step {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Connecting => "connecting to upstream",
            Self::Sending => "sending request to upstream",
            Self::ReadingHead => "reading response header from upstream",
            Self::Reading => "reading upstream",
            Self::ReadingUpgraded => "proxying upgraded connection",
        }
    }

    const fn call(self) -> &'static str {
        match self {
            Self::Connecting => "connect()",
            Self::Sending => "send()",
            Self::ReadingHead | Self::Reading | Self::ReadingUpgraded => "recv()",
        }
    }
}

impl Fault {
    /// What the client gets where no other server answers.
    pub(crate) const fn status(self) -> Status {
        match self {
            Self::TimedOut(_) => Status::GATEWAY_TIMEOUT,
            Self::NotSpelled | Self::NotBound => Status::INTERNAL_SERVER_ERROR,
            Self::Status(status) => Status(status),
            Self::ClientGone(_) => CLIENT_CLOSED_REQUEST,
            _ => Status::BAD_GATEWAY,
        }
    }

    /// What `proxy_next_upstream` calls it; `None` where no other server is to be tried.
    pub(crate) const fn kind(self) -> Option<NextUpstream> {
        Some(match self {
            Self::TimedOut(_) => NextUpstream::TIMEOUT,
            Self::Failed(..)
            | Self::NotConnected(_)
            | Self::NotSecured
            | Self::NotBegun
            | Self::ClosedEarly(_) => NextUpstream::ERROR,
            Self::InvalidHead(_)
            | Self::InvalidSwitch
            | Self::HeadTooBig
            | Self::TooManyInterims
            | Self::Logged
            | Self::Fastcgi(..) => NextUpstream::INVALID_HEADER,
            Self::Status(status) => NextUpstream::status(status),
            Self::NoPeer
            | Self::NotSpelled
            | Self::NotBound
            | Self::InvalidContent(_)
            | Self::ClientGone(_)
            | Self::Content(_) => return None,
        })
    }

    /// The step in which a server failed, in the words of nginx's log.
    pub(crate) const fn during(self) -> &'static str {
        match self {
            Self::TimedOut(step)
            | Self::Failed(step, _)
            | Self::ClosedEarly(step)
            | Self::Fastcgi(_, step) => step.words(),
            Self::NotConnected(_) => Step::Connecting.words(),
            Self::NotSecured => HANDSHAKING,
            Self::InvalidContent(_) => Step::Reading.words(),
            _ => Step::ReadingHead.words(),
        }
    }

    pub(crate) const fn level(self) -> LogLevel {
        match self {
            Self::ClientGone(_) | Self::NotBegun => LogLevel::Info,
            Self::Failed(_, StreamError::Other(_)) | Self::NotConnected(StreamError::Other(_)) => {
                LogLevel::Crit
            }
            _ => LogLevel::Error,
        }
    }

    /// The connection, or the way to the server, has failed: another kept connection, or a new one, may do.
    pub(crate) const fn is_of_connection(self) -> bool {
        matches!(self, Self::Failed(..) | Self::ClosedEarly(_))
    }

    /// The text for the log. A connection that could not even begin is the only fault whose text names the server.
    pub(crate) const fn of(self, server: &[u8]) -> FaultAt<'_> {
        FaultAt {
            fault: self,
            server,
        }
    }
}

/// A fault with the server's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultAt<'a> {
    fault: Fault,
    server: &'a [u8],
}

impl fmt::Display for FaultAt<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::NotConnected(error) => write!(
                out,
                "connect() to {} failed ({}) while {}",
                Text(self.server),
                Errno(number(error)),
                Step::Connecting.words()
            ),
            fault => write!(out, "{fault}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(step) => write!(
                out,
                "upstream timed out (110: Connection timed out) while {}",
                step.words()
            ),
            Self::Failed(step, error) => write!(
                out,
                "{} failed ({}) while {}",
                step.call(),
                Errno(number(*error)),
                step.words()
            ),
            Self::NotConnected(error) => {
                write!(out, "{}", Self::Failed(Step::Connecting, *error))
            }
            Self::ClosedEarly(step) => write!(
                out,
                "upstream prematurely closed connection while {}",
                step.words()
            ),
            Self::InvalidHead(fault) => write!(
                out,
                "upstream sent invalid header: {fault} while {}",
                Step::ReadingHead.words()
            ),
            Self::InvalidContent(ResponseFault::ChunkedContent) => write!(
                out,
                "upstream sent invalid chunked response while {}",
                Step::Reading.words()
            ),
            Self::InvalidContent(fault) => write!(
                out,
                "upstream sent invalid response: {fault} while {}",
                Step::Reading.words()
            ),
            Self::NotBegun => write!(
                out,
                "upstream did not begin with the request while {}",
                Step::Sending.words()
            ),
            Self::InvalidSwitch => write!(
                out,
                "upstream switched protocols without being asked while {}",
                Step::ReadingHead.words()
            ),
            Self::HeadTooBig => write!(
                out,
                "upstream sent too big header while {}",
                Step::ReadingHead.words()
            ),
            Self::TooManyInterims => write!(
                out,
                "upstream sent too many interim responses while {}",
                Step::ReadingHead.words()
            ),
            Self::NoPeer => out.write_str("no live upstreams while connecting to upstream"),
            Self::Status(status) => write!(out, "upstream answered with status {status}"),
            Self::ClientGone(step) => write!(
                out,
                "epoll_wait() reported that client prematurely closed connection, so upstream connection is closed too while {}",
                step.words()
            ),
            Self::Fastcgi(fault, step) => write!(out, "{fault} while {}", step.words()),
            Self::Logged => out.write_str("upstream sent invalid header"),
            Self::NotSecured => out.write_str("the handshake with upstream failed"),
            Self::NotSpelled => out.write_str("the request cannot be passed on"),
            Self::NotBound => out.write_str("the local address cannot be had"),
            Self::Content(_) => out.write_str("the request's content has not arrived"),
        }
    }
}

/// Linux's number of the error, which the log shows.
pub(crate) const fn number(error: StreamError) -> i32 {
    match error {
        StreamError::Reset
        | StreamError::Truncated
        | StreamError::Unfinished
        | StreamError::Tls => 104,
        StreamError::Refused => 111,
        StreamError::Unreachable => 113,
        StreamError::Other(number) => number,
    }
}

/// What nginx's log calls a handshake with a server.
pub(crate) const HANDSHAKING: &str = "SSL handshaking to upstream";

/// nginx's status for a client that closed its connection before its answer; it is only logged.
pub(in crate::proxy) const CLIENT_CLOSED_REQUEST: Status = Status(499);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_be_connected_to_at_all_is_named() {
        let fault = Fault::NotConnected(StreamError::Other(2));
        let text = fault.of(b"unix:/run/app.sock").to_string();
        let expected = "connect() to unix:/run/app.sock failed (2: No such file or directory) while connecting to upstream";
        assert_eq!(text, expected);
        assert_eq!(fault.level(), LogLevel::Crit);
        // A refusal that comes later is known by its `upstream: "…"`, as in nginx.
        let refused = Fault::Failed(Step::Connecting, StreamError::Refused);
        let expected = "connect() failed (111: Connection refused) while connecting to upstream";
        assert_eq!(refused.of(b"10.0.0.1:80").to_string(), expected);
    }
}
