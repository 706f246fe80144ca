//! What clients do that they must not, or may do, and what the RFCs ask of a server then.

mod established;
mod first_flight;
mod last_flight;
mod offers;

use super::hello::Hello;
use super::peer::Flight;
use mill_tls::protection::Version;

/// What a client does.
pub(super) enum Act {
    /// It sends this at first.
    Bytes(Vec<u8>),
    /// The same; what follows, once the server has said that.
    Then(Vec<u8>, &'static str, Vec<u8>),
    /// It sends another last flight in its handshake.
    Flight(Version, fn(Flight) -> Vec<u8>),
    /// A handshake with the client's certificate of this name, then a request.
    Certificate(&'static str),
    /// With a certificate, and another last flight.
    CertificateFlight(&'static str, fn(Flight) -> Vec<u8>),
    /// Behind the handshake it sends these contents, each sealed in a record of this type, then a request.
    Sealed(Version, Vec<(u8, Vec<u8>)>),
    /// Behind the handshake it sends bytes in clear, then a request.
    Clear(Version, Vec<u8>),
    /// Behind the handshake it sends a request, with a bit of its record changed.
    Damaged(Version),
}

/// The server that is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Usual,
    /// It refuses names other than `a.example`.
    Named,
    /// It wants a certificate of the client.
    Verifying,
    /// TLS 1.3 alone.
    Newer,
    /// TLS 1.2 alone.
    Older,
}

pub(super) struct Case {
    pub(super) at: At,
    pub(super) name: &'static str,
    /// Where the RFCs say so.
    pub(super) clause: &'static str,
    /// Outcomes that the clause allows, as beginnings.
    pub(super) asked: &'static [&'static str],
    pub(super) act: Act,
}

/// The clause leaves it open.
const OPEN: &[&str] = &[""];
const GOES_ON: &[&str] = &["ServerHello", "answer 200"];
const UNEXPECTED: &[&str] = &["fatal unexpected_message, closed"];
const ILLEGAL: &[&str] = &["fatal illegal_parameter, closed"];
const UNDECODABLE: &[&str] = &["fatal decode_error, closed"];
const FAILURE: &[&str] = &["fatal handshake_failure, closed"];
const VERSION: &[&str] = &["fatal protocol_version, closed"];
const MISSING: &[&str] = &["fatal missing_extension, closed"];
const DECRYPT: &[&str] = &["fatal decrypt_error, closed"];
const BAD_MAC: &[&str] = &["fatal bad_record_mac, closed"];
const OVERFLOW: &[&str] = &["fatal record_overflow, closed"];
const CLOSED: &[&str] = &["closed", "ServerHello, closed"];
/// Behind the ServerHello an alert is sealed.
const SEALED_OR_FAILURE: &[&str] = &["fatal handshake_failure, closed", "ServerHello, closed"];
const REFUSED: &[&str] = &["fatal ", "closed"];

pub(super) fn cases() -> Vec<Case> {
    let mut all = first_flight::first_bytes();
    all.extend(first_flight::records());
    all.extend(offers::versions_and_names());
    all.extend(offers::offers());
    all.extend(offers::retries());
    all.extend(last_flight::of_flights());
    all.extend(last_flight::of_certificates());
    all.extend(established::behind_tls13());
    all.extend(established::behind_tls12());
    all
}

fn case(
    at: At,
    name: &'static str,
    clause: &'static str,
    asked: &'static [&'static str],
    act: Act,
) -> Case {
    Case {
        at,
        name,
        clause,
        asked,
        act,
    }
}

/// To the usual server, as the first bytes.
fn bytes(
    name: &'static str,
    clause: &'static str,
    asked: &'static [&'static str],
    bytes: Vec<u8>,
) -> Case {
    case(At::Usual, name, clause, asked, Act::Bytes(bytes))
}

/// The same, a ClientHello.
fn hello(
    name: &'static str,
    clause: &'static str,
    asked: &'static [&'static str],
    hello: &Hello,
) -> Case {
    bytes(name, clause, asked, hello.record())
}

const UNDECODABLE_OR_ILLEGAL: &[&str] = &[
    "fatal decode_error, closed",
    "fatal illegal_parameter, closed",
];

const UNEXPECTED_OR_UNDECODABLE: &[&str] = &[
    "fatal unexpected_message, closed",
    "fatal decode_error, closed",
];
