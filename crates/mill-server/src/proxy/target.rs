//! Where a request goes: the group of servers, and the URI there.

use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::pass::{Pass, PassTarget};
use mill_config::config::{Balancing, Upstream};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_upstream::group::Group;
use std::sync::Arc;

use super::http::emit_uri;

/// What `proxy_pass` says for one request.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) pass: Arc<Pass>,
    pub(super) group: Arc<Group>,
    /// `$proxy_host`.
    pub(super) host: Vec<u8>,
    /// Made from variables: replaces the whole target unless it is empty.
    pub(super) whole_uri: Option<Vec<u8>>,
    /// What the choice of a server depends on, if the group's method has a key.
    pub(super) key: Vec<u8>,
}

/// Evaluates `proxy_pass` for a request.
pub(super) fn evaluate<E: Engine>(
    pass: &Arc<Pass>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<Target, Status> {
    let PassTarget::Group(upstream) = &pass.target else {
        return Err(Status::INTERNAL_SERVER_ERROR);
    };
    let group = request.site.upstreams.group(upstream);
    Ok(Target {
        pass: Arc::clone(pass),
        group: Arc::clone(group.ok_or(Status::INTERNAL_SERVER_ERROR)?),
        host: pass.host.to_vec(),
        whole_uri: None,
        key: key(upstream, request, local),
    })
}

fn key<E: Engine>(upstream: &Upstream, request: &mut Request, local: &Local<E>) -> Vec<u8> {
    match &upstream.balancing {
        Balancing::Hash { key, .. } => variables::evaluate(key, request, local),
        _ => Vec::new(),
    }
}

impl Target {
    /// The URL at this server, for error logs.
    pub(super) fn url(&self, peer: &[u8], request: &Request) -> Vec<u8> {
        let mut url = b"http://".to_vec();
        url.extend_from_slice(peer);
        emit_uri(self, request, &mut url);
        url
    }
}
