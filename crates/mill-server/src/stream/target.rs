//! Which group of servers a session is passed to.

use super::SessionStatus;
use super::session::Session;
use crate::local::Local;
use crate::log::Text;
use crate::upstreams::WorkerGroup;
use crate::variables::session as variables;
use mill_config::config::{Balancing, LogLevel, PassTarget, Template, Upstream, UpstreamAddress};
use mill_config::url::Url;
use mill_runtime::engine::Engine;
use mill_upstream::group::Group;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Servers, and what chooses among them.
pub(super) struct Target<E: Engine> {
    pub(super) group: Rc<WorkerGroup<E>>,
    /// The key of `hash`.
    pub(super) key: Vec<u8>,
    /// The host of `proxy_pass`, without a port: the name for TLS unless `proxy_ssl_name` is written.
    pub(super) host: Vec<u8>,
}

/// The group; a host that variables name is resolved first.
pub(super) async fn find<E: Engine>(
    pass: &PassTarget,
    session: &mut Session,
    local: &Local<E>,
) -> Result<Target<E>, SessionStatus> {
    match pass {
        PassTarget::Group(upstream) => {
            let group = session.site.stream_upstreams.group(upstream).cloned();
            let group = group.ok_or(SessionStatus::INTERNAL)?;
            Ok(of_group(&group, session, local))
        }
        PassTarget::Evaluated(template) => evaluated(template, session, local).await,
    }
}

fn of_group<E: Engine>(group: &Arc<Group>, session: &mut Session, local: &Local<E>) -> Target<E> {
    let upstream = Arc::clone(group.config());
    Target {
        group: local.upstreams.of(group, || local.engine.random()),
        key: key(&upstream, session, local),
        host: upstream.name.to_vec(),
    }
}

fn key<E: Engine>(upstream: &Upstream, session: &mut Session, local: &Local<E>) -> Vec<u8> {
    match &upstream.balancing {
        Balancing::Hash { key, .. } => variables::evaluate(key, session, local),
        _ => Vec::new(),
    }
}

async fn evaluated<E: Engine>(
    template: &Template,
    session: &mut Session,
    local: &Local<E>,
) -> Result<Target<E>, SessionStatus> {
    let text = variables::evaluate(template, session, local);
    let refuse = |line: fmt::Arguments<'_>, session: &Session| {
        session.log_error(LogLevel::Error, line, local);
        SessionStatus::INTERNAL
    };
    let url = Url::parse(&text, 0, false).map_err(|fault| {
        refuse(
            format_args!("{fault} in upstream \"{}\"", Text(&text)),
            session,
        )
    })?;
    let stream = session.site.config.stream.as_ref();
    let port = url.port_text.map(|_| url.port);
    let known = stream.and_then(|stream| stream.upstream(url.host, port));
    if let Some(group) = known.and_then(|known| session.site.stream_upstreams.group(known)) {
        let group = Arc::clone(group);
        return Ok(of_group(&group, session, local));
    }
    if url.port == 0 && !url.is_unix() {
        let line = format_args!("no port in upstream \"{}\"", Text(url.host));
        return Err(refuse(line, session));
    }
    let addresses = match url.address {
        Some(address) => vec![address],
        None => resolve(url.host, url.port, session, local).await?,
    };
    let now = local.scheduler.now();
    Ok(Target {
        group: local
            .upstreams
            .of_evaluated(url.host, url.port, addresses, now),
        key: Vec::new(),
        host: url.host.to_vec(),
    })
}

async fn resolve<E: Engine>(
    host: &[u8],
    port: u16,
    session: &Session,
    local: &Local<E>,
) -> Result<Vec<UpstreamAddress>, SessionStatus> {
    let settings = &session.server.settings.resolver;
    let Some(name_servers) = &settings.name_servers else {
        let line = format_args!("no resolver defined to resolve {}", Text(host));
        session.log_error(LogLevel::Error, line, local);
        return Err(SessionStatus::INTERNAL);
    };
    let resolver = local
        .resolvers
        .of(name_servers, &session.site.resolver_zones);
    match resolver.resolve(host, settings.timeout).await {
        Ok(found) => {
            let mut all: Vec<_> = found.as_slice().to_vec();
            all.sort_unstable();
            let at = |ip: &_| UpstreamAddress::Ip(SocketAddr::new(*ip, port));
            Ok(all.iter().map(at).collect())
        }
        Err(error) => {
            let line = format_args!("{} could not be resolved ({error})", Text(host));
            session.log_error(LogLevel::Error, line, local);
            Err(SessionStatus::INTERNAL)
        }
    }
}
