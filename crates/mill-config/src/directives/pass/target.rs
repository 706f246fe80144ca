//! Where requests are passed to: `proxy_pass`, `fastcgi_pass` and their like.

use crate::Text;
use crate::config::settings::{ProxyRewrite, RewritePattern};
use crate::config::{LocationName, PassProtocol, Template, Variable};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};
use crate::url::Url;

/// A `…_pass` before its group is complete.
pub(crate) struct PassDraft {
    pub(crate) protocol: PassProtocol,
    pub(crate) tls: bool,
    pub(crate) is_grpc: bool,
    pub(crate) target: PassTargetDraft,
    pub(crate) uri: Option<Text>,
    /// The location's name; empty where it has none that a URI could replace.
    pub(crate) location: Text,
    pub(crate) host: Text,
    pub(crate) port: Text,
    pub(crate) text: Text,
    pub(crate) memcached_key: Option<Variable>,
}

pub(crate) enum PassTargetDraft {
    /// Index into the groups in the order of their first use.
    Group(usize),
    Evaluated(Template),
}

impl PassDraft {
    fn new(protocol: PassProtocol, target: PassTargetDraft, text: &[u8]) -> Self {
        Self {
            protocol,
            tls: false,
            is_grpc: false,
            target,
            uri: None,
            location: Text::default(),
            host: Text::default(),
            port: Text::default(),
            text: Text::from(text),
            memcached_key: None,
        }
    }

    /// What `proxy_redirect default` means: the address gives way to the location's name.
    pub(crate) fn default_redirect(&self) -> Option<ProxyRewrite> {
        if self.protocol != PassProtocol::Http || self.is_grpc {
            return None;
        }
        let PassTargetDraft::Group(_) = self.target else {
            return None;
        };
        let (pattern, replacement) = match self.uri {
            Some(_) => (self.text.clone(), self.location.clone()),
            None => (
                Text::from([self.text.as_bytes(), b"/"].concat()),
                Text::from("/"),
            ),
        };
        Some(ProxyRewrite {
            pattern: RewritePattern::Prefix(Template::literal(pattern)),
            replacement: Template::literal(replacement),
        })
    }
}

pub(crate) fn proxy_pass(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let text = word.bytes.as_slice();
    if templates::has_variables(text) {
        let target = PassTargetDraft::Evaluated(resolver.template(text, statement, word)?);
        set(resolver, PassDraft::new(PassProtocol::Http, target, text));
        return Ok(());
    }
    let (tls, rest, port) = match (
        after_scheme(text, b"http://"),
        after_scheme(text, b"https://"),
    ) {
        (Some(rest), _) => (false, rest, HTTP_PORT),
        (None, Some(rest)) => (true, rest, HTTPS_PORT),
        (None, None) => return Err(resolver.emerg(statement, word, "invalid URL prefix")),
    };
    let (group, url) = resolver.upstream_of(statement, rest, port, true)?;
    let mut pass = PassDraft::new(PassProtocol::Http, PassTargetDraft::Group(group), text);
    pass.tls = tls;
    (pass.host, pass.port) = proxy_host(&url, port);
    if !url.uri.is_empty() {
        match &resolver.level.name {
            Some(name @ (LocationName::Exact(_) | LocationName::Prefix { .. })) => {
                pass.location = Text::from(name.text());
            }
            _ => {
                let message = "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named \
                               location, or inside \"if\" statement, or inside \"limit_except\" block";
                return Err(resolver.emerg(statement, word, message));
            }
        }
        pass.uri = Some(Text::from(url.uri));
    }
    set(resolver, pass);
    Ok(())
}

pub(crate) fn grpc_pass(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let text = word.bytes.as_slice();
    let mut pass = if templates::has_variables(text) {
        let target = PassTargetDraft::Evaluated(resolver.template(text, statement, word)?);
        PassDraft::new(PassProtocol::Http, target, text)
    } else {
        let (tls, rest, port) = match (
            after_scheme(text, b"grpc://"),
            after_scheme(text, b"grpcs://"),
        ) {
            (Some(rest), _) => (false, rest, HTTP_PORT),
            (None, Some(rest)) => (true, rest, HTTPS_PORT),
            (None, None) => (false, text, HTTP_PORT),
        };
        let (group, url) = resolver.upstream_of(statement, rest, port, false)?;
        let mut pass = PassDraft::new(PassProtocol::Http, PassTargetDraft::Group(group), text);
        pass.tls = tls;
        (pass.host, pass.port) = proxy_host(&url, port);
        pass
    };
    pass.is_grpc = true;
    set(resolver, pass);
    Ok(())
}

/// `fastcgi_pass`, `uwsgi_pass`, `scgi_pass`, `memcached_pass`: an address without a URI, whose port has no default.
pub(crate) fn gateway_pass(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    protocol: PassProtocol,
) -> Applied {
    let word = statement.arg(1);
    let text = word.bytes.as_slice();
    let is_memcached = protocol == PassProtocol::Memcached;
    let mut pass = if templates::has_variables(text) && !is_memcached {
        let target = PassTargetDraft::Evaluated(resolver.template(text, statement, word)?);
        PassDraft::new(protocol, target, text)
    } else {
        let (tls, address) = match protocol {
            PassProtocol::Uwsgi => match after_scheme(text, b"suwsgi://") {
                Some(rest) => (true, rest),
                None => (false, after_scheme(text, b"uwsgi://").unwrap_or(text)),
            },
            _ => (false, text),
        };
        let (group, url) = resolver.upstream_of(statement, address, 0, false)?;
        let mut pass = PassDraft::new(protocol, PassTargetDraft::Group(group), text);
        pass.tls = tls;
        if tls {
            pass.host = Text::from(url.host);
        }
        pass
    };
    if is_memcached {
        pass.memcached_key = Some(resolver.variable(b"memcached_key", statement, word));
    }
    set(resolver, pass);
    Ok(())
}

/// The default ports of `http://` and `https://`.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// The handler of a location is the last one that is written.
fn set(resolver: &mut Resolver<'_>, pass: PassDraft) {
    resolver.level.become_handler();
    resolver.level.pass = Some(pass);
}

fn after_scheme<'t>(text: &'t [u8], scheme: &[u8]) -> Option<&'t [u8]> {
    let (head, rest) = text.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// `$proxy_host` and `$proxy_port`.
fn proxy_host(url: &Url<'_>, default_port: u16) -> (Text, Text) {
    if url.is_unix() {
        return (Text::from("localhost"), Text::default());
    }
    match url.port_text {
        Some(port) if url.port != default_port => (
            Text::from([url.host, b":", port].concat()),
            Text::from(port),
        ),
        _ => (
            Text::from(url.host),
            Text::from(default_port.to_string().as_bytes()),
        ),
    }
}
