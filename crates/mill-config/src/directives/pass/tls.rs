//! TLS to servers: `proxy_ssl_…`, `grpc_ssl_…`, `uwsgi_ssl_…`.

use crate::Text;
use crate::config::Template;
use crate::config::settings::{TlsBounds, TlsFile, TlsProtocols, group};
use crate::directive::{
    ALL_LEVELS, ANY_LEVEL, Apply, Arity, Contexts, Directive, Value, many, once,
};
use crate::directives::tls::ciphers::ciphers;
use crate::directives::tls::conf_command::{Command, command, without_effect};
use crate::directives::tls::{key_log, passwords, protocols, tls_file};
use crate::lexer::Statement;
use crate::resolve::Resolver;

group! {
    /// TLS to servers.
    PassTlsSettings {
        /// `…_ssl_protocols`.
        protocols: TlsProtocols = TlsProtocols::default(),
        /// `…_ssl_conf_command MinProtocol` and `MaxProtocol`.
        bounds: TlsBounds = TlsBounds::default(),
        /// `…_ssl_ciphers`: those of TLS 1.2; `None`: all that there are.
        ciphers: Option<Vec<&'static str>> = None,
        /// `…_ssl_conf_command Ciphersuites`: the same for TLS 1.3.
        ciphers_13: Option<Vec<&'static str>> = None,
        /// `…_ssl_conf_command Groups`, the best first; `None`: all that there are.
        groups: Option<Vec<&'static str>> = None,
        /// The lines of `…_ssl_password_file`.
        passwords: Vec<Text> = Vec::new(),
        /// `…_ssl_verify`: the server's certificate has to be valid for the name.
        verify: bool = false,
        /// `…_ssl_verify_depth`: certificates between the server's and a trusted one, at most.
        verify_depth: u64 = 1,
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
        /// `…_ssl_key_log`: a path.
        key_log: Option<Text> = None,
        /// `…_ssl_session_reuse`.
        resumes: bool = true,
    }
}

macro_rules! file {
    ($contexts:expr, $group:ident, $name:expr, $field:ident, $what:literal, $doc:literal) => {
        once(
            $name,
            $contexts,
            Arity::Exactly(1),
            "",
            Apply::With(|resolver, statement| {
                let file = tls_file(resolver, statement, $what)?;
                resolver.level.settings.$group.$field = Some(Some(file));
                Ok(())
            }),
            $doc,
        )
    };
}

/// Not there yet, and without it a connection is as safe.
const fn later(contexts: Contexts, name: &'static str, reason: &'static str) -> Directive {
    Directive {
        name,
        contexts,
        arity: Arity::AtLeast(1),
        default: None,
        doc: "Of TLS to servers.",
        repeats: true,
        apply: Apply::WithoutEffect(Value::Text, reason),
        unread: None,
    }
}

/// Options of OpenSSL are about servers; of those, as with OpenSSL, nothing is said.
fn without_effects(resolver: &mut Resolver<'_>, statement: &Statement, options: &[(String, bool)]) {
    for (option, _) in options {
        let is_of_servers = ["serverpreference", "prioritizechacha"]
            .iter()
            .any(|known| option.eq_ignore_ascii_case(known));
        if !is_of_servers {
            let help = "Ciphersuites, Groups, MinProtocol and MaxProtocol are taken";
            without_effect(resolver, statement, option, help);
        }
    }
}

macro_rules! table {
    ($name:ident, $contexts:expr, $prefix:literal, $group:ident) => {
        pub(crate) const $name: &[Directive] = &[
    once(
        concat!($prefix, "_ssl_protocols"),
        $contexts,
        Arity::AtLeast(1),
        "TLSv1.2 TLSv1.3",
        Apply::With(|resolver, statement| {
            let found = protocols(resolver, statement)?;
            resolver.level.settings.$group.protocols = Some(found);
            Ok(())
        }),
        "Versions of TLS to servers.",
    ),
    once(
        concat!($prefix, "_ssl_verify"),
        $contexts,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.$group.verify),
        "Servers need a certificate that leads to …_ssl_trusted_certificate and is valid for …_ssl_name.",
    ),
    file!(
        $contexts,
        $group,
        concat!($prefix, "_ssl_trusted_certificate"),
        trusted,
        "certificate",
        "The certificates of those that certify servers, in PEM."
    ),
    file!(
        $contexts,
        $group,
        concat!($prefix, "_ssl_crl"),
        revocation_lists,
        "CRL",
        "Lists of certificates that are revoked, in PEM, for every certificate of a chain."
    ),
    file!(
        $contexts,
        $group,
        concat!($prefix, "_ssl_certificate"),
        certificate,
        "certificate",
        "Our own certificate, for servers that ask for one, in PEM."
    ),
    file!(
        $contexts,
        $group,
        concat!($prefix, "_ssl_certificate_key"),
        key,
        "certificate key",
        "The private key of our own certificate, in PEM."
    ),
    once(
        concat!($prefix, "_ssl_name"),
        $contexts,
        Arity::Exactly(1),
        "$proxy_host",
        Apply::With(|resolver, statement| {
            let word = statement.arg(1);
            let name = resolver.template(&word.bytes, statement, word)?;
            resolver.level.settings.$group.name = Some(Some(name));
            Ok(())
        }),
        "The server's name: what its certificate has to be valid for, and what it is told by …_ssl_server_name.",
    ),
    once(
        concat!($prefix, "_ssl_server_name"),
        $contexts,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.$group.sends_name),
        "Servers are told the name that is wanted (SNI).",
    ),
    once(
        concat!($prefix, "_ssl_key_log"),
        $contexts,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            resolver.level.settings.$group.key_log = Some(Some(key_log(resolver, statement)));
            Ok(())
        }),
        "A file for the secrets of connections to servers, for Wireshark.",
    ),
    once(
        concat!($prefix, "_ssl_session_reuse"),
        $contexts,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.$group.resumes),
        "Sessions with servers are resumed.",
    ),
    once(
        concat!($prefix, "_ssl_ciphers"),
        $contexts,
        Arity::Exactly(1),
        "DEFAULT",
        Apply::With(|resolver, statement| {
            let found = ciphers(resolver, statement)?;
            resolver.level.settings.$group.ciphers = Some(Some(found));
            Ok(())
        }),
        "Ciphers of TLS 1.2 that servers are offered, in OpenSSL's words.",
    ),
    once(
        concat!($prefix, "_ssl_password_file"),
        $contexts,
        Arity::Exactly(1),
        "",
        Apply::With(|resolver, statement| {
            let found = passwords(resolver, statement)?;
            resolver.level.settings.$group.passwords = Some(found);
            Ok(())
        }),
        "Passwords of our own key, one a line, tried in turn.",
    ),
    many(
        concat!($prefix, "_ssl_conf_command"),
        $contexts,
        Arity::Exactly(2),
        Apply::With(|resolver, statement| {
            let command = command(resolver, statement)?;
            let tls = &mut resolver.level.settings.$group;
            // A block that has commands inherits none, as with nginx.
            let bounds = tls.bounds.get_or_insert_default();
            tls.ciphers_13.get_or_insert_default();
            tls.groups.get_or_insert_default();
            match command {
                Command::Ciphers13(found) => tls.ciphers_13 = Some(Some(found)),
                Command::Groups(found) => tls.groups = Some(Some(found)),
                Command::Bound(bound) => bound.set(bounds),
                Command::Options(options) => without_effects(resolver, statement, &options),
                Command::Nothing => {}
            }
            Ok(())
        }),
        "OpenSSL's own settings for handshakes with servers: Ciphersuites, Groups, MinProtocol, MaxProtocol.",
    ),
    once(
        concat!($prefix, "_ssl_verify_depth"),
        $contexts,
        Arity::Exactly(1),
        "1",
        Apply::Number(|s| &mut s.$group.verify_depth),
        "Certificates between a server's and a trusted one, at most; six in any case.",
    ),
    later(
        $contexts,
        concat!($prefix, "_ssl_certificate_cache"),
        "certificates by variables are not there yet",
    ),
];
    };
}

table!(PROXY, ALL_LEVELS, "proxy", proxy_tls);
table!(GRPC, ANY_LEVEL, "grpc", grpc_tls);
table!(UWSGI, ANY_LEVEL, "uwsgi", uwsgi_tls);
