//! Why a request was not answered.

use mill_http::h1::response::ResponseFault;
use mill_runtime::stream::StreamError;
use thiserror::Error;

/// One failed request, by where it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The connection could not be established.
    #[error("connect failed: {}", reason(*.0))]
    Connect(StreamError),
    /// Not established in time.
    #[error("connect timed out")]
    ConnectTimeout,
    /// No descriptor was left for one more connection.
    #[error("no descriptor left (see ulimit -n)")]
    NoDescriptor,
    /// No port was left on the source address.
    #[error(
        "no port left on the source address (see --source, ports= of --stack, and net.ipv4.ip_local_port_range), or it is not one of this machine"
    )]
    NoPort,
    /// The handshake of TLS failed.
    #[error("the TLS handshake failed")]
    Handshake,
    /// The stream failed after the connection was established.
    #[error("connection lost: {}", reason(*.0))]
    Stream(StreamError),
    /// The server closed the connection before the response was complete.
    #[error("the server closed the connection before its response ended")]
    EndedEarly,
    /// The received bytes are not HTTP.
    #[error("the response is not HTTP/1: {0}")]
    Garbage(ResponseFault),
    /// The content differs from the expected one, from this byte on (`Plan::expected`).
    #[error("the content is not the expected one from byte {0} on")]
    WrongContent(u64),
    /// Not answered in time.
    #[error("no answer in time")]
    Timeout,
}

/// The kinds that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Connect,
    ConnectTimeout,
    NoDescriptor,
    NoPort,
    Handshake,
    Reset,
    EndedEarly,
    Garbage,
    WrongContent,
    Timeout,
}

impl FailureKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Connect,
        Self::ConnectTimeout,
        Self::NoDescriptor,
        Self::NoPort,
        Self::Handshake,
        Self::Reset,
        Self::EndedEarly,
        Self::Garbage,
        Self::WrongContent,
        Self::Timeout,
    ];

    /// The name in reports and in the JSON schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::NoDescriptor => "no_descriptor",
            Self::NoPort => "no_port",
            Self::Handshake => "tls_handshake",
            Self::Reset => "reset",
            Self::EndedEarly => "ended_early",
            Self::Garbage => "garbage",
            Self::WrongContent => "wrong_content",
            Self::Timeout => "timeout",
        }
    }

    /// Whether the request failed before there was a connection.
    pub const fn is_connecting(self) -> bool {
        matches!(
            self,
            Self::Connect
                | Self::ConnectTimeout
                | Self::NoDescriptor
                | Self::NoPort
                | Self::Handshake
        )
    }
}

impl Failure {
    /// Whether a connect failed on this side: no descriptor, no port, no route.
    pub(crate) const fn is_local(self) -> bool {
        matches!(
            self,
            Self::NoDescriptor | Self::NoPort | Self::Connect(StreamError::Unreachable)
        )
    }

    /// The failure of a failed connect.
    pub(crate) const fn of_connect(error: StreamError) -> Self {
        match error {
            StreamError::Other(EMFILE | ENFILE) => Self::NoDescriptor,
            StreamError::Other(EADDRNOTAVAIL | EADDRINUSE) => Self::NoPort,
            error => Self::Connect(error),
        }
    }

    pub const fn kind(self) -> FailureKind {
        match self {
            Self::Connect(_) => FailureKind::Connect,
            Self::ConnectTimeout => FailureKind::ConnectTimeout,
            Self::NoDescriptor => FailureKind::NoDescriptor,
            Self::NoPort => FailureKind::NoPort,
            Self::Handshake => FailureKind::Handshake,
            Self::Stream(_) => FailureKind::Reset,
            Self::EndedEarly => FailureKind::EndedEarly,
            Self::Garbage(_) => FailureKind::Garbage,
            Self::WrongContent(_) => FailureKind::WrongContent,
            Self::Timeout => FailureKind::Timeout,
        }
    }
}

fn reason(error: StreamError) -> String {
    match error {
        StreamError::Reset => String::from("reset by the peer"),
        StreamError::Refused => String::from("refused"),
        StreamError::Unreachable => String::from("the network gave up"),
        StreamError::Unfinished => String::from("ended without close_notify"),
        StreamError::Tls => String::from("TLS failed"),
        StreamError::Truncated => String::from("cut short"),
        StreamError::Other(code) => std::io::Error::from_raw_os_error(code).to_string(),
    }
}

/// Linux's error numbers (asm-generic/errno.h).
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EADDRINUSE: i32 = 98;
const EADDRNOTAVAIL: i32 = 99;
