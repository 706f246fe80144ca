//! The request of a probe: a client's that there never was, spelled as any other.

use super::Probe;
use crate::challenge::Misses;
use crate::proxy::fault::Fault;
use crate::proxy::gateway;
use crate::proxy::http::{self, ContentFraming};
use crate::proxy::scan::HeadScan;
use crate::proxy::target::{Servers, Target};
use crate::request::{Arrival, ConnectionFacts, Message, Request};
use mill_config::config::pass::PassProtocol;
use mill_config::config::{HealthCheckKind, Variable};
use mill_http::escape::{EscapeSet, escape_uri};
use mill_http::h1::parse::parse_request;
use mill_http::h1::response::RequestKind;
use mill_http::limits::HeadRules;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_upstream::probe::grpc;
use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

impl<E: Engine> Probe<E> {
    /// The request that a client would have sent, had there been one.
    pub(super) fn request(&self) -> Box<Request> {
        let connection = ConnectionFacts {
            number: 0,
            listener: 0,
            peer: Address::Unix(Rc::from(&b""[..])),
            reached: OnceCell::new(),
            listening_at: Address::Ip(SocketAddr::from(([0; 4], 0))),
            transport: Cell::new(None),
            tls: OnceCell::new(),
            lacks_tls: Cell::new(false),
            proxy_header: None,
            misses: Misses::default(),
            started: self.local.scheduler.now(),
            is_free: false,
        };
        let mut message = Message::default();
        self.emit_client_request(&mut message.bytes);
        parse_request(&message.bytes, &mut message.head, &HeadRules::default());
        let arrival = Arrival {
            connection: Rc::new(connection),
            listener: 0,
            connection_requests: 0,
            message,
            pipelined: false,
        };
        let mut request = Request::of_location(arrival, &self.place, &self.site, &self.local);
        let without_client = WITHOUT_CLIENT.iter().cloned();
        request.overrides = without_client.map(|name| (name, Vec::new())).collect();
        if let Some(Variable::User(key)) = self.pass.memcached_key
            && let Some(place) = request.variables.get_mut(key)
        {
            *place = Some(self.check.uri.as_bytes().to_vec());
        }
        request
    }

    fn emit_client_request(&self, out: &mut Vec<u8>) {
        if self.check.kind == HealthCheckKind::Grpc {
            for part in [
                b"POST ",
                grpc::PATH,
                b" HTTP/1.1\r\nHost: ",
                &*self.pass.host,
                b"\r\nContent-Type: application/grpc\r\nTE: trailers\r\n\r\n",
            ] {
                out.extend_from_slice(part);
            }
            return;
        }
        out.extend_from_slice(self.check.method.as_bytes());
        out.push(b' ');
        for &byte in self.check.uri.as_bytes() {
            if byte <= b' ' || byte == 0x7f {
                escape_uri(EscapeSet::Uri, &[byte], out);
            } else {
                out.push(byte);
            }
        }
        for part in [b" HTTP/1.1\r\nHost: ", &*self.pass.host, b"\r\n\r\n"] {
            out.extend_from_slice(part);
        }
    }

    /// Appends the head of the request in the protocol of the location; returns what reads its answer's, and whether
    /// the connection closes then.
    pub(super) fn emit_request(
        &self,
        request: &mut Request,
        out: &mut Vec<u8>,
    ) -> Result<(HeadScan, bool), Fault> {
        let (protocol, location) = (self.pass.protocol, &self.place.location);
        let (mut kind, mut key, mut closes) = (RequestKind::Other, 0..0, false);
        if protocol == PassProtocol::Http {
            let is_grpc = self.check.kind == HealthCheckKind::Grpc;
            let (uri, content) = match is_grpc {
                true => (
                    grpc::PATH,
                    grpc::question(self.check.grpc.service.as_bytes()),
                ),
                false => (self.check.uri.as_bytes(), Vec::new()),
            };
            let target = Target {
                tls: self.pass.tls,
                pass: Arc::clone(&self.pass),
                servers: Servers::Group(Arc::clone(&self.group)),
                evaluated: None,
                whole_uri: Some(uri.to_vec()),
                key: Vec::new(),
            };
            let framing = match is_grpc || expects_content(self.check.method.as_bytes()) {
                true => ContentFraming::Length(content.len() as u64),
                false => ContentFraming::None,
            };
            closes = http::emit_request(&target, framing, None, request, &self.local, out).close;
            out.extend_from_slice(&content);
            kind = http::kind(request, &self.local);
        } else {
            let none = ContentFraming::None;
            key = gateway::emit_request(protocol, none, None, request, &self.local, out)?;
        }
        let key = out.get(key).unwrap_or_default();
        Ok((HeadScan::new(protocol, kind, location, key), closes))
    }
}

/// Whether a request of this method says that it has no content (RFC 9110 8.6).
fn expects_content(method: &[u8]) -> bool {
    matches!(method, b"POST" | b"PUT" | b"PATCH")
}

/// Addresses that a probe does not have.
const WITHOUT_CLIENT: [Variable; 7] = [
    Variable::RemoteAddr,
    Variable::RealipRemoteAddr,
    Variable::BinaryRemoteAddr,
    Variable::BinaryRemoteNet,
    Variable::ServerAddr,
    Variable::ServerPort,
    Variable::ProxyAddXForwardedFor,
];
