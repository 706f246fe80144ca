//! What a handshake has agreed on.

use crate::client_check::Verified;
use crate::signature::Signatures;
use rustls::pki_types::CertificateDer;
use std::cell::Cell;

/// Whether a client's certificate, or one behind it, is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    Good,
    Revoked,
    /// An issuer does not know its certificate.
    Unknown,
    /// There is no answer that can be relied on.
    NoAnswer,
}

/// What became of early data (0-RTT, RFC 8446 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// There was none.
    #[default]
    None,
    Taken,
    /// The client has to send it again.
    Refused,
}

/// The facts of a connection under TLS, for variables, logs and the choice of the protocol above it.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// The server's name that the client has asked for, in lower case.
    pub server_name: Option<Box<str>>,
    /// The protocol above (ALPN, RFC 7301), if one was agreed on.
    pub alpn: Option<Box<[u8]>>,
    /// As OpenSSL spells it: `TLSv1.3`.
    pub protocol: &'static str,
    /// As OpenSSL spells it: `TLS_AES_256_GCM_SHA384`, or `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: &'static str,
    /// The session was resumed, so the handshake had no signature.
    pub is_resumed: bool,
    /// The peer's chain, its own certificate first; empty if it has sent none.
    pub peer_certificates: Vec<CertificateDer<'static>>,
    /// Whether the client's chain is valid.
    pub verified: Verified,
    /// Indices of those that lead from the client's own certificate to a trusted one.
    pub path: Box<[usize]>,
    /// What the issuers of these say, once they were asked (`ssl_ocsp`).
    pub revocation: Cell<Option<Revocation>>,
    /// The number of the group in which keys were exchanged; `None` where a session of TLS 1.2 was resumed.
    pub group: Option<u16>,
    /// How the signatures of the handshake were made.
    pub signatures: Signatures,
    /// The id of a session of TLS 1.2 (RFC 5246 7.4.1.2); empty where there is none.
    pub session_id: Box<[u8]>,
    /// Numbers of the suites that the client has offered.
    pub offered_ciphers: Box<[u16]>,
    /// Numbers of the groups that the client has offered.
    pub offered_groups: Box<[u16]>,
    /// The handshake is not over: what was read may be a copy that another sender repeats (RFC 8446 8).
    pub is_early: Cell<bool>,
    /// What became of early data, as a handshake knows that is over; [`TlsFacts::is_early`] tells a server before.
    pub early_data: EarlyData,
    /// Tickets that a client has got on this connection.
    pub tickets: Cell<u32>,
}
