//! Why an answer can't be read, in nginx's words where it has them.

use mill_http::h1::response::ResponseFault;
use std::fmt;

/// After any of them the rest of the connection is undefined: close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastcgiFault {
    /// Records of another version than 1.
    Version(u8),
    /// A record of a type that a server does not send.
    RecordType(u8),
    /// The request has the id 1, in two bytes.
    RequestIdHigh(u8),
    RequestIdLow(u8),
    /// A record, by its type, that may not come now.
    UnexpectedRecord(u8),
    /// The end of the request is shorter than it is defined, FastCGI 1.0 5.5.
    ShortEndRequest(u16),
    /// The server did not take the request: its `protocolStatus`, 5.5.
    Rejected(u8),
    /// Standard output ended before the head, or before the content that the head announces.
    StdoutClosed,
    /// The same of the request.
    RequestClosed,
    /// The head in standard output, or an end of the connection that is none of the answer's.
    Response(ResponseFault),
}

impl fmt::Display for FastcgiFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                out,
                "upstream sent unsupported FastCGI protocol version: {version}"
            ),
            Self::RecordType(kind) => {
                write!(out, "upstream sent invalid FastCGI record type: {kind}")
            }
            Self::RequestIdHigh(byte) => write!(
                out,
                "upstream sent unexpected FastCGI request id high byte: {byte}"
            ),
            Self::RequestIdLow(byte) => write!(
                out,
                "upstream sent unexpected FastCGI request id low byte: {byte}"
            ),
            Self::UnexpectedRecord(kind) => {
                write!(out, "upstream sent unexpected FastCGI record: {kind}")
            }
            Self::ShortEndRequest(len) => {
                write!(out, "upstream sent FastCGI end request of {len} bytes")
            }
            Self::Rejected(status) => write!(
                out,
                "upstream rejected FastCGI request with protocol status {status}"
            ),
            Self::StdoutClosed => out.write_str("upstream prematurely closed FastCGI stdout"),
            Self::RequestClosed => out.write_str("upstream prematurely closed FastCGI request"),
            Self::Response(fault) => write!(out, "upstream sent invalid header: {fault}"),
        }
    }
}

impl std::error::Error for FastcgiFault {}
