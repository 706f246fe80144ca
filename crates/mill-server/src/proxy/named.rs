//! Servers that variables name: `proxy_pass http://$backend`. A group of that name, else a host, whose name is resolved
//! now.

use super::fault::{Fault, Step};
use super::target::{Servers, Target, key};
use crate::exchange::Exchange;
use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use crate::upstreams::WorkerGroup;
use mill_config::config::pass::{Pass, PassProtocol};
use mill_config::config::{LogLevel, UpstreamAddress};
use mill_config::url::Url;
use mill_runtime::engine::Engine;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Why an evaluated address is none, in nginx's words.
pub(super) enum BadAddress<'a> {
    NoScheme(&'a [u8]),
    Malformed(&'static str, &'a [u8]),
    NoPort(Vec<u8>),
}

/// What the evaluated argument of `…_pass` says.
pub(super) fn target<'a, E: Engine>(
    text: &'a [u8],
    pass: &Arc<Pass>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<Target, BadAddress<'a>> {
    let is_http = pass.protocol == PassProtocol::Http && !pass.is_grpc;
    let (address, tls, default_port) = match pass.protocol {
        PassProtocol::Http if pass.is_grpc => behind_grpc_scheme(text),
        PassProtocol::Http => behind_scheme(text)?,
        PassProtocol::Uwsgi => match after(text, b"suwsgi://") {
            Some(address) => (address, true, 0),
            None => (after(text, b"uwsgi://").unwrap_or(text), false, 0),
        },
        _ => (text, false, 0),
    };
    let url = Url::parse(address, default_port, is_http);
    let url = url.map_err(|fault| BadAddress::Malformed(fault, address))?;
    let port = url.port_text.map(|_| url.port);
    let site = Arc::clone(&request.site);
    let http = site.config.http.as_ref();
    let upstream = http.and_then(|http| http.upstream(url.host, port, default_port));
    let group = upstream.and_then(|upstream| site.upstreams.group(upstream));
    let servers = match group {
        Some(group) => Servers::Group(Arc::clone(group)),
        None if url.port == 0 && !url.is_unix() => {
            return Err(BadAddress::NoPort(url.host.to_vec()));
        }
        None => Servers::Host {
            host: url.host.to_vec(),
            port: url.port,
            address: url.address.clone(),
        },
    };
    Ok(Target {
        pass: Arc::clone(pass),
        servers,
        tls,
        evaluated: Some(proxy_host(&url, default_port)),
        whole_uri: is_http.then(|| whole_uri(url.uri)),
        key: upstream.map_or_else(Vec::new, |upstream| key(upstream, request, local)),
    })
}

/// The address behind the scheme, whether that asks for TLS, and its port.
fn behind_scheme(text: &[u8]) -> Result<(&[u8], bool, u16), BadAddress<'_>> {
    match (after(text, b"http://"), after(text, b"https://")) {
        (Some(address), _) if !address.is_empty() => Ok((address, false, HTTP_PORT)),
        (None, Some(address)) if !address.is_empty() => Ok((address, true, HTTPS_PORT)),
        _ => Err(BadAddress::NoScheme(text)),
    }
}

/// The same for gRPC, where the scheme may be left out.
fn behind_grpc_scheme(text: &[u8]) -> (&[u8], bool, u16) {
    match (after(text, b"grpc://"), after(text, b"grpcs://")) {
        (Some(address), _) => (address, false, HTTP_PORT),
        (None, Some(address)) => (address, true, HTTPS_PORT),
        (None, None) => (text, false, HTTP_PORT),
    }
}

fn after<'a>(text: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = text.split_at_checked(scheme.len())?;
    begin.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// `$proxy_host` and `$proxy_port`.
fn proxy_host(url: &Url<'_>, default_port: u16) -> (Vec<u8>, Vec<u8>) {
    match url.port_text {
        _ if url.is_unix() => (b"localhost".to_vec(), Vec::new()),
        Some(port) if url.port != default_port => ([url.host, b":", port].concat(), port.to_vec()),
        _ => (url.host.to_vec(), default_port.to_string().into_bytes()),
    }
}

fn whole_uri(uri: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if uri.starts_with(b"?") { b"/" } else { b"" };
    [slash, uri].concat()
}

/// This worker's part of the group; a host's name is resolved first. The client may go meanwhile.
pub(super) async fn group<X: Exchange>(
    servers: &Servers,
    needs_client: bool,
    exchange: &X,
    request: &Request,
    local: &Local<X::Engine>,
) -> Result<Rc<WorkerGroup<X::Engine>>, Fault> {
    let (host, port, addresses) = match servers {
        Servers::Group(group) => return Ok(local.upstreams.of(group, || local.engine.random())),
        Servers::Host {
            host,
            port,
            address: Some(address),
        } => (host, *port, vec![address.clone()]),
        Servers::Host { host, port, .. } => {
            let found = resolve(host, needs_client, exchange, request, local).await?;
            let at = |ip: &_| UpstreamAddress::Ip(SocketAddr::new(*ip, *port));
            (host, *port, found.iter().map(at).collect())
        }
    };
    let now = local.scheduler.now();
    let upstreams = &local.upstreams;
    Ok(upstreams.of_evaluated(host, port, addresses, now))
}

async fn resolve<X: Exchange>(
    host: &[u8],
    needs_client: bool,
    exchange: &X,
    request: &Request,
    local: &Local<X::Engine>,
) -> Result<Vec<IpAddr>, Fault> {
    let log = |text: fmt::Arguments<'_>| local.log_error(Some(request), LogLevel::Error, text);
    let location = &request.location;
    let Some(name_servers) = &location.resolver.name_servers else {
        log(format_args!(
            "no resolver defined to resolve {}",
            Text(host)
        ));
        return Err(Fault::Logged);
    };
    let resolver = local
        .resolvers
        .of(name_servers, &request.site.resolver_zones);
    let mut resolving = pin!(resolver.resolve(host, location.resolver.timeout));
    let resolved = poll_fn(|context| match resolving.as_mut().poll(context) {
        Poll::Ready(resolved) => Poll::Ready(Some(resolved)),
        Poll::Pending if needs_client && exchange.is_abandoned() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    match resolved.await {
        Some(Ok(found)) => {
            let mut addresses: Vec<_> = found.as_slice().to_vec();
            addresses.sort_unstable();
            Ok(addresses)
        }
        Some(Err(error)) => {
            log(format_args!(
                "{} could not be resolved ({error})",
                Text(host)
            ));
            Err(Fault::Logged)
        }
        None => {
            let fault = Fault::ClientGone(Step::Connecting);
            local.log_error(Some(request), fault.level(), format_args!("{fault}"));
            Err(fault)
        }
    }
}

impl fmt::Display for BadAddress<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme(text) => write!(formatter, "invalid URL prefix in \"{}\"", Text(text)),
            Self::Malformed(fault, text) => {
                write!(formatter, "{fault} in upstream \"{}\"", Text(text))
            }
            Self::NoPort(host) => write!(formatter, "no port in upstream \"{}\"", Text(host)),
        }
    }
}

/// The ports of `http://` and `https://` without one.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
