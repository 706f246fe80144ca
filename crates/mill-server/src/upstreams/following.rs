//! Servers whose names are resolved again while they are used (`resolve`): a task for each of them, at one worker for all.

use super::OwnedTask;
use crate::local::Local;
use crate::site::Site;
use mill_config::config::upstream::{UpstreamServer, UpstreamTarget};
use mill_config::config::{Config, LocationTree, LogLevel};
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_upstream::group::Group;
use mill_upstream::group::names::NamedServer;
use mill_upstream::resolver::Resolver;
use mill_upstream::resolver::members::{FollowedName, Members};
use std::rc::Rc;
use std::sync::Arc;

/// Starts the task that keeps those of a site, if there are names or may be. The caller ends it when another site is in
/// force; the others end with it.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>, site: &Site) -> Option<TaskId> {
    let may_change = site.config.http.is_some() && has_writing_api(&site.config);
    let groups = site.upstreams.iter().chain(site.stream_upstreams.iter());
    let wanted = groups.filter(|group| {
        let may_have_names = may_change && group.config().explicit;
        may_have_names || !group.names().is_empty()
    });
    let groups = wanted.filter_map(|group| {
        let name_servers = group.config().name_servers.as_ref()?;
        Some(FollowedGroup {
            group: Arc::clone(group),
            resolver: local.resolvers.of(name_servers, &site.resolver_zones),
            names: Vec::new(),
        })
    });
    let groups: Vec<FollowedGroup> = groups.collect();
    if groups.is_empty() {
        return None;
    }
    let started = local.scheduler.spawn(
        Purpose::Background,
        keep(Rc::clone(local), groups, may_change),
    );
    if started.is_err() {
        log_no_task(local);
    }
    started.ok()
}

/// A group, and the tasks of its names by their numbers.
struct FollowedGroup {
    group: Arc<Group>,
    resolver: Rc<Resolver>,
    names: Vec<(u32, OwnedTask)>,
}

async fn keep<E: Engine>(local: Rc<Local<E>>, mut groups: Vec<FollowedGroup>, may_change: bool) {
    loop {
        for known in &mut groups {
            known.update(&local);
        }
        if !may_change {
            return std::future::pending().await;
        }
        local.scheduler.sleep(LOOKING_PERIOD).await;
    }
}

impl FollowedGroup {
    /// Follows the names that the group has now, and no others.
    fn update<E: Engine>(&mut self, local: &Rc<Local<E>>) {
        let names = self.group.names();
        self.names
            .retain(|(id, _)| names.iter().any(|name| name.id == *id));
        for name in &names {
            if self.names.iter().any(|(id, _)| *id == name.id) {
                continue;
            }
            match follow(local, &self.group, &self.resolver, name) {
                Some(task) => self.names.push((name.id, task)),
                None => log_no_task(local),
            }
        }
    }
}

fn follow<E: Engine>(
    local: &Rc<Local<E>>,
    group: &Arc<Group>,
    resolver: &Rc<Resolver>,
    server: &NamedServer,
) -> Option<OwnedTask> {
    let name = followed_name(&server.settings)?;
    let host = String::from_utf8_lossy(&name.host).into_owned();
    let timeout = group.config().resolver_timeout;
    let (teller, group, id) = (Rc::clone(local), Arc::clone(group), server.id);
    let tell = move |members: Members<'_>| match members {
        Members::Are(members) => {
            if let Some(server) = group.name(id) {
                group.set_members(&server.settings, members);
                teller.upstreams.notice_servers(&teller.scheduler);
            }
        }
        Members::Failed(error) => {
            let text = format_args!("{host} could not be resolved ({error})");
            teller.log_error(None, LogLevel::Error, text);
        }
    };
    let task = Rc::clone(resolver).follow(name, timeout, tell);
    let scheduler = Rc::clone(&local.scheduler);
    let task = scheduler.spawn(Purpose::Background, task).ok()?;
    Some(OwnedTask { scheduler, task })
}

fn log_no_task<E: Engine>(local: &Local<E>) {
    let text = format_args!("no task is left to follow the names of servers");
    local.log_error(None, LogLevel::Error, text);
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

/// Whether servers may be changed while the configuration is in force.
fn has_writing_api(config: &Config) -> bool {
    fn in_tree(tree: &LocationTree) -> bool {
        tree.iter().any(|location| {
            location.api.is_some_and(|api| api.write) || in_tree(&location.locations)
        })
    }
    let servers = config.http.iter().flat_map(|http| &http.servers);
    servers.into_iter().any(|server| {
        let mut named = server.named_locations.iter();
        named.any(|(_, location)| location.api.is_some_and(|api| api.write))
            || in_tree(&server.locations)
    })
}

/// How often groups are looked at for names that the API has added or removed.
const LOOKING_PERIOD: Duration = Duration::from_secs(1);
