//! TLS to servers.

use super::fault::HANDSHAKING;
use super::target::Target;
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::LogLevel;
use mill_config::config::pass::Pass;
use mill_runtime::engine::Engine;
use mill_tls::client_context::ClientContext;
use mill_tls::handshake::Fault;
use mill_tls::transport::{Transport, TransportOf};
use std::sync::Arc;

/// How the connections of a request are secured.
#[derive(Debug)]
pub(crate) struct Securing {
    context: ClientContext,
    /// `proxy_ssl_name`, without a port.
    name: Vec<u8>,
}

impl Securing {
    pub(crate) fn new(context: ClientContext, name: &[u8]) -> Self {
        Self {
            context,
            name: without_port(name).to_vec(),
        }
    }

    /// `None`: they are in clear.
    pub(super) fn of<E: Engine>(
        target: &Target,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Self> {
        if !target.tls {
            return None;
        }
        Self::to_host(target.host(), request, local)
    }

    /// The same for a pass whose target has no variables.
    pub(super) fn of_pass<E: Engine>(
        pass: &Pass,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Self> {
        let host = pass.tls.then_some(&pass.host)?;
        Self::to_host(host, request, local)
    }

    fn to_host<E: Engine>(host: &[u8], request: &mut Request, local: &Local<E>) -> Option<Self> {
        let settings = Arc::clone(&request.location.proxy_tls);
        let context = request.site.tls.client(&settings)?.clone();
        let name = match &settings.name {
            Some(template) => variables::evaluate(template, request, local),
            None => host.to_vec(),
        };
        Some(Self::new(context, &name))
    }

    /// What a connection is kept for.
    pub(super) fn scope(&self) -> (u64, Box<[u8]>) {
        (self.context.number(), self.name.as_slice().into())
    }

    /// A connection that is secured once [`Transport::begin_tls`] is called.
    pub(crate) fn wrap<E: Engine>(
        &self,
        stream: E::Stream,
        is_http2: bool,
        local: &Local<E>,
    ) -> TransportOf<E> {
        let (config, name) = self.context.for_server(&self.name, is_http2);
        Transport::client(stream, config, name, local.tls.clone())
    }
}

/// Logs why a handshake failed; `false` if it was not the handshake that failed.
pub(super) fn log_fault<E: Engine>(
    stream: &TransportOf<E>,
    request: Option<&Request>,
    local: &Local<E>,
) -> bool {
    let Some(fault) = stream.tls_fault() else {
        return false;
    };
    let words = words(&fault);
    local.log_error(
        request,
        LogLevel::Error,
        format_args!("{words} while {HANDSHAKING}"),
    );
    true
}

/// Why a handshake with a server failed.
pub(crate) fn words(fault: &Fault) -> String {
    if let Some(name) = fault.unmatched_name() {
        return format!("upstream SSL certificate does not match \"{name}\"");
    }
    match fault {
        Fault::Protocol(error) if fault.is_of_certificate() => {
            format!("upstream SSL certificate verify error: ({error})")
        }
        Fault::Closed => format!("{fault}"),
        _ => format!("SSL_do_handshake() failed (SSL: {fault})"),
    }
}

/// A host without its port; an address of IPv6 without its brackets.
fn without_port(name: &[u8]) -> &[u8] {
    if let Some(rest) = name.strip_prefix(b"[") {
        let end = rest.iter().position(|byte| *byte == b']');
        return end.and_then(|end| rest.get(..end)).unwrap_or(rest);
    }
    let colon = name.iter().position(|byte| *byte == b':');
    colon.and_then(|colon| name.get(..colon)).unwrap_or(name)
}
