//! Health checks: one worker probes the servers of all groups, for all workers. A supervisor watches which servers the
//! groups have, and keeps a task for each check of each of them.

/// One check of one server.
mod watching;

use super::{OwnedTask, Upstreams};
use crate::local::Local;
use crate::proxy::probe::Probe;
use crate::site::Site;
use mill_config::config::pass::PassTarget;
use mill_config::config::{Config, HealthCheck, LogLevel, ProbingLocation, Upstream};
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::sync::semaphore::Semaphore;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_upstream::group::Group;
use mill_upstream::peer::{Health, Peer};
use mill_upstream::probe::PROBES_AT_ONCE_MAX;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use watching::Opinions;

/// Starts the supervisor of a site that has come into force. The caller ends it when another one does; its tasks end
/// with it.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>, site: &Arc<Site>) -> Option<TaskId> {
    let groups = site.upstreams.probed(&site.config);
    adopt_states(local, site, &groups);
    if groups.is_empty() {
        return None;
    }
    let supervisor = Supervisor {
        permits: Semaphore::new(&local.scheduler, PROBES_AT_ONCE_MAX, usize::MAX),
        local: Rc::clone(local),
        site: Arc::clone(site),
        groups,
    };
    let started = local.scheduler.spawn(Purpose::Background, supervisor.run());
    if started.is_err() {
        let text = format_args!("no task is left for health checks");
        local.log_error(None, LogLevel::Error, text);
    }
    let started = started.ok();
    local.upstreams.set_supervisor(started);
    started
}

/// What is known of the servers from the configuration before: a server that nothing probes is healthy; one with a
/// mandatory check has to pass again, unless the check is `persistent`.
fn adopt_states<E: Engine>(local: &Local<E>, site: &Site, probed: &[ProbedGroup]) {
    let now = local.scheduler.now();
    for group in site.upstreams.all() {
        let checks = probed.iter().find(|probed| probed.is(group));
        let checks = checks.map(|probed| &probed.checks[..]).unwrap_or_default();
        let checks = checks.iter().map(|(_, check)| check);
        let is_forgotten = checks.len() == 0;
        let checks_again = checks
            .clone()
            .any(|check| check.mandatory && !check.persistent);
        for peer in group.peers().all() {
            let load = peer.load();
            load.set_failovers(checks.clone().flat_map(|check| &check.failovers));
            match load.health() {
                Health::Checking | Health::Unhealthy if is_forgotten => {
                    load.set_health(Health::Healthy, now);
                }
                Health::Healthy if checks_again => load.set_health(Health::Checking, now),
                _ => {}
            }
        }
    }
}

/// A group, and what it is probed by.
#[derive(Debug)]
pub(super) struct ProbedGroup {
    group: Arc<Group>,
    checks: Vec<(ProbingLocation, HealthCheck)>,
    /// That of the group when its servers were looked at.
    generation: u32,
    /// All servers of then are probed.
    is_complete: bool,
    servers: Vec<ProbedServer>,
}

/// The tasks that probe a server; they end with it.
#[derive(Debug)]
struct ProbedServer {
    peer: Arc<Peer>,
    _tasks: Vec<OwnedTask>,
}

impl ProbedGroup {
    fn is(&self, group: &Arc<Group>) -> bool {
        Arc::ptr_eq(&self.group, group)
    }

    fn has_changed(&self) -> bool {
        self.generation != self.group.generation()
    }
}

impl Upstreams {
    /// The groups that are probed, each once.
    fn probed(&self, config: &Config) -> Vec<ProbedGroup> {
        let mut found: Vec<ProbedGroup> = Vec::new();
        let places = config.http.iter().flat_map(|http| &http.probing);
        for place in places {
            let Some(group) = probed_by(place).and_then(|upstream| self.group(upstream)) else {
                continue;
            };
            let checks = place.location.health_checks.iter();
            let checks = checks.map(|check| (place.clone(), check.clone()));
            match found.iter_mut().find(|known| known.is(group)) {
                Some(known) => known.checks.extend(checks),
                None => found.push(ProbedGroup {
                    group: Arc::clone(group),
                    checks: checks.collect(),
                    generation: group.generation(),
                    is_complete: false,
                    servers: Vec::new(),
                }),
            }
        }
        found
    }

    /// Whether a new server of the group gets no requests before it has passed a check.
    pub(super) fn awaits_health_checks(config: &Config, upstream: &Upstream) -> bool {
        let mut places = config.http.iter().flat_map(|http| &http.probing);
        places.any(|place| {
            let is_probed = probed_by(place).is_some_and(|probed| probed.index == upstream.index);
            let mut checks = place.location.health_checks.iter();
            is_probed && checks.any(|check| check.mandatory)
        })
    }
}

/// The group whose servers a location probes.
fn probed_by(place: &ProbingLocation) -> Option<&Arc<Upstream>> {
    match &place.location.pass.as_ref()?.target {
        PassTarget::Group(upstream) => Some(upstream),
        PassTarget::Evaluated(_) => None,
    }
}

/// The task that keeps the others.
struct Supervisor<E: Engine> {
    local: Rc<Local<E>>,
    site: Arc<Site>,
    groups: Vec<ProbedGroup>,
    /// For probes that are under way.
    permits: Rc<Semaphore>,
}

impl<E: Engine> Supervisor<E> {
    async fn run(mut self) {
        let scheduler = Rc::clone(&self.local.scheduler);
        loop {
            for index in 0..self.groups.len() {
                self.follow(index);
            }
            // A name that this worker resolves again wakes the task; another worker's change is seen a little later.
            let until = scheduler.now() + LOOKING_PERIOD;
            poll_fn(|_| {
                if self.groups.iter().any(ProbedGroup::has_changed) {
                    return Poll::Ready(());
                }
                scheduler.poll_deadline(until).map(drop)
            })
            .await;
        }
    }

    /// Probes the servers that a group has now, and no others. A server that is `down` is not probed.
    fn follow(&mut self, index: usize) {
        let Some(known) = self.groups.get_mut(index) else {
            return;
        };
        let is_new = known.has_changed();
        if known.is_complete && !is_new {
            return;
        }
        known.generation = known.group.generation();
        let peers = known.group.peers();
        let wanted = || peers.all().filter(|peer| !peer.settings.down);
        let mut servers = std::mem::take(&mut known.servers);
        servers.retain(|server| wanted().any(|peer| peer.shares_load_with(&server.peer)));
        let mut is_complete = true;
        for peer in wanted() {
            let mut known = servers.iter();
            if !known.any(|server| server.peer.shares_load_with(peer)) {
                match self.probe(index, peer) {
                    Some(server) => servers.push(server),
                    None => is_complete = false,
                }
            }
        }
        if !is_complete && is_new {
            let text = format_args!("no task is left for health checks of some servers");
            self.local.log_error(None, LogLevel::Error, text);
        }
        if let Some(known) = self.groups.get_mut(index) {
            (known.servers, known.is_complete) = (servers, is_complete);
        }
    }

    /// Starts the tasks for a server; `None` if there are too many tasks.
    fn probe(&self, index: usize, peer: &Arc<Peer>) -> Option<ProbedServer> {
        let ProbedGroup { group, checks, .. } = self.groups.get(index)?;
        let opinions = Opinions::new(checks.iter().map(|(_, check)| check), peer);
        let failovers = checks.iter().flat_map(|(_, check)| &check.failovers);
        peer.load().set_failovers(failovers);
        let mut tasks = Vec::new();
        for (number, (place, check)) in checks.iter().enumerate() {
            let probe = Probe::new(&self.local, &self.site, place, check, group, peer)?;
            let task = watching::watch(probe, Rc::clone(&opinions), number, &self.permits);
            let scheduler = Rc::clone(&self.local.scheduler);
            let task = scheduler.spawn(Purpose::Background, task).ok()?;
            tasks.push(OwnedTask { scheduler, task });
        }
        Some(ProbedServer {
            peer: Arc::clone(peer),
            _tasks: tasks,
        })
    }
}

/// How often groups are looked at for servers that another worker has added or removed.
const LOOKING_PERIOD: Duration = Duration::from_secs(1);
