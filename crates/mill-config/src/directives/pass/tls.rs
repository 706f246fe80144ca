//! TLS to servers: `proxy_ssl_…`.

use crate::config::Template;
use crate::config::settings::{TlsFile, TlsProtocols, group};
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, Value, once};
use crate::directives::tls::{protocols, tls_file};

group! {
    /// TLS to servers.
    PassTlsSettings {
        /// `…_ssl_protocols`.
        protocols: TlsProtocols = TlsProtocols::default(),
        /// `…_ssl_verify`: the server's certificate has to be valid for the name.
        verify: bool = false,
        /// `…_ssl_trusted_certificate`.
        trusted: Option<TlsFile> = None,
        /// `…_ssl_crl`.
        revocation_lists: Option<TlsFile> = None,
        /// `…_ssl_certificate`, our own.
        certificate: Option<TlsFile> = None,
        /// `…_ssl_certificate_key`.
        key: Option<TlsFile> = None,
        /// `…_ssl_name`; `None` is `$proxy_host`.
        name: Option<Template> = None,
        /// `…_ssl_server_name`: the name is in the ClientHello.
        sends_name: bool = false,
        /// `…_ssl_session_reuse`.
        resumes: bool = true,
    }
}

macro_rules! file {
    ($name:literal, $field:ident, $what:literal, $doc:literal) => {
        once(
            $name,
            ANY_LEVEL,
            Arity::Exactly(1),
            "",
            Apply::With(|resolver, statement| {
                let file = tls_file(resolver, statement, $what)?;
                resolver.level.settings.proxy_tls.$field = Some(Some(file));
                Ok(())
            }),
            $doc,
        )
    };
}

/// Not there yet, and without it a connection is as safe.
const fn later(name: &'static str, reason: &'static str) -> Directive {
    Directive {
        name,
        contexts: ANY_LEVEL,
        arity: Arity::AtLeast(1),
        default: None,
        doc: "Of TLS to servers.",
        repeats: true,
        apply: Apply::WithoutEffect(Value::Text, reason),
        unread: None,
    }
}

pub(crate) const PROXY: &[Directive] = &[
    once(
        "proxy_ssl_protocols",
        ANY_LEVEL,
        Arity::AtLeast(1),
        "TLSv1.2 TLSv1.3",
        Apply::With(|resolver, statement| {
            let found = protocols(resolver, statement)?;
            resolver.level.settings.proxy_tls.protocols = Some(found);
            Ok(())
        }),
        "Versions of TLS to servers.",
    ),
    once(
        "proxy_ssl_verify",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.proxy_tls.verify),
        "Servers need a certificate that leads to proxy_ssl_trusted_certificate and is valid for proxy_ssl_name.",
    ),
    file!(
        "proxy_ssl_trusted_certificate",
        trusted,
        "certificate",
        "The certificates of those that certify servers, in PEM."
    ),
    file!(
        "proxy_ssl_crl",
        revocation_lists,
        "CRL",
        "Lists of certificates that are revoked, in PEM, for every certificate of a chain."
    ),
    file!(
        "proxy_ssl_certificate",
        certificate,
        "certificate",
        "Our own certificate, for servers that ask for one, in PEM."
    ),
    file!(
        "proxy_ssl_certificate_key",
        key,
        "certificate key",
        "The private key of our own certificate, in PEM."
    ),
    once(
        "proxy_ssl_name",
        ANY_LEVEL,
        Arity::Exactly(1),
        "$proxy_host",
        Apply::With(|resolver, statement| {
            let word = statement.arg(1);
            let name = resolver.template(&word.bytes, statement, word)?;
            resolver.level.settings.proxy_tls.name = Some(Some(name));
            Ok(())
        }),
        "The server's name: what its certificate has to be valid for, and what it is told by proxy_ssl_server_name.",
    ),
    once(
        "proxy_ssl_server_name",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.proxy_tls.sends_name),
        "Servers are told the name that is wanted (SNI).",
    ),
    once(
        "proxy_ssl_session_reuse",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.proxy_tls.resumes),
        "Sessions with servers are resumed.",
    ),
    later(
        "proxy_ssl_ciphers",
        "all ciphers are offered that rustls has, each with forward secrecy",
    ),
    later("proxy_ssl_conf_command", "OpenSSL's commands do not apply"),
    later(
        "proxy_ssl_verify_depth",
        "chains may have as many certificates as lead to a trusted one, up to six",
    ),
    later(
        "proxy_ssl_password_file",
        "encrypted keys are not there yet",
    ),
    later(
        "proxy_ssl_certificate_cache",
        "certificates by variables are not there yet",
    ),
];
