//! What a handshake has agreed on.

use rustls::pki_types::CertificateDer;

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
}

/// The name that OpenSSL has for a suite of rustls.
pub(crate) fn cipher_name(suite: rustls::CipherSuite) -> &'static str {
    use rustls::CipherSuite as Suite;
    match suite {
        Suite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        Suite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        Suite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => "",
    }
}
