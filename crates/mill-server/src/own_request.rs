//! A request of the server's own, which no client has asked for: to an authority, or about a certificate. HTTP/1.1, a
//! connection each.

use crate::local::Local;
use crate::log::Errno;
use crate::product::SIGNATURE;
use crate::proxy::fault::number;
use crate::site::Site;
use mill_config::config::{NameServers, UpstreamAddress};
use mill_config::url::Url;
use mill_http::h1::response::{RequestKind, ResponseBody, ResponseScan};
use mill_http::limits::ResponseRules;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError};
use mill_runtime::time::Duration;
use mill_tls::client_context::ClientContext;
use mill_tls::handshake::Fault;
use mill_tls::transport::{Transport, TransportOf};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// Where a request goes, and what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    /// Its type, and the content itself.
    pub(crate) content: Option<(&'a str, &'a [u8])>,
    /// For `https`; without, only `http` is spoken, and with it only `https`.
    pub(crate) context: Option<&'a ClientContext>,
    pub(crate) name_servers: Option<&'a Arc<NameServers>>,
    pub(crate) resolver_timeout: Duration,
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names and values.
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) content: Vec<u8>,
}

impl OwnRequest<'_> {
    /// Sends it and reads the answer. The error says in words why there is none.
    pub(crate) async fn send<E: Engine>(
        &self,
        site: &Site,
        local: &Local<E>,
    ) -> Result<Reply, String> {
        let target = Target::parse(self.url, self.context.is_some())?;
        let deadline = local.scheduler.now() + TIME_MAX;
        let asked = async {
            let stream = self.connect(&target, site, local).await?;
            stream.write(Payload::Copy(&self.emit(&target)));
            let kind = match self.method {
                "HEAD" => RequestKind::Head,
                _ => RequestKind::Other,
            };
            read(&stream, kind).await
        };
        let timed_out = || format!("no answer from {} in time", target.authority);
        let answer = local.scheduler.until(deadline, asked).await;
        answer.map_err(|_| timed_out())?
    }
    async fn connect<E: Engine>(
        &self,
        target: &Target<'_>,
        site: &Site,
        local: &Local<E>,
    ) -> Result<TransportOf<E>, String> {
        let addresses = self.addresses(target, site, local).await?;
        let mut failed = String::from("no address");
        for address in addresses {
            let task = local.scheduler.current();
            let remote = Address::Ip(address);
            let stream = local
                .engine
                .connect(&remote, &ConnectOptions::default(), task);
            let stream = match stream {
                Ok(stream) => match self.context {
                    None => Transport::Tcp(stream),
                    Some(context) => {
                        let (config, name) = context.for_server(target.host(), false);
                        Transport::client(stream, config, name, local.tls.clone())
                    }
                },
                Err(error) => {
                    failed = format!("connect() to {address} failed ({})", Errno(number(error)));
                    continue;
                }
            };
            stream.begin_tls();
            let deadline = local.scheduler.now() + CONNECT_TIME_MAX;
            let established = poll_fn(|_| match stream.poll_drained(0) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => local.scheduler.poll_deadline(deadline).map(|_| None),
            });
            match established.await {
                Some(Ok(())) => return Ok(stream),
                Some(Err(error)) => failed = words(&stream, error, address),
                None => failed = format!("connecting to {address} has timed out"),
            }
        }
        Err(failed)
    }

    async fn addresses<E: Engine>(
        &self,
        target: &Target<'_>,
        site: &Site,
        local: &Local<E>,
    ) -> Result<Vec<SocketAddr>, String> {
        if let Some(UpstreamAddress::Ip(address)) = &target.url.address {
            return Ok(vec![*address]);
        }
        let host = String::from_utf8_lossy(target.url.host);
        let Some(name_servers) = self.name_servers else {
            return Err(format!("no resolver defined to resolve {host}"));
        };
        let resolver = local.resolvers.of(name_servers, &site.resolver_zones);
        let timeout = self.resolver_timeout;
        let found = resolver.resolve(target.url.host, timeout).await;
        let found = found.map_err(|error| format!("{host} could not be resolved ({error})"))?;
        let at = |ip| SocketAddr::new(ip, target.url.port);
        Ok(found.iter().map(at).collect())
    }

    fn emit(&self, target: &Target<'_>) -> Vec<u8> {
        let (method, authority, path) = (self.method, target.authority, target.path);
        let slash = match path.starts_with('/') {
            true => "",
            false => "/",
        };
        let mut text = format!(
            "{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {SIGNATURE}\r\n\
         Accept-Language: en\r\nConnection: close\r\n"
        );
        let mut content: &[u8] = b"";
        if let Some((kind, bytes)) = self.content {
            let length = bytes.len();
            text += &format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
            content = bytes;
        }
        text += "\r\n";
        [text.as_bytes(), content].concat()
    }
}

/// A URL, as far as it is needed.
struct Target<'a> {
    authority: &'a str,
    path: &'a str,
    url: Url<'a>,
}

impl<'a> Target<'a> {
    fn parse(text: &'a str, is_tls: bool) -> Result<Self, String> {
        let (prefix, port) = match is_tls {
            true => ("https://", HTTPS_PORT),
            false => ("http://", HTTP_PORT),
        };
        let invalid = || format!("\"{}\" is no URL of {prefix}", text.escape_debug());
        let rest = text.strip_prefix(prefix).ok_or_else(invalid)?;
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let url = Url::parse(authority.as_bytes(), port, false).map_err(|_| invalid())?;
        let is_address = !matches!(url.address, Some(UpstreamAddress::Unix(_)));
        match is_address && !authority.is_empty() {
            true => Ok(Self {
                authority,
                path,
                url,
            }),
            false => Err(invalid()),
        }
    }

    /// The host without the brackets of an address.
    fn host(&self) -> &'a [u8] {
        let host = self.url.host;
        let inner = host
            .strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"));
        inner.unwrap_or(host)
    }
}

fn words<S: Stream>(stream: &Transport<S>, error: StreamError, address: SocketAddr) -> String {
    match stream.tls_fault() {
        Some(fault) if fault.is_of_certificate() => {
            format!("the certificate of {address} is not valid ({fault})")
        }
        Some(fault) if fault != Fault::Closed => {
            format!("the handshake with {address} failed ({fault})")
        }
        _ => format!("connect() to {address} failed ({})", Errno(number(error))),
    }
}

async fn read<S: Stream>(stream: &S, kind: RequestKind) -> Result<Reply, String> {
    let rules = ResponseRules::default();
    let mut received = Vec::new();
    let head = loop {
        let is_open = receive(stream, &mut received).await?;
        let parsed = ResponseScan::new(kind, &rules).parse(&received);
        let parsed = parsed.map_err(|fault| format!("the answer is invalid ({fault:?})"))?;
        match parsed {
            Some(head) if head.is_interim() => {
                received.drain(..head.len);
            }
            Some(head) => break head,
            None if !is_open => {
                return Err(String::from("the connection was closed"));
            }
            None => {}
        }
    };
    let mut answer = Reply {
        status: head.status,
        fields: head
            .fields(&received)
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect(),
        content: Vec::new(),
    };
    let mut body = ResponseBody::new(head.framing, &rules);
    let mut pending = received.split_off(head.len);
    let mut is_open = true;
    loop {
        let content = &mut answer.content;
        let step = body.on_bytes_with(&pending, |piece| content.extend_from_slice(piece));
        let step = step.map_err(|fault| format!("the answer is invalid ({fault:?})"))?;
        pending.drain(..step.consumed);
        if body.is_complete() {
            return Ok(answer);
        }
        if answer.content.len() > CONTENT_BYTES_MAX {
            return Err(String::from("the answer is too long"));
        }
        if !is_open {
            let is_whole = body.on_end_of_stream().is_ok();
            let cut = || String::from("the connection was closed in an answer");
            return is_whole.then_some(answer).ok_or_else(cut);
        }
        is_open = receive(stream, &mut pending).await?;
    }
}

/// Waits for more, and takes it; false once nothing more comes.
async fn receive<S: Stream>(stream: &S, into: &mut Vec<u8>) -> Result<bool, String> {
    let readable = stream.readable(1).await;
    let readable = readable.map_err(|error| format!("recv() failed ({})", Errno(number(error))))?;
    stream.read(|bytes| {
        into.extend_from_slice(bytes);
        (bytes.len(), ())
    });
    match into.len() <= CONTENT_BYTES_MAX {
        true => Ok(readable.unread > 0 || !readable.finished),
        false => Err(String::from("the answer is too long")),
    }
}

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// For a connection and its handshake.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// For a request and its answer.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The longest answers are chains of certificates.
const CONTENT_BYTES_MAX: usize = 256 * 1024;
