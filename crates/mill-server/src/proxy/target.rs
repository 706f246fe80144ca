//! Where a request goes: the group of servers, and the URI there.

use super::http::emit_uri;
use super::named;
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::pass::{Pass, PassProtocol, PassTarget};
use mill_config::config::{Balancing, LogLevel, Upstream, UpstreamAddress};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_upstream::group::Group;
use std::sync::Arc;

/// What `proxy_pass` says for one request.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) pass: Arc<Pass>,
    /// `https://`.
    pub(super) tls: bool,
    pub(super) servers: Servers,
    /// `$proxy_host` and `$proxy_port` where variables have made them.
    pub(super) evaluated: Option<(Vec<u8>, Vec<u8>)>,
    /// Made from variables: replaces the whole target unless it is empty.
    pub(super) whole_uri: Option<Vec<u8>>,
    /// What the choice of a server depends on, if the group's method has a key.
    pub(super) key: Vec<u8>,
}

/// Which servers a request goes to.
#[derive(Debug)]
pub(super) enum Servers {
    Group(Arc<Group>),
    /// A host that variables have named, and its address unless it is a name.
    Host {
        host: Vec<u8>,
        port: u16,
        address: Option<UpstreamAddress>,
    },
}

/// Evaluates `proxy_pass` for a request.
pub(super) fn evaluate<E: Engine>(
    pass: &Arc<Pass>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<Target, Status> {
    let upstream = match &pass.target {
        PassTarget::Group(upstream) => upstream,
        PassTarget::Evaluated(template) => {
            let text = variables::evaluate(template, request, local);
            return named::target(&text, pass, request, local).map_err(|fault| {
                local.log_error(Some(request), LogLevel::Error, format_args!("{fault}"));
                Status::INTERNAL_SERVER_ERROR
            });
        }
    };
    let group = request.site.upstreams.group(upstream);
    Ok(Target {
        pass: Arc::clone(pass),
        tls: pass.tls,
        servers: Servers::Group(Arc::clone(group.ok_or(Status::INTERNAL_SERVER_ERROR)?)),
        evaluated: None,
        whole_uri: None,
        key: key(upstream, request, local),
    })
}

/// The key of the group's method for this request.
pub(super) fn key<E: Engine>(
    upstream: &Upstream,
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    match &upstream.balancing {
        Balancing::Hash { key, .. } => variables::evaluate(key, request, local),
        _ => Vec::new(),
    }
}

impl Target {
    /// `$proxy_host`.
    pub(super) fn host(&self) -> &[u8] {
        let evaluated = self.evaluated.as_ref();
        evaluated.map_or(&*self.pass.host, |(host, _)| host)
    }

    /// The URL at this server, for error logs.
    pub(super) fn emit_url(&self, server: &[u8], request: &Request, url: &mut Vec<u8>) {
        let protocol = self.pass.protocol;
        let scheme = match protocol {
            PassProtocol::Http if self.pass.is_grpc && self.tls => "grpcs",
            PassProtocol::Http if self.pass.is_grpc => "grpc",
            PassProtocol::Http if self.tls => "https",
            PassProtocol::Http => "http",
            PassProtocol::Uwsgi if self.tls => "suwsgi",
            other => other.prefix(),
        };
        for part in [scheme.as_bytes(), b"://", server] {
            url.extend_from_slice(part);
        }
        if protocol == PassProtocol::Http {
            emit_uri(self, request, url);
        }
    }
}
