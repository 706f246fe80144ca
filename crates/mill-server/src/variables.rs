//! Variables and templates of a request.
//!
//! Values are evaluated at each use, as in nginx; only a `map` that is not `volatile`, `$request_id` and values
//! assigned by `set` are kept for the request.

/// Those of a session of `stream`.
pub(crate) mod session;

/// What a kept answer may depend on.
pub mod purity;

/// The variables that a configuration mentions.
pub mod mention;

/// Those that still change while a connection is a tunnel.
pub mod late;

/// Variables that the configuration defines: `set`, `map`, named captures.
mod user;

/// The request line, the path, the files.
mod target;

/// Fields of the request and of the answer, cookies, arguments.
mod field;

/// The connection and the server process.
pub(crate) mod connection;

/// The header of the PROXY protocol.
mod proxy_protocol;

/// Clocks.
mod time;

/// TLS.
mod tls;

/// The answer.
mod answer;

/// What a cache had to do with the request.
mod cache;

/// Upstream servers.
mod upstream;

/// What `fastcgi_split_path_info` tells.
mod fastcgi;

use crate::fingerprint;
use crate::local::Local;
use crate::product;
use crate::request::document::{document_path, document_root, real_root};
use crate::request::slice::Slice;
use crate::request::{Request, StoredContent};
use mill_config::config::template::Part;
use mill_config::config::{Template, Variable};
use mill_http::decimal::emit_decimal;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use std::borrow::Cow;

/// A template as text; a variable without a value is empty.
pub fn evaluate<E: Engine>(
    template: &Template,
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    let mut out = Vec::new();
    append(template, request, local, &mut out);
    out
}

/// Appends a template as text.
pub fn append<E: Engine>(
    template: &Template,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) {
    for part in template.parts() {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Capture(number) => {
                out.extend_from_slice(request.captures.capture(usize::from(*number)));
            }
            Part::Variable(Variable::RemoteAddr) if request.overrides.is_empty() => {
                purity::taint(&Variable::RemoteAddr, request);
                connection::emit_host(request.client(), out);
            }
            Part::Variable(Variable::ProxyAddXForwardedFor) if request.overrides.is_empty() => {
                purity::taint(&Variable::ProxyAddXForwardedFor, request);
                upstream::emit_forwarded_for(request, out);
            }
            Part::Variable(variable) => {
                out.extend_from_slice(&value(variable, request, local).unwrap_or_default());
            }
        }
    }
}

/// The value of a variable; `None` where nginx finds none, which logs show as `-`.
pub fn value<'a, E: Engine>(
    variable: &'a Variable,
    request: &'a mut Request,
    local: &'a Local<E>,
) -> Option<Cow<'a, [u8]>> {
    purity::taint(variable, request);
    if let Some(assigned) = assigned(variable, request) {
        let (_, value) = request.overrides.get(assigned)?;
        return Some(Cow::Borrowed(value));
    }
    match variable {
        Variable::User(index) => user::value(*index, request, local),
        Variable::DocumentRoot => Some(document_root(request, local).into()),
        Variable::RealpathRoot => Some(real_root(request, local)?.into()),
        Variable::RequestFilename => Some(document_path(request, local).path.into()),
        Variable::RequestId => Some(target::id(request, local).into()),
        Variable::SliceRange => {
            if let Some(under_way) = &request.slice_under_way {
                return Some(under_way.get()?.text().into());
            }
            let slice = request.slice.or_else(|| Slice::first_of(request))?;
            request.slice = Some(slice);
            Some(slice.text().into())
        }
        variable => plain(variable, request, local),
    }
}

/// The variables that are evaluated without changing the request.
fn plain<'a, E: Engine>(
    variable: &'a Variable,
    request: &'a Request,
    local: &'a Local<E>,
) -> Option<Cow<'a, [u8]>> {
    let now = local.scheduler.now();
    let connection = &*request.connection;
    Some(match variable {
        Variable::Arg(name) => field::argument(name, request)?.into(),
        Variable::Cookie(name) => field::cookie(name, request)?.into(),
        Variable::Http(name) => field::request_field(name, request)?,
        Variable::ContentLength => target::content_length(request)?,
        Variable::ContentType => field::request_field(b"content_type", request)?,
        Variable::SentHttp(name) => field::sent_field(name, request)?,

        Variable::Request => target::line(request).into(),
        Variable::RequestMethod => filled(request.method_name())?.into(),
        Variable::RequestUri => filled(target::as_sent(request))?.into(),
        Variable::Uri | Variable::DocumentUri => request.uri.as_slice().into(),
        Variable::Args | Variable::QueryString => filled(&request.args)?.into(),
        Variable::IsArgs => target::question_mark(request).into(),
        Variable::Host => target::host(request),
        Variable::RequestLength => target::length(request).into(),
        Variable::ServerProtocol => target::protocol(request).into(),
        Variable::RemoteUser => target::user(request)?.into(),
        Variable::Scheme => connection.scheme().as_bytes().into(),
        Variable::Https => match connection.tls.get() {
            Some(_) => b"on"[..].into(),
            None => b""[..].into(),
        },
        Variable::Http2 if request.message.head.version != Version::Http2 => return None,
        Variable::Http2 if connection.tls.get().is_some() => (&b"h2"[..]).into(),
        Variable::Http2 => (&b"h2c"[..]).into(),
        Variable::SslAlpnProtocol => connection.tls.get()?.alpn.as_deref()?.into(),
        Variable::SslCipher => connection.tls.get()?.cipher.as_bytes().into(),
        Variable::TlsFingerprint => {
            let facts = connection.tls.get()?;
            fingerprint::text(fingerprint::of_handshake(facts)).into()
        }
        Variable::HttpFingerprint => {
            let message = &request.message;
            fingerprint::text(fingerprint::of_head(&message.head, &message.bytes)).into()
        }
        Variable::SslCiphers => tls::offered_ciphers(connection.tls.get()?).into(),
        Variable::SslCurve => tls::group(connection.tls.get()?)?.into(),
        Variable::SslCurves => tls::offered_groups(connection.tls.get()?).into(),
        Variable::SslEarlyData => connection
            .tls
            .get()?
            .is_early
            .get()
            .then_some(&b"1"[..])?
            .into(),
        Variable::SslClient(part) => {
            let now = local.scheduler.wall_clock();
            tls::client_part(*part, connection.tls.get()?, now)?.into()
        }
        Variable::SslProtocol => connection.tls.get()?.protocol.as_bytes().into(),
        Variable::SslServerName => connection
            .tls
            .get()?
            .server_name
            .as_deref()?
            .as_bytes()
            .into(),
        Variable::SslSessionId => tls::session_id(connection.tls.get()?)?.into(),
        Variable::SslSigalg => tls::signature(connection.tls.get()?.signatures.own)?.into(),
        Variable::SslClientSigalg => tls::signature(connection.tls.get()?.signatures.peer)?.into(),
        Variable::SslSessionReused => match connection.tls.get()?.is_resumed {
            true => b"r"[..].into(),
            false => b"."[..].into(),
        },
        Variable::ServerName => request.server.name.as_bytes().into(),

        Variable::RemoteAddr => connection::host(request.client()).into(),
        Variable::RemotePort => connection::port(request.client()).into(),
        Variable::RealipRemoteAddr => connection::host(&connection.peer).into(),
        Variable::RealipRemotePort => connection::port(&connection.peer).into(),
        Variable::ServerAddr => connection::host(connection.local()).into(),
        Variable::ServerPort => connection::port(connection.local()).into(),
        Variable::BinaryRemoteAddr => connection::binary(request.client()).into(),
        Variable::BinaryRemoteNet => connection::binary_network(request.client()).into(),
        Variable::Connection => decimal(connection.number).into(),
        Variable::ConnectionRequests => decimal(request.connection_requests).into(),
        Variable::ConnectionTime => time::seconds(now.since(connection.started)).into(),
        Variable::Pipe => connection::pipe(request).into(),
        Variable::TcpinfoRtt => connection::rtt(connection)?.into(),
        Variable::TcpinfoRttvar => connection::rtt_variation(connection)?.into(),
        Variable::TcpinfoSndCwnd => connection::snd_cwnd(connection)?.into(),
        Variable::TcpinfoRcvSpace => connection::rcv_space(connection)?.into(),

        Variable::Hostname => (*local.environment.hostname).into(),
        Variable::Pid => decimal(u64::from(local.environment.pid)).into(),
        Variable::NginxVersion => product::VERSION.as_bytes().into(),

        Variable::RequestTime => time::seconds(now.since(request.started)).into(),

        Variable::Status => answer::status(request).into(),
        Variable::BytesSent => decimal(request.sent.bytes).into(),
        Variable::BodyBytesSent => decimal(request.sent.content_bytes).into(),
        Variable::LimitRate => decimal(answer::limit_rate(request)).into(),
        Variable::GzipRatio => answer::gzip_ratio(request)?.into(),
        Variable::RequestCompletion => answer::completion(request).into(),

        Variable::RequestBody => match request.stored_content.as_deref()? {
            StoredContent::Memory(bytes) => bytes.clone().into(),
            StoredContent::File { .. } => return None,
        },
        Variable::RequestBodyFile => match request.stored_content.as_deref()? {
            StoredContent::File { path, .. } => path.clone().into(),
            StoredContent::Memory(_) => return None,
        },

        Variable::ProxyProtocolAddr
        | Variable::ProxyProtocolPort
        | Variable::ProxyProtocolServerAddr
        | Variable::ProxyProtocolServerPort
        | Variable::ProxyProtocolTlv(_) => proxy_protocol::value(variable, connection)?.into(),
        // The answer's trailers are evaluated after everything else.
        Variable::SentTrailer(_) | Variable::Absent(_) => return None,
        Variable::UpstreamCacheAge
        | Variable::UpstreamCacheEtag
        | Variable::UpstreamCacheKey
        | Variable::UpstreamCacheLastModified
        | Variable::UpstreamCacheStatus
        | Variable::CacheDecision => {
            cache::value(variable, request, local.scheduler.wall_clock().seconds)?
        }
        Variable::LimitReqStatus => request.limited.as_ref()?.requests?.word().into(),
        Variable::LimitConnStatus => request.limited.as_ref()?.connections?.word().into(),
        Variable::FastcgiScriptName => fastcgi::script_name(request),
        Variable::FastcgiPathInfo => fastcgi::path_info(request).into(),
        Variable::UpstreamAddr
        | Variable::UpstreamStatus
        | Variable::UpstreamConnectTime
        | Variable::UpstreamHeaderTime
        | Variable::UpstreamResponseTime
        | Variable::UpstreamResponseLength
        | Variable::UpstreamBytesReceived
        | Variable::UpstreamBytesSent
        | Variable::UpstreamQueueTime
        | Variable::UpstreamLastServerName
        | Variable::UpstreamHttp(_)
        | Variable::UpstreamTrailer(_)
        | Variable::UpstreamCookie(_)
        | Variable::ProxyHost
        | Variable::ProxyPort
        | Variable::ProxyAddXForwardedFor
        | Variable::ProxyInternalBodyLength
        | Variable::ProxyInternalChunked => upstream::value(variable, request)?,
        // Handled by `value`, which may change the request.
        Variable::User(_)
        | Variable::DocumentRoot
        | Variable::RealpathRoot
        | Variable::RequestFilename
        | Variable::RequestId
        | Variable::SliceRange => return None,
        variable => return of_worker(variable, local).map(Cow::Owned),
    })
}

/// Clocks, and the connections of all workers: what depends on no request.
pub(crate) fn of_worker<E: Engine>(variable: &Variable, local: &Local<E>) -> Option<Vec<u8>> {
    Some(match variable {
        Variable::ConnectionsActive => decimal(local.all_counters().connections_active),
        Variable::ConnectionsReading => decimal(local.all_counters().connections_reading),
        Variable::ConnectionsWriting => decimal(local.all_counters().connections_writing),
        Variable::ConnectionsWaiting => decimal(local.all_counters().connections_waiting),
        Variable::Msec => time::milliseconds(local.scheduler.wall_clock()),
        Variable::TimeLocal => time::local(local),
        Variable::TimeIso8601 => time::iso8601(local),
        Variable::DateLocal => time::date_local(local),
        Variable::DateGmt => time::date_gmt(local),
        _ => return None,
    })
}

/// The index of a value that `set` assigned to a built-in variable.
fn assigned(variable: &Variable, request: &Request) -> Option<usize> {
    let mut overrides = request.overrides.iter();
    overrides.position(|(assigned, _)| assigned == variable)
}

fn filled(text: &[u8]) -> Option<&[u8]> {
    Some(text).filter(|text| !text.is_empty())
}

fn decimal(number: u64) -> Vec<u8> {
    let mut text = Vec::new();
    emit_decimal(number, &mut text);
    text
}
