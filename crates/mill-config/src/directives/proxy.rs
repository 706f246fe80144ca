//! `proxy_pass` and what HTTP alone has: fields, method, version and content of the request, redirects and cookies of the
//! answer.

mod rewriting;

use crate::Text;
use crate::config::settings::{HttpVersion, group};
use crate::config::{Pattern, Template};
use crate::directive::{ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, Value, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use std::sync::Arc;

group! {
    /// What only `proxy_pass` has.
    ProxyHttpSettings {
        /// `proxy_set_header`; a field that is empty once it is evaluated is not sent. Those that are not named here have
        /// nginx's defaults.
        set_header: Vec<ProxyField> = Vec::new(),
        /// `proxy_set_body`.
        set_body: Option<Template> = None,
        /// `proxy_method`.
        method: Option<Template> = None,
        /// `proxy_http_version`.
        http_version: HttpVersion = HttpVersion::Http10,
        /// `proxy_redirect`.
        redirect: ProxyRedirect = ProxyRedirect::Default,
        /// `proxy_cookie_domain`; empty is off.
        cookie_domain: Vec<ProxyRewrite> = Vec::new(),
        /// `proxy_cookie_path`; empty is off.
        cookie_path: Vec<ProxyRewrite> = Vec::new(),
        /// `proxy_cookie_flags`: the first rule for a cookie holds.
        cookie_flags: Vec<CookieFlags> = Vec::new(),
        /// `proxy_protocol`: what a connection to a server begins with. It is kept for requests that would send the same.
        proxy_protocol: ProxyProtocol = ProxyProtocol::Off,
    }
}

/// One `proxy_set_header`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyField {
    /// Name of the field.
    pub name: Text,
    /// Its value.
    pub value: Template,
}

/// `proxy_redirect`: how Location and Refresh of answers change.
#[derive(Debug, Clone)]
pub enum ProxyRedirect {
    /// Not written, and no `proxy_pass` without variables that tells it: they stay.
    Default,
    /// They stay.
    Off,
    /// The first rule that matches.
    Rules(Vec<ProxyRewrite>),
}

/// A rule of `proxy_redirect`, `proxy_cookie_domain` or `proxy_cookie_path`.
#[derive(Debug, Clone)]
pub struct ProxyRewrite {
    /// What is replaced.
    pub pattern: RewritePattern,
    /// By what.
    pub replacement: Template,
}

/// What a rule replaces.
#[derive(Debug, Clone)]
pub enum RewritePattern {
    /// This beginning of the value.
    Prefix(Template),
    /// The whole value, without case, a leading dot aside.
    Domain(Template),
    /// What the expression matches; the value as a whole is replaced.
    Pattern(Arc<Pattern>),
}

/// A rule of `proxy_cookie_flags`.
#[derive(Debug, Clone)]
pub struct CookieFlags {
    /// Which cookies.
    pub cookie: CookieName,
    /// `secure`, `httponly`, `samesite=…` and their negations, each evaluated for each answer.
    pub flags: Vec<Template>,
}

/// Which cookies a rule is about.
#[derive(Debug, Clone)]
pub enum CookieName {
    /// Of this name, without case.
    Name(Template),
    /// Whose name the expression matches.
    Pattern(Arc<Pattern>),
}

/// `proxy_protocol`, outgoing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// Nothing.
    Off,
    /// Version 1, text.
    V1,
    /// Version 2, binary.
    V2,
}

const HASHES: &str = "tables size themselves";

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "proxy_tunnel_timeout",
        ANY_LEVEL,
        Arity::Exactly(1),
        "proxy_read_timeout",
        Apply::With(|r, s| {
            let timeout = r.read(s, crate::value::milliseconds)?;
            r.level.settings.proxy.tunnel_timeout = Some(Some(timeout));
            Ok(())
        }),
        "Longest time without a byte in a connection after 101, a WebSocket for example; without it, as long as another read.",
    ),
    once(
        "proxy_pass",
        LOCATION
            .and(Contexts::IF_IN_LOCATION)
            .and(Contexts::LIMIT_EXCEPT),
        Arity::Exactly(1),
        "",
        Apply::With(super::pass::target::proxy_pass),
        "Passes requests to an HTTP server or a group of them: http:// or https:// and host[:port][/uri], or unix:path[:uri].",
    ),
    many(
        "proxy_set_header",
        ANY_LEVEL,
        Arity::Exactly(2),
        Apply::With(set_header),
        "A field of requests to servers. Default: Host $proxy_host, Connection close.",
    ),
    once(
        "proxy_set_body",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            let body = r.template(&s.arg(1).bytes, s, s.arg(1))?;
            r.level.settings.proxy_http.set_body = Some(Some(body));
            Ok(())
        }),
        "Content of requests to servers in the place of the client's.",
    ),
    once(
        "proxy_method",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            let method = r.template(&s.arg(1).bytes, s, s.arg(1))?;
            r.level.settings.proxy_http.method = Some(Some(method));
            Ok(())
        }),
        "Method of requests to servers in the place of the client's.",
    ),
    once(
        "proxy_http_version",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1.0",
        Apply::With(http_version),
        "Version of requests to servers: 1.0, 1.1, or 2 (with prior knowledge in clear, by ALPN under TLS).",
    ),
    many(
        "proxy_redirect",
        ANY_LEVEL,
        Arity::Between(1, 2),
        Apply::With(rewriting::redirect),
        "How Location and Refresh of answers change: off, default, or what and its replacement.",
    ),
    many(
        "proxy_cookie_domain",
        ANY_LEVEL,
        Arity::Between(1, 2),
        Apply::With(rewriting::cookie_domain),
        "How the domain in Set-Cookie changes: off, or what and its replacement.",
    ),
    many(
        "proxy_cookie_path",
        ANY_LEVEL,
        Arity::Between(1, 2),
        Apply::With(rewriting::cookie_path),
        "How the path in Set-Cookie changes: off, or what and its replacement.",
    ),
    many(
        "proxy_cookie_flags",
        ANY_LEVEL,
        Arity::Between(1, 4),
        Apply::With(rewriting::cookie_flags),
        "Flags of cookies: off, or a name and secure, httponly, samesite=…, or their negations with no.",
    ),
    once(
        "proxy_pass_trailers",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.proxy.pass_trailers),
        "Pass on trailers of chunked answers to clients that say TE: trailers.",
    ),
    once(
        "proxy_send_lowat",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::WithoutEffect(Value::Size, "Linux has no SO_SNDLOWAT"),
        "SO_SNDLOWAT of connections to servers.",
    ),
    once(
        "proxy_protocol",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::With(proxy_protocol),
        "Millstream's own for HTTP: tell servers of proxy_pass the client's address by the PROXY protocol, v1 (on) or v2.",
    ),
    once(
        "proxy_headers_hash_max_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "512",
        Apply::WithoutEffect(Value::Number, HASHES),
        "Size of the table of fields.",
    ),
    once(
        "proxy_headers_hash_bucket_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "64",
        Apply::WithoutEffect(Value::Number, HASHES),
        "Bucket of the table of fields.",
    ),
];

fn set_header(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let field = set_header_field(resolver, statement)?;
    let list = &mut resolver.level.settings.proxy_http.set_header;
    list.get_or_insert_default().push(field);
    Ok(())
}

/// The field that `…_set_header` names.
pub(crate) fn set_header_field(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<ProxyField> {
    let (name, value) = (statement.arg(1), statement.arg(2));
    Ok(ProxyField {
        name: Text::from(name.bytes.as_slice()),
        value: resolver.template(&value.bytes, statement, value)?,
    })
}

fn proxy_protocol(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let choices = [
        ("off", ProxyProtocol::Off),
        ("on", ProxyProtocol::V1),
        ("v1", ProxyProtocol::V1),
        ("v2", ProxyProtocol::V2),
    ];
    let version = resolver.choice(statement, word, &choices)?;
    resolver.level.settings.proxy_http.proxy_protocol = Some(version);
    Ok(())
}

fn http_version(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let choices = [
        ("1.0", HttpVersion::Http10),
        ("1.1", HttpVersion::Http11),
        ("2", HttpVersion::Http2),
    ];
    let version = resolver.choice(statement, word, &choices)?;
    resolver.level.settings.proxy_http.http_version = Some(version);
    Ok(())
}
