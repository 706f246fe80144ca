//! Servers whose names are resolved again while they are used (`resolve`): a task for each of them, at one worker for
//! all.

use crate::local::Local;
use crate::site::Site;
use mill_config::config::LogLevel;
use mill_config::config::upstream::{Upstream, UpstreamServer, UpstreamTarget};
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_upstream::group::Group;
use mill_upstream::resolver::members::{FollowedName, Members};
use std::rc::Rc;
use std::sync::Arc;

/// Starts the tasks for all groups of a site. The caller ends them when another site is in force.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>, site: &Site) -> Vec<TaskId> {
    let mut tasks = Vec::new();
    let groups = site.config.http.iter().flat_map(|http| &http.upstreams);
    for upstream in groups {
        let Some(group) = site.upstreams.group(upstream) else {
            continue;
        };
        for server in 0..upstream.servers.len() {
            tasks.extend(follow(local, site, group, server));
        }
    }
    tasks
}

fn follow<E: Engine>(
    local: &Rc<Local<E>>,
    site: &Site,
    group: &Arc<Group>,
    number: usize,
) -> Option<TaskId> {
    let upstream: &Upstream = group.config();
    let name = followed_name(upstream.servers.get(number)?)?;
    let name_servers = upstream.name_servers.as_ref()?;
    let resolver = local.resolvers.of(name_servers, &site.resolver_zones);
    let host = String::from_utf8_lossy(&name.host).into_owned();
    let (teller, group) = (Rc::clone(local), Arc::clone(group));
    let tell = move |members: Members<'_>| match members {
        Members::Are(members) => {
            if let Some(server) = group.config().servers.get(number) {
                group.set_members(server, members);
                teller.upstreams.notice_servers(&teller.scheduler);
            }
        }
        Members::Failed(error) => {
            let text = format_args!("{host} could not be resolved ({error})");
            teller.log_error(None, LogLevel::Error, text);
        }
    };
    let task = resolver.follow(name, upstream.resolver_timeout, tell);
    let started = local.scheduler.spawn(Purpose::Background, task);
    if started.is_err() {
        let text = format_args!("no task is left to follow the names of servers");
        local.log_error(None, LogLevel::Error, text);
    }
    started.ok()
}

/// `None` for a server whose address is known.
fn followed_name(server: &UpstreamServer) -> Option<FollowedName> {
    let UpstreamTarget::Name { host, port } = &server.target else {
        return None;
    };
    Some(FollowedName {
        host: host.as_bytes().into(),
        port: *port,
        service: server
            .service
            .as_ref()
            .map(|service| service.as_bytes().into()),
        backup: server.backup,
    })
}
