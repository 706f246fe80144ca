//! `server` of a group.

use std::time::Duration;

use crate::config::{Balancing, UpstreamServer, UpstreamTarget};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::url::Url;
use crate::{Text, value};

/// The port of a server without one.
const DEFAULT_PORT: u16 = 80;

impl UpstreamServer {
    /// With nginx's defaults.
    pub fn new(name: Text, target: UpstreamTarget) -> Self {
        Self {
            name,
            target,
            weight: 1,
            max_conns: 0,
            max_fails: 1,
            fail_timeout: Duration::from_secs(10),
            backup: false,
            down: false,
            drain: false,
            slow_start: Duration::ZERO,
            route: None,
            service: None,
            resolve: false,
        }
    }

    /// Whether its name is looked up while running.
    pub(crate) fn is_resolved(&self) -> bool {
        matches!(self.target, UpstreamTarget::Name { .. })
    }
}

pub(super) fn server(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    // Within the state file it is not set yet.
    if resolver.upstream.state.is_some() {
        let message = "\"server\" directive is incompatible with \"state\" directive";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    let word = statement.arg(1);
    let name = Text::from(word.bytes.as_slice());
    let mut server = UpstreamServer::new(name, UpstreamTarget::Addresses(Vec::new()));
    for word in statement.args().iter().skip(1) {
        parameter(resolver, statement, word, &mut server)?;
    }
    server.target = target(resolver, statement, &server)?;
    resolver.upstream.servers.push(server);
    Ok(())
}

fn parameter(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    server: &mut UpstreamServer,
) -> Applied {
    let invalid = || {
        let message = format!("invalid parameter \"{}\"", word.display());
        resolver.emerg(statement, word, message)
    };
    let (name, text) = match word.bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => word.bytes.split_at(at + 1),
        None => (word.bytes.as_slice(), &[][..]),
    };
    let number = || value::number(text).and_then(|number| u32::try_from(number).ok());
    match name {
        b"weight=" => {
            let weight = number().filter(|&weight| weight > 0);
            server.weight = weight.ok_or_else(invalid)?;
        }
        b"max_conns=" => server.max_conns = number().ok_or_else(invalid)?,
        b"max_fails=" => server.max_fails = number().ok_or_else(invalid)?,
        b"fail_timeout=" => server.fail_timeout = value::seconds(text).ok_or_else(invalid)?,
        b"slow_start=" => {
            supported(resolver, statement, word)?;
            server.slow_start = value::milliseconds(text).ok_or_else(invalid)?;
        }
        b"backup" => {
            // Not in nginx: servers for backup have a ring of their own.
            let has_ring = matches!(
                resolver.upstream.balancing,
                Some(Balancing::Hash {
                    consistent: true,
                    ..
                })
            );
            if !has_ring {
                supported(resolver, statement, word)?;
            }
            server.backup = true;
        }
        b"down" => server.down = true,
        b"drain" if !resolver.is_in_stream() => server.drain = true,
        b"resolve" => server.resolve = true,
        b"route=" if !resolver.is_in_stream() => {
            server.route = Some(route(resolver, statement, word, text)?)
        }
        b"service=" if text.is_empty() => {
            return Err(resolver.emerg(statement, word, "service is empty"));
        }
        b"service=" => server.service = Some(Text::from(text)),
        _ => return Err(invalid()),
    }
    Ok(())
}

/// Methods that choose by a key or by chance take all servers at once and with their full weight.
fn supported(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Applied {
    match resolver.upstream.balancing {
        Some(Balancing::Hash { .. } | Balancing::IpHash | Balancing::Random(_)) => {
            let shown = word.display();
            let message = format!("balancing method does not support parameter \"{shown}\"");
            Err(resolver.emerg(statement, word, message))
        }
        _ => Ok(()),
    }
}

/// Longest name of a server in sticky sessions (nginx).
const ROUTE_LEN_MAX: usize = 32;

fn route(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    text: &[u8],
) -> Applied<Text> {
    let message = match text.len() {
        0 => String::from("route is empty"),
        1..=ROUTE_LEN_MAX => return Ok(Text::from(text)),
        _ => format!("route is longer than {ROUTE_LEN_MAX}"),
    };
    Err(resolver.emerg(statement, word, message))
}

fn target(
    resolver: &Resolver<'_>,
    statement: &Statement,
    server: &UpstreamServer,
) -> Applied<UpstreamTarget> {
    let word = statement.arg(1);
    let shown = word.display();
    let fail = |message: String| -> Box<Diagnostic> { resolver.emerg(statement, word, message) };
    if server.service.is_some() && !server.resolve {
        return Err(fail(format!(
            "service upstream \"{shown}\" requires \"resolve\" parameter"
        )));
    }
    let url = Url::parse(&word.bytes, DEFAULT_PORT, false)
        .map_err(|fault| fail(format!("{fault} in upstream \"{shown}\"")))?;
    let lacks_port = url.port_text.is_none() && !url.is_unix() && server.service.is_none();
    if resolver.is_in_stream() && lacks_port {
        return Err(fail(format!("no port in upstream \"{shown}\"")));
    }
    if server.service.is_some() && url.port_text.is_some() {
        return Err(fail(format!(
            "service upstream \"{shown}\" may not have port"
        )));
    }
    if let Some(address) = url.address {
        if server.service.is_some() {
            return Err(fail(format!(
                "service upstream \"{shown}\" requires domain name"
            )));
        }
        return Ok(UpstreamTarget::Addresses(vec![address]));
    }
    if server.resolve {
        return Ok(UpstreamTarget::Name {
            host: Text::from(url.host),
            port: url.port,
        });
    }
    let addresses = resolver.addresses_of(url.host, url.port);
    if addresses.is_empty() {
        return Err(fail(format!("host not found in upstream \"{shown}\"")));
    }
    Ok(UpstreamTarget::Addresses(addresses))
}
