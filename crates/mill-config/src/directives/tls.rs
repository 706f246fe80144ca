//! TLS to clients: `ssl_…`.

use crate::Text;
use crate::config::settings::group;
use crate::diagnostic::SourcePosition;
use crate::directive::{Apply, Arity, Directive, HTTP_SERVER, Value, many, once};
use crate::lexer::{Statement, Word};
use crate::resolve::unsupported::Feature;
use crate::resolve::{Applied, Resolver, join};

group! {
    /// TLS to clients. The server is chosen by the name in the ClientHello, before any request.
    TlsSettings {
        /// `ssl_certificate`.
        certificates: Vec<TlsFile> = Vec::new(),
        /// `ssl_certificate_key`, one for each certificate.
        keys: Vec<TlsFile> = Vec::new(),
        /// `ssl_protocols`.
        protocols: TlsProtocols = TlsProtocols::default(),
        /// `ssl_prefer_server_ciphers`.
        prefer_server_ciphers: bool = false,
        /// `ssl_session_tickets`.
        session_tickets: bool = true,
    }
}

/// A file in PEM and what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFile {
    /// As it was written: a path, or `data:` and the text itself.
    pub name: Text,
    /// Its content.
    pub pem: Text,
    /// Where the configuration names it.
    pub position: SourcePosition,
}

/// `ssl_protocols`, of those that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsProtocols {
    pub tls12: bool,
    pub tls13: bool,
}

impl Default for TlsProtocols {
    fn default() -> Self {
        Self {
            tls12: true,
            tls13: true,
        }
    }
}

/// Not there yet, and without it a connection is as safe.
const fn later(name: &'static str, reason: &'static str) -> Directive {
    Directive {
        name,
        contexts: HTTP_SERVER,
        arity: Arity::AtLeast(1),
        default: None,
        doc: "Of TLS.",
        repeats: true,
        apply: Apply::WithoutEffect(Value::Text, reason),
        unread: None,
    }
}

/// Not there yet, and a client could be let in that must not: refused.
const fn refused(name: &'static str) -> Directive {
    Directive {
        name,
        contexts: HTTP_SERVER,
        arity: Arity::AtLeast(1),
        default: None,
        doc: "Checks client certificates.",
        repeats: true,
        apply: Apply::NotYet("ngx_http_ssl_module"),
        unread: None,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "ssl_certificate",
        HTTP_SERVER,
        Arity::Exactly(1),
        Apply::With(|resolver, statement| {
            let file = tls_file(resolver, statement, "certificate")?;
            let files = &mut resolver.level.settings.tls.certificates;
            files.get_or_insert_default().push(file);
            Ok(())
        }),
        "The server's certificate and those that lead from it to a root, in PEM; may be repeated for other kinds of keys.",
    ),
    many(
        "ssl_certificate_key",
        HTTP_SERVER,
        Arity::Exactly(1),
        Apply::With(|resolver, statement| {
            let file = tls_file(resolver, statement, "certificate key")?;
            let files = &mut resolver.level.settings.tls.keys;
            files.get_or_insert_default().push(file);
            Ok(())
        }),
        "The private key of the certificate, in PEM.",
    ),
    once(
        "ssl_protocols",
        HTTP_SERVER,
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
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.tls.prefer_server_ciphers),
        "The server's order of ciphers counts, not the client's.",
    ),
    once(
        "ssl_session_tickets",
        HTTP_SERVER,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.tls.session_tickets),
        "Sessions are resumed by tickets that clients keep.",
    ),
    later("ssl_buffer_size", "records are small at first, then of 16k"),
    later(
        "ssl_certificate_cache",
        "certificates by variables are not there yet",
    ),
    later(
        "ssl_certificate_compression",
        "certificates are sent as they are",
    ),
    later(
        "ssl_ciphers",
        "all ciphers are taken that rustls has, each with forward secrecy",
    ),
    later("ssl_conf_command", "OpenSSL's commands do not apply"),
    later(
        "ssl_dhparam",
        "there are no ciphers with finite-field Diffie-Hellman",
    ),
    later(
        "ssl_early_data",
        "requests before the end of a handshake are not taken yet",
    ),
    later(
        "ssl_ecdh_curve",
        "X25519MLKEM768, X25519, P-256 and P-384 are taken",
    ),
    later("ssl_ech_file", "encrypted ClientHellos are not there"),
    later("ssl_password_file", "encrypted keys are not there yet"),
    later("ssl_session_cache", "sessions are resumed by tickets"),
    later(
        "ssl_session_ticket_key",
        "keys of tickets are made by the server and changed every six hours",
    ),
    later(
        "ssl_session_timeout",
        "tickets are taken for twelve hours at most",
    ),
    later("ssl_stapling", "answers of OCSP are not fetched yet"),
    later("ssl_stapling_file", "answers of OCSP are not sent yet"),
    later(
        "ssl_stapling_responder",
        "answers of OCSP are not fetched yet",
    ),
    later("ssl_stapling_verify", "answers of OCSP are not fetched yet"),
    later(
        "ssl_trusted_certificate",
        "answers of OCSP are not fetched yet",
    ),
    later(
        "ssl_verify_depth",
        "client certificates are not checked yet",
    ),
    later(
        "ssl_client_certificate",
        "client certificates are not checked yet",
    ),
    later("ssl_ocsp_cache", "client certificates are not checked yet"),
    later(
        "ssl_ocsp_responder",
        "client certificates are not checked yet",
    ),
    refused("ssl_crl"),
    refused("ssl_ocsp"),
    once(
        "ssl_verify_client",
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::With(verify_client),
        "Clients need a certificate; only off is there yet.",
    ),
];

pub(crate) fn tls_file(
    resolver: &Resolver<'_>,
    statement: &Statement,
    what: &str,
) -> Result<TlsFile, Box<crate::diagnostic::Diagnostic>> {
    let word = statement.arg(1);
    let failed = |reason: String| {
        let message = format!("cannot load {what} \"{}\": {reason}", word.display());
        resolver.emerg(statement, word, message)
    };
    let position = resolver.emerg(statement, word, "").place;
    if let Some(pem) = word.bytes.strip_prefix(b"data:") {
        return Ok(TlsFile {
            name: Text::from(&b"data:"[..]),
            pem: Text::from(pem),
            position,
        });
    }
    if word.bytes.contains(&b'$') {
        return Err(failed(String::from(
            "names with variables are not there yet; write a path",
        )));
    }
    // Certificates and keys are relative to the folder of the configuration file, as with nginx.
    let path = join(&resolver.options.conf_prefix(), &word.bytes);
    let pem = resolver.source.read_secret(&path).map_err(|error| {
        failed(format!(
            "BIO_new_file() failed ({}: {})",
            error.code, error.text
        ))
    })?;
    Ok(TlsFile {
        name: path,
        pem: Text::from(pem.as_slice()),
        position,
    })
}

/// The versions that `…_protocols` names.
pub(crate) fn protocols(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<TlsProtocols> {
    let mut found = TlsProtocols {
        tls12: false,
        tls13: false,
    };
    let mut old: Option<Word> = None;
    for word in statement.args() {
        match word.bytes.as_slice() {
            b"TLSv1.2" => found.tls12 = true,
            b"TLSv1.3" => found.tls13 = true,
            b"SSLv2" | b"SSLv3" | b"TLSv1" | b"TLSv1.1" => old = Some(word.clone()),
            _ => {
                let message = format!("invalid value \"{}\"", word.display());
                return Err(resolver.emerg(statement, word, message));
            }
        }
    }
    if let Some(word) = old {
        let message = format!("\"{}\" is not there", word.display());
        let help = "clients that have nothing newer are refused (RFC 8996)";
        if !found.tls12 && !found.tls13 {
            let mut refused = resolver.emerg(statement, &word, message);
            refused.help = Some(format!("{help}; write TLSv1.2 TLSv1.3"));
            return Err(refused);
        }
        resolver.notice(statement, &word, message, help);
    }
    Ok(found)
}

fn verify_client(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    if word.bytes != b"off" {
        let feature = Feature {
            label: format!("ssl_verify_client {}", word.display()),
            subject: String::from("checking client certificates is"),
            note: String::from("client certificates are not checked yet"),
            help: String::from("remove the directive, or leave this server to nginx"),
        };
        resolver.not_yet(feature, statement, word);
    }
    Ok(())
}
