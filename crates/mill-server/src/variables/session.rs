//! Variables and templates of a session of `stream`.

use super::{connection, decimal, proxy_protocol, time, tls};
use crate::local::Local;
use crate::log::Text;
use crate::product;
use crate::proxy::trace::emit_seconds;
use crate::stream::session::{Session, Try};
use mill_config::config::template::Part;
use mill_config::config::{LogLevel, Map, Template, Variable};
use mill_http::decimal::emit_decimal;
use mill_runtime::engine::Engine;
use mill_tls::client_hello::ClientHello;
use std::borrow::Cow;
use std::sync::Arc;

/// A template as text; a variable without a value is empty.
pub(crate) fn evaluate<E: Engine>(
    template: &Template,
    session: &mut Session,
    local: &Local<E>,
) -> Vec<u8> {
    let mut out = Vec::new();
    for part in template.parts() {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Capture(number) => {
                out.extend_from_slice(session.captures.capture(usize::from(*number)));
            }
            Part::Variable(variable) => {
                out.extend_from_slice(&value(variable, session, local).unwrap_or_default());
            }
        }
    }
    out
}

/// `set`, in the order of the text.
pub(crate) fn assign<E: Engine>(session: &mut Session, local: &Local<E>) {
    let server = Arc::clone(&session.server);
    for (variable, template) in &server.assignments {
        let value = evaluate(template, session, local);
        if let Some(place) = session.values.get_mut(*variable) {
            *place = Some(value);
        }
    }
}

/// The value of a variable; `None` where nginx finds none, which logs show as `-`.
pub(crate) fn value<'a, E: Engine>(
    variable: &'a Variable,
    session: &'a mut Session,
    local: &'a Local<E>,
) -> Option<Cow<'a, [u8]>> {
    match variable {
        Variable::User(index) => user(*index, session, local).map(Cow::Owned),
        variable => own(variable, session, local)
            .or_else(|| of_connection(variable, session, local))
            .or_else(|| of_tls(variable, session, local)),
    }
}

/// What a session has carried, and where to.
fn own<'a, E: Engine>(
    variable: &Variable,
    session: &'a Session,
    local: &'a Local<E>,
) -> Option<Cow<'a, [u8]>> {
    let now = local.scheduler.now();
    Some(match variable {
        Variable::BytesReceived => decimal(session.received).into(),
        Variable::BytesSent => decimal(session.sent).into(),
        Variable::LimitConnStatus => session.limit_status?.word().into(),
        Variable::Protocol => b"TCP"[..].into(),
        Variable::SessionTime => time::seconds(now.since(session.facts.started)).into(),
        Variable::Status if session.status == 0 => b"000"[..].into(),
        Variable::Status => decimal(session.status.into()).into(),
        Variable::UpstreamAddr => of_tries(session, |one, out| out.extend_from_slice(&one.server))?,
        Variable::UpstreamBytesSent => of_tries(session, |one, out| emit_decimal(one.sent, out))?,
        Variable::UpstreamBytesReceived => {
            of_tries(session, |one, out| emit_decimal(one.received, out))?
        }
        Variable::UpstreamConnectTime => {
            of_tries(session, |one, out| emit_seconds(one.connect_time, out))?
        }
        Variable::UpstreamFirstByteTime => {
            of_tries(session, |one, out| emit_seconds(one.first_byte_time, out))?
        }
        Variable::UpstreamSessionTime => {
            of_tries(session, |one, out| emit_seconds(one.session_time, out))?
        }
        _ => return None,
    })
}

fn of_connection<'a, E: Engine>(
    variable: &Variable,
    session: &'a Session,
    local: &'a Local<E>,
) -> Option<Cow<'a, [u8]>> {
    let facts = &*session.facts;
    Some(match variable {
        Variable::RemoteAddr => connection::host(session.client()).into(),
        Variable::RemotePort => connection::port(session.client()).into(),
        Variable::BinaryRemoteAddr => connection::binary(session.client()).into(),
        Variable::BinaryRemoteNet => connection::binary_network(session.client()).into(),
        Variable::RealipRemoteAddr => connection::host(&facts.peer).into(),
        Variable::RealipRemotePort => connection::port(&facts.peer).into(),
        Variable::ServerAddr => connection::host(facts.local()).into(),
        Variable::ServerPort => connection::port(facts.local()).into(),
        Variable::Connection => decimal(facts.number).into(),
        Variable::Hostname => (*local.environment.hostname).into(),
        Variable::Pid => decimal(u64::from(local.environment.pid)).into(),
        Variable::NginxVersion => product::VERSION.as_bytes().into(),
        Variable::Msec => time::milliseconds(local.scheduler.wall_clock()).into(),
        Variable::TimeLocal => time::local(local).into(),
        Variable::TimeIso8601 => time::iso8601(local).into(),
        Variable::ProxyProtocolAddr
        | Variable::ProxyProtocolPort
        | Variable::ProxyProtocolServerAddr
        | Variable::ProxyProtocolServerPort
        | Variable::ProxyProtocolTlv(_) => proxy_protocol::value(variable, facts)?.into(),
        _ => return None,
    })
}

fn of_tls<'a, E: Engine>(
    variable: &Variable,
    session: &'a Session,
    local: &Local<E>,
) -> Option<Cow<'a, [u8]>> {
    let hello = session.hello.as_deref();
    match variable {
        Variable::SslPrereadServerName => {
            return Some(
                hello?
                    .server_name
                    .as_deref()
                    .unwrap_or_default()
                    .as_bytes()
                    .into(),
            );
        }
        Variable::SslPrereadAlpnProtocols => return Some(protocols(hello?).into()),
        Variable::SslPrereadProtocol => return Some(version(hello?).into()),
        _ => {}
    }
    let facts = session.facts.tls.get()?;
    Some(match variable {
        Variable::SslAlpnProtocol => facts.alpn.as_deref()?.into(),
        Variable::SslCipher => facts.cipher.as_bytes().into(),
        Variable::SslCiphers => tls::offered_ciphers(facts).into(),
        Variable::SslCurve => tls::group(facts)?.into(),
        Variable::SslCurves => tls::offered_groups(facts).into(),
        Variable::SslClient(part) => {
            tls::client_part(*part, facts, local.scheduler.wall_clock())?.into()
        }
        Variable::SslProtocol => facts.protocol.as_bytes().into(),
        Variable::SslServerName => facts.server_name.as_deref()?.as_bytes().into(),
        Variable::SslSigalg => tls::signature(facts.signatures.own)?.into(),
        Variable::SslClientSigalg => tls::signature(facts.signatures.peer)?.into(),
        Variable::SslSessionId => tls::session_id(facts)?.into(),
        Variable::SslSessionReused if facts.is_resumed => b"r"[..].into(),
        Variable::SslSessionReused => b"."[..].into(),
        _ => return None,
    })
}

fn protocols(hello: &ClientHello) -> Vec<u8> {
    let all: Vec<&[u8]> = hello.alpn.iter().map(|protocol| &**protocol).collect();
    all.join(&b","[..])
}

/// The highest version that the client offers.
fn version(hello: &ClientHello) -> &'static [u8] {
    match hello.version {
        0x0300 => b"SSLv3",
        0x0301 => b"TLSv1",
        0x0302 => b"TLSv1.1",
        0x0303 => b"TLSv1.2",
        0x0304 => b"TLSv1.3",
        _ => b"",
    }
}

fn of_tries(
    session: &Session,
    mut emit: impl FnMut(&Try, &mut Vec<u8>),
) -> Option<Cow<'static, [u8]>> {
    if session.tries.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    for (index, one) in session.tries.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        emit(one, &mut out);
    }
    Some(out.into())
}

/// The assigned value; or that of its `map`, kept unless the map is volatile.
fn user<E: Engine>(index: usize, session: &mut Session, local: &Local<E>) -> Option<Vec<u8>> {
    if let Some(known) = session.values.get(index)? {
        return Some(known.clone());
    }
    let site = Arc::clone(&session.site);
    let stream = site.config.stream.as_ref()?;
    let definition = stream.user_variables.get(index)?;
    let Some(map) = definition.map.and_then(|map| stream.maps.get(map)) else {
        // A named capture that did not match has no value; a variable that `set` assigns to is empty.
        let assigned = stream.servers.iter().flat_map(|server| &server.assignments);
        let is_assigned = assigned.into_iter().any(|(variable, _)| *variable == index);
        return is_assigned.then(Vec::new);
    };
    if session.depth >= DEPTH_MAX {
        let name = Text(&definition.name);
        let line = format_args!("cycle while evaluating variable \"{name}\"");
        session.log_error(LogLevel::Error, line, local);
        return None;
    }
    session.depth += 1;
    let value = look_up(map, session, local);
    session.depth -= 1;
    if !map.volatile {
        *session.values.get_mut(index)? = Some(value.clone());
    }
    Some(value)
}

/// How deep maps may refer to maps (nginx's limit).
const DEPTH_MAX: u8 = 100;

fn look_up<E: Engine>(map: &Map, session: &mut Session, local: &Local<E>) -> Vec<u8> {
    let subject = evaluate(&map.source, session, local);
    let mut captures = Vec::new();
    let Some(found) = map.find(&subject, &mut captures) else {
        return Vec::new();
    };
    if !captures.is_empty() {
        let mut patterns = map.patterns.iter();
        let decisive = patterns.find(|(_, value)| std::ptr::eq(value, found));
        session.keep_captures(decisive.map(|(pattern, _)| pattern), &subject, captures);
    }
    evaluate(&found.0, session, local)
}
