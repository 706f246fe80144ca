//! TLS to clients: `ssl_…`.

/// Certificates that are kept.
mod certificate_cache;
/// Sets of ciphers.
pub(crate) mod ciphers;
/// What clients show of themselves.
mod clients;
/// OpenSSL's own settings.
pub(crate) mod conf_command;
/// Files.
mod file;
/// Groups for the exchange of keys.
mod groups;
/// Responders of OCSP.
mod ocsp;
/// Versions.
mod protocols;
/// How sessions are resumed.
mod sessions;

use crate::Text;
use crate::config::settings::group;
use crate::directive::{
    Apply, Arity, Contexts, Directive, HTTP_SERVER, STREAM_LEVELS, Value, many, once,
};
use std::time::Duration;

pub use certificate_cache::CertificateCache;
pub use clients::VerifyClient;
pub use file::{EvaluatedName, TlsFile};
pub(crate) use file::{passwords, tls_file};
pub use ocsp::ClientOcsp;
pub(crate) use protocols::protocols;
pub use protocols::{TlsBounds, TlsProtocols};
pub use sessions::SessionZone;

group! {
    /// TLS to clients. The server is chosen by the name in the ClientHello, before any request.
    TlsSettings {
        /// `ssl_certificate`.
        certificates: Vec<TlsFile> = Vec::new(),
        /// `ssl_certificate_key`, one for each certificate.
        keys: Vec<TlsFile> = Vec::new(),
        /// `ssl_certificate_cache`: for names with variables.
        certificate_cache: Option<CertificateCache> = None,
        /// The lines of `ssl_password_file`.
        passwords: Vec<Text> = Vec::new(),
        /// `ssl_protocols`.
        protocols: TlsProtocols = TlsProtocols::default(),
        /// `ssl_conf_command MinProtocol` and `MaxProtocol`.
        bounds: TlsBounds = TlsBounds::default(),
        /// `ssl_ciphers`: those of TLS 1.2 in OpenSSL's words, the best first; `None`: all that there are.
        ciphers: Option<Vec<&'static str>> = None,
        /// `ssl_conf_command Ciphersuites`: the same for TLS 1.3.
        ciphers_13: Option<Vec<&'static str>> = None,
        /// `ssl_ecdh_curve`; `None`: all that there are.
        groups: Option<Vec<&'static str>> = None,
        /// `ssl_prefer_server_ciphers`.
        prefer_server_ciphers: bool = false,
        /// `ssl_session_tickets`.
        session_tickets: bool = true,
        /// `ssl_session_ticket_key`.
        session_ticket_keys: Vec<TlsFile> = Vec::new(),
        /// `ssl_session_ticket_secret`.
        session_ticket_secret: Option<Text> = None,
        /// `ssl_session_cache`.
        session_zone: Option<SessionZone> = None,
        /// `ssl_session_timeout`.
        session_timeout: Duration = Duration::from_secs(300),
        /// `ssl_early_data`.
        early_data: bool = false,
        /// `ssl_buffer_size`: bytes of plaintext in a record, at most.
        buffer_size: u64 = 16 << 10,
        /// `ssl_key_log`: a path.
        key_log: Option<Text> = None,
        /// `ssl_reject_handshake`.
        rejects_handshakes: bool = false,
        /// `ssl_stapling`.
        stapling: bool = false,
        /// `ssl_stapling_responder`, in the place of the one that a certificate names.
        stapling_responder: Option<String> = None,
        /// `ssl_stapling_verify`.
        stapling_verify: bool = false,
        /// `ssl_ocsp`.
        ocsp: ClientOcsp = ClientOcsp::Off,
        /// `ssl_ocsp_responder`, in the place of those that certificates name.
        ocsp_responder: Option<String> = None,
        /// `ssl_ocsp_cache`.
        ocsp_zone: Option<SessionZone> = None,
        /// `ssl_stapling_file`.
        staple: Option<TlsFile> = None,
        /// `ssl_certificate_compression`.
        compresses_certificates: bool = false,
        /// `ssl_verify_client`.
        verify_client: VerifyClient = VerifyClient::Off,
        /// `ssl_client_certificate`: trusted, and told to clients.
        client_authorities: Option<TlsFile> = None,
        /// `ssl_trusted_certificate`: trusted.
        trusted: Option<TlsFile> = None,
        /// `ssl_crl`.
        revocation_lists: Option<TlsFile> = None,
        /// `ssl_verify_depth`.
        verify_depth: u64 = 1,
    }
}

/// Servers of http and of stream.
const LEVELS: Contexts = HTTP_SERVER.and(STREAM_LEVELS);

/// Not there, and without it a connection is as safe.
const fn later(name: &'static str, reason: &'static str) -> Directive {
    Directive {
        name,
        contexts: LEVELS,
        arity: Arity::AtLeast(1),
        default: None,
        doc: "Of TLS.",
        repeats: true,
        apply: Apply::WithoutEffect(Value::Text, reason),
        unread: None,
    }
}

macro_rules! file {
    ($name:literal, $field:ident, $what:literal, $doc:literal) => {
        once(
            $name,
            LEVELS,
            Arity::Exactly(1),
            "",
            Apply::With(|resolver, statement| {
                let file = tls_file(resolver, statement, $what)?;
                resolver.level.settings.tls.$field = Some(Some(file));
                Ok(())
            }),
            $doc,
        )
    };
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "ssl_certificate",
        LEVELS,
        Arity::Exactly(1),
        Apply::With(|resolver, statement| {
            let file = file::certificate_file(resolver, statement, "certificate")?;
            let files = &mut resolver.level.settings.tls.certificates;
            files.get_or_insert_default().push(file);
            Ok(())
        }),
        "The server's certificate and those that lead from it to a root, in PEM; may be repeated for other kinds of keys, and may have variables.",
    ),
    many(
        "ssl_certificate_key",
        LEVELS,
        Arity::Exactly(1),
        Apply::With(|resolver, statement| {
            let file = file::certificate_file(resolver, statement, "certificate key")?;
            let files = &mut resolver.level.settings.tls.keys;
            files.get_or_insert_default().push(file);
            Ok(())
        }),
        "The private key of the certificate, in PEM; may have variables.",
    ),
    once(
        "ssl_protocols",
        LEVELS,
        Arity::AtLeast(1),
        "TLSv1.2 TLSv1.3",
        Apply::With(|resolver, statement| {
            let found = protocols(resolver, statement)?;
            resolver.level.settings.tls.protocols = Some(found);
            Ok(())
        }),
        "Versions of TLS.",
    ),
    once(
        "ssl_prefer_server_ciphers",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.prefer_server_ciphers),
        "The server's order of ciphers counts, not the client's.",
    ),
    once(
        "ssl_session_tickets",
        LEVELS,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.tls.session_tickets),
        "Sessions are resumed by tickets that clients keep.",
    ),
    once(
        "ssl_ciphers",
        LEVELS,
        Arity::Exactly(1),
        "HIGH:!aNULL:!MD5",
        Apply::With(|resolver, statement| {
            let found = ciphers::ciphers(resolver, statement)?;
            resolver.level.settings.tls.ciphers = Some(Some(found));
            Ok(())
        }),
        "Ciphers of TLS 1.2, in OpenSSL's words.",
    ),
    once(
        "ssl_ecdh_curve",
        LEVELS,
        Arity::Exactly(1),
        "auto",
        Apply::With(|resolver, statement| {
            let found = groups::groups(resolver, statement)?;
            resolver.level.settings.tls.groups = Some(found);
            Ok(())
        }),
        "Groups for the exchange of keys; of those the client chooses.",
    ),
    many(
        "ssl_conf_command",
        LEVELS,
        Arity::Exactly(2),
        Apply::With(conf_command::apply),
        "OpenSSL's own settings: Ciphersuites, Groups, MinProtocol, MaxProtocol, Options.",
    ),
    once(
        "ssl_password_file",
        LEVELS,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            let found = passwords(resolver, statement)?;
            resolver.level.settings.tls.passwords = Some(found);
            Ok(())
        }),
        "Passwords of encrypted keys, one a line, tried in turn.",
    ),
    once(
        "ssl_session_cache",
        LEVELS,
        Arity::Between(1, 2),
        "none",
        Apply::With(|resolver, statement| {
            let zone = sessions::cache(resolver, statement)?;
            resolver.level.settings.tls.session_zone = Some(zone);
            Ok(())
        }),
        "A zone of sessions for clients without tickets, shared by all workers; builtin keeps nothing.",
    ),
    once(
        "ssl_session_timeout",
        LEVELS,
        Arity::Exactly(1),
        "5m",
        Apply::Seconds(|s| &mut s.tls.session_timeout),
        "For how long a session may be resumed.",
    ),
    many(
        "ssl_session_ticket_key",
        LEVELS,
        Arity::Exactly(1),
        Apply::With(|resolver, statement| {
            let key = sessions::ticket_key(resolver, statement)?;
            let keys = &mut resolver.level.settings.tls.session_ticket_keys;
            keys.get_or_insert_default().push(key);
            Ok(())
        }),
        "A file of 48 or 80 random bytes for tickets, which other servers have too: the first one seals, all open.",
    ),
    once(
        "ssl_session_ticket_secret",
        LEVELS,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            let word = statement.arg(1);
            if word.bytes.is_empty() {
                return Err(resolver.refused_at(statement, word, "empty secret"));
            }
            let secret = Text::from(word.bytes.as_slice());
            resolver.level.settings.tls.session_ticket_secret = Some(Some(secret));
            Ok(())
        }),
        "What keys of tickets are made from, which change with time: servers with the same secret and ssl_session_timeout open each other's tickets.",
    ),
    once(
        "ssl_stapling",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.stapling),
        "Answers of OCSP are sent with the certificate: those of ssl_stapling_file, or of the responder that the certificate names.",
    ),
    once(
        "ssl_stapling_file",
        LEVELS,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            let file = tls_file(resolver, statement, "OCSP response")?;
            resolver.level.settings.tls.staple = Some(Some(file));
            Ok(())
        }),
        "The answer of OCSP (DER) that is sent with the certificate.",
    ),
    once(
        "ssl_early_data",
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.early_data),
        "Requests may come with a resumed handshake of TLS 1.3; they can be repeated by others: see $ssl_early_data.",
    ),
    once(
        "ssl_buffer_size",
        HTTP_SERVER,
        Arity::Exactly(1),
        "16k",
        Apply::Size(|s| &mut s.tls.buffer_size),
        "Plaintext in a record, at most; the first ones are small whatever it is.",
    ),
    once(
        "ssl_key_log",
        LEVELS,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            resolver.level.settings.tls.key_log = Some(Some(key_log(resolver, statement)));
            Ok(())
        }),
        "A file for the secrets of connections, for Wireshark: its reader can read all that passes.",
    ),
    once(
        "ssl_reject_handshake",
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.rejects_handshakes),
        "Handshakes for the server's names are refused: for a default server without a certificate.",
    ),
    once(
        "ssl_certificate_compression",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.compresses_certificates),
        "Certificates are sent compressed to clients that can take it (zlib, brotli).",
    ),
    once(
        "ssl_verify_client",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::With(|resolver, statement| {
            let verify = clients::verify(resolver, statement)?;
            resolver.level.settings.tls.verify_client = Some(verify);
            Ok(())
        }),
        "Clients need a certificate (on), or may have one (optional; optional_no_ca: of any issuer).",
    ),
    file!(
        "ssl_client_certificate",
        client_authorities,
        "certificate",
        "Certificates of those that certify clients, in PEM; clients are told their names."
    ),
    file!(
        "ssl_trusted_certificate",
        trusted,
        "certificate",
        "Certificates of those that certify clients, in PEM; clients are not told."
    ),
    file!(
        "ssl_crl",
        revocation_lists,
        "CRL",
        "Lists of certificates that are revoked, in PEM, for every certificate of a chain."
    ),
    once(
        "ssl_verify_depth",
        LEVELS,
        Arity::Exactly(1),
        "1",
        Apply::Number(|s| &mut s.tls.verify_depth),
        "Certificates between a client's and a trusted one, at most.",
    ),
    once(
        "ssl_certificate_cache",
        LEVELS,
        Arity::Between(1, 3),
        "off",
        Apply::With(|resolver, statement| {
            let cache = certificate_cache::certificate_cache(resolver, statement)?;
            resolver.level.settings.tls.certificate_cache = Some(cache);
            Ok(())
        }),
        "Certificates whose names have variables stay loaded: max= of them, inactive= for so long unused, valid= until their files are looked at again.",
    ),
    later(
        "ssl_dhparam",
        "there are no ciphers with finite-field Diffie-Hellman",
    ),
    later("ssl_ech_file", "encrypted ClientHellos are not there"),
    once(
        "ssl_stapling_responder",
        LEVELS,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            let url = ocsp::responder(resolver, statement)?;
            resolver.level.settings.tls.stapling_responder = Some(Some(url));
            Ok(())
        }),
        "The responder of OCSP, in the place of the one that the certificate names.",
    ),
    once(
        "ssl_stapling_verify",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.stapling_verify),
        "Answers of OCSP are only sent where the certificate leads to one of ssl_trusted_certificate.",
    ),
    once(
        "ssl_ocsp",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::With(|resolver, statement| {
            let ocsp = ocsp::client(resolver, statement)?;
            resolver.level.settings.tls.ocsp = Some(ocsp);
            Ok(())
        }),
        "The responder of a client's certificate (leaf), or of each in its chain (on), is asked whether it is revoked.",
    ),
    once(
        "ssl_ocsp_responder",
        LEVELS,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            let url = ocsp::responder(resolver, statement)?;
            resolver.level.settings.tls.ocsp_responder = Some(Some(url));
            Ok(())
        }),
        "The responder of OCSP, in the place of those that the certificates of clients name.",
    ),
    once(
        "ssl_ocsp_cache",
        LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::With(|resolver, statement| {
            let zone = ocsp::cache(resolver, statement)?;
            resolver.level.settings.tls.ocsp_zone = Some(zone);
            Ok(())
        }),
        "A zone of answers about the certificates of clients, shared by all workers.",
    ),
];

/// The path of a file for secrets.
pub(crate) fn key_log(
    resolver: &crate::resolve::Resolver<'_>,
    statement: &crate::lexer::Statement,
) -> Text {
    resolver.full_name(&statement.arg(1).bytes)
}
