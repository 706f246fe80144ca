//! `resolver` and `resolver_timeout`, of locations and of groups of servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::config::settings::group;
use crate::config::{NameServers, UpstreamAddress};
use crate::directive::{ALL_LEVELS, Apply, Arity, Contexts, Directive, once};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::url::Url;
use crate::{Text, value};

group! {
    /// Looking up names while the server runs.
    ResolverSettings {
        /// `resolver`.
        name_servers: Option<Arc<NameServers>> = None,
        /// `resolver_timeout`.
        timeout: Duration = Duration::from_secs(30),
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "resolver",
        ALL_LEVELS,
        Arity::AtLeast(1),
        "",
        Apply::With(|r, s| {
            r.level.settings.resolver.name_servers = Some(Some(name_servers(r, s)?));
            Ok(())
        }),
        "Name servers for names that are evaluated; valid=, ipv4=, ipv6=, status_zone=.",
    ),
    once(
        "resolver_timeout",
        ALL_LEVELS,
        Arity::Exactly(1),
        "30s",
        Apply::Milliseconds(|s| &mut s.resolver.timeout),
        "Longest look-up of a name.",
    ),
    once(
        "resolver",
        Contexts::UPSTREAM.and(Contexts::STREAM_UPSTREAM),
        Arity::AtLeast(1),
        "",
        Apply::With(|r, s| {
            r.upstream.name_servers = Some(name_servers(r, s)?);
            Ok(())
        }),
        "Name servers for the group's servers with resolve, in the place of those around it.",
    ),
    once(
        "resolver_timeout",
        Contexts::UPSTREAM.and(Contexts::STREAM_UPSTREAM),
        Arity::Exactly(1),
        "30s",
        Apply::With(|r, s| {
            r.upstream.resolver_timeout = Some(r.read(s, value::milliseconds)?);
            Ok(())
        }),
        "Longest look-up of a name of the group.",
    ),
];

fn name_servers(resolver: &Resolver<'_>, statement: &Statement) -> Applied<Arc<NameServers>> {
    let mut found = NameServers {
        servers: Vec::new(),
        valid: None,
        ipv4: true,
        ipv6: true,
        status_zone: None,
    };
    for word in statement.args() {
        let invalid = || {
            let message = format!("invalid parameter: {}", word.display());
            resolver.emerg(statement, word, message)
        };
        let (name, text) = match word.bytes.iter().position(|&byte| byte == b'=') {
            Some(at) => word.bytes.split_at(at + 1),
            None => (&[][..], &[][..]),
        };
        match name {
            b"valid=" => found.valid = Some(value::seconds(text).ok_or_else(invalid)?),
            b"ipv4=" => found.ipv4 = on_or_off(text).ok_or_else(invalid)?,
            b"ipv6=" => found.ipv6 = on_or_off(text).ok_or_else(invalid)?,
            b"status_zone=" if text.is_empty() => return Err(invalid()),
            b"status_zone=" => found.status_zone = Some(Text::from(text)),
            _ => found.servers.extend(addresses(resolver, statement, word)?),
        }
    }
    let fail = |message: &str| Err(resolver.emerg(statement, statement.name(), message));
    if !found.ipv4 && !found.ipv6 {
        return fail("\"ipv4\" and \"ipv6\" cannot both be \"off\"");
    }
    if found.servers.is_empty() {
        return fail("no name servers defined");
    }
    Ok(Arc::new(found))
}

fn on_or_off(text: &[u8]) -> Option<bool> {
    match text {
        b"on" => Some(true),
        b"off" => Some(false),
        _ => None,
    }
}

/// The port of name servers.
const DNS_PORT: u16 = 53;

fn addresses(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Applied<Vec<SocketAddr>> {
    let fail = |fault: &str| {
        let message = format!("{fault} in resolver \"{}\"", word.display());
        resolver.emerg(statement, word, message)
    };
    let url = Url::parse(&word.bytes, DNS_PORT, false).map_err(fail)?;
    let known = url.address.as_ref().map(|known| vec![known.clone()]);
    let known = known.unwrap_or_else(|| resolver.addresses_of(url.host, url.port));
    if known.is_empty() {
        return Err(fail("host not found"));
    }
    let ip = known.into_iter().map(|address| match address {
        UpstreamAddress::Ip(address) => Ok(address),
        UpstreamAddress::Unix(_) => Err(fail("invalid host")),
    });
    ip.collect()
}
