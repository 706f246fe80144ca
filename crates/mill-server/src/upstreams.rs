//! A worker's connections to upstream servers, and its choice among them.

/// Servers whose names are resolved again while they are used.
pub(crate) mod following;

/// Health checks.
pub(crate) mod probing;

/// Requests that wait for a server.
pub(crate) mod queue;

/// Closing idle connections.
pub(crate) mod sweeping;

use crate::site::Site;
use mill_config::config::{Config, Upstream, UpstreamAddress};
use mill_multiplex::Multiplexed;
use mill_multiplex::call::Call;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use mill_tls::transport::TransportOf;
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use mill_upstream::pool::{IdleConnections, Reuse, Scope};
use mill_upstream::select::Selector;
use queue::{Freed, Queue};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use sweeping::Sweeping;

/// The groups that this worker has used, in any configuration that is still in use.
pub struct WorkerUpstreams<E: Engine> {
    groups: RefCell<Vec<Rc<WorkerGroup<E>>>>,
    /// Hosts that variables have named, by `host:port` in lower case.
    evaluated: RefCell<BTreeMap<Vec<u8>, Evaluated<E>>>,
    sweeping: Rc<Sweeping>,
    /// The task that follows which servers are probed.
    supervisor: Cell<Option<TaskId>>,
}

/// A host that variables have named.
struct Evaluated<E: Engine> {
    group: Rc<WorkerGroup<E>>,
    addresses: Vec<UpstreamAddress>,
    used: Instant,
}

/// One group, as this worker sees it.
pub struct WorkerGroup<E: Engine> {
    pub(crate) group: Arc<Group>,
    pub(crate) selector: RefCell<Selector>,
    /// Requests that wait for a server, if the group has a queue.
    pub(crate) queue: Option<Rc<Queue>>,
    idle: RefCell<IdleConnections<TransportOf<E>>>,
    /// Connections of HTTP/2, which their own tasks hold.
    multiplexed: RefCell<Vec<Shared<E>>>,
    /// How many of them the group knows of.
    idle_counted: Cell<usize>,
    sweeping: Rc<Sweeping>,
}

impl<E: Engine> WorkerUpstreams<E> {
    pub(crate) fn new(scheduler: &Rc<Scheduler>) -> Self {
        Self {
            sweeping: Rc::new(Sweeping::new(Rc::clone(scheduler))),
            groups: RefCell::default(),
            evaluated: RefCell::default(),
            supervisor: Cell::new(None),
        }
    }

    fn set_supervisor(&self, supervisor: Option<TaskId>) {
        self.supervisor.set(supervisor);
    }

    /// A group has other servers.
    fn notice_servers(&self, scheduler: &Scheduler) {
        if let Some(supervisor) = self.supervisor.get() {
            scheduler.wake_soon(supervisor);
        }
    }

    /// This worker's part of a group, made at its first use.
    pub(crate) fn of(&self, group: &Arc<Group>, seed: impl FnOnce() -> u64) -> Rc<WorkerGroup<E>> {
        let mut groups = self.groups.borrow_mut();
        if let Some(known) = groups.iter().find(|known| Arc::ptr_eq(&known.group, group)) {
            return Rc::clone(known);
        }
        let new = WorkerGroup::new(group, seed(), &self.sweeping);
        groups.push(Rc::clone(&new));
        new
    }

    /// This worker's group for a host that variables have named: the same as before as long as it has the same
    /// addresses. The one that was not used for longest makes room where too many are known.
    pub(crate) fn of_evaluated(
        &self,
        host: &[u8],
        port: u16,
        addresses: Vec<UpstreamAddress>,
        now: Instant,
    ) -> Rc<WorkerGroup<E>> {
        let key = [
            &host.to_ascii_lowercase()[..],
            format!(":{port}").as_bytes(),
        ]
        .concat();
        let mut all = self.evaluated.borrow_mut();
        if let Some(known) = all.get_mut(&key)
            && known.addresses == addresses
        {
            known.used = now;
            return Rc::clone(&known.group);
        }
        let room_needed = all.len() >= EVALUATED_MAX && !all.contains_key(&key);
        let oldest = all.iter().min_by_key(|(_, known)| known.used);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()).filter(|_| room_needed) {
            all.remove(&oldest);
        }
        let upstream = Upstream::evaluated(host, port, addresses.clone());
        let group = {
            let group = Arc::new(Group::new(&Arc::new(upstream), None));
            WorkerGroup::new(&group, 0, &self.sweeping)
        };
        let known = Evaluated {
            group: Rc::clone(&group),
            addresses,
            used: now,
        };
        all.insert(key, known);
        group
    }

    fn has_idle(&self) -> bool {
        let is_used = |group: &Rc<WorkerGroup<E>>| !group.idle.borrow().is_empty();
        self.groups.borrow().iter().any(is_used)
            || (self.evaluated.borrow().values()).any(|known| is_used(&known.group))
    }

    fn expire_idle(&self, now: Instant) {
        let expire = |group: &Rc<WorkerGroup<E>>| group.expire_idle(now);
        self.groups.borrow().iter().for_each(expire);
        (self.evaluated.borrow().values()).for_each(|known| expire(&known.group));
    }

    /// Forgets groups that are not in force, and that no request uses; their idle connections close.
    pub(crate) fn forget_unused(&self, site: &Site) {
        let is_in_force =
            |group: &Arc<Group>| site.upstreams.has(group) || site.stream_upstreams.has(group);
        let mut groups = self.groups.borrow_mut();
        groups.retain(|known| Rc::strong_count(known) > 1 || is_in_force(&known.group));
    }
}

impl<E: Engine> WorkerGroup<E> {
    fn new(group: &Arc<Group>, seed: u64, sweeping: &Rc<Sweeping>) -> Rc<Self> {
        Rc::new(Self {
            queue: Queue::new(group, sweeping.scheduler()),
            sweeping: Rc::clone(sweeping),
            selector: RefCell::new(Selector::new(group, seed)),
            idle: RefCell::new(IdleConnections::new(&group.config().keepalive)),
            idle_counted: Cell::new(0),
            multiplexed: RefCell::default(),
            group: Arc::clone(group),
        })
    }

    /// To be dropped when a connection becomes free.
    pub(crate) fn freed(&self) -> Freed {
        Freed(self.queue.clone())
    }

    /// A kept connection of this scope to a server that is still open, if there is one.
    pub(crate) fn take_idle(
        &self,
        peer: &Arc<Peer>,
        scope: Option<&Scope>,
        now: Instant,
    ) -> Option<(TransportOf<E>, Reuse)> {
        let taken = self.idle.borrow_mut().take(peer, scope, now);
        self.count_idle();
        taken
    }

    /// Keeps a connection whose answer is whole.
    pub(crate) fn keep(
        &self,
        peer: &Arc<Peer>,
        stream: TransportOf<E>,
        reuse: Reuse,
        now: Instant,
    ) {
        self.idle.borrow_mut().keep(peer, stream, reuse, now);
        self.count_idle();
        self.sweeping.notice();
    }

    fn expire_idle(&self, now: Instant) {
        let mut idle = self.idle.borrow_mut();
        idle.expire(now);
        // The peers have changed since the group was made.
        if self.group.generation() > 0 {
            idle.close_gone(&self.group.peers());
        }
        drop(idle);
        self.count_idle();
    }

    /// Tells the group how many idle connections there are.
    fn count_idle(&self) {
        let now = self.idle.borrow().len();
        self.group.count_idle(self.idle_counted.replace(now), now);
    }
}

/// A connection that carries several requests at once, and what it serves.
struct Shared<E: Engine> {
    peer: Arc<Peer>,
    scope: Option<Rc<Scope>>,
    connection: Weak<Multiplexed<TransportOf<E>>>,
}

impl<E: Engine> WorkerGroup<E> {
    /// A place on a connection of this scope to this server, if one has room.
    pub(crate) fn share(
        &self,
        peer: &Arc<Peer>,
        scope: Option<&Scope>,
        open: impl Fn(&Rc<Multiplexed<TransportOf<E>>>) -> Option<Call<TransportOf<E>>>,
    ) -> Option<Call<TransportOf<E>>> {
        let mut all = self.multiplexed.borrow_mut();
        all.retain(|known| {
            known
                .connection
                .upgrade()
                .is_some_and(|known| known.is_open())
        });
        let serves = |known: &&Shared<E>| {
            known.peer.shares_load_with(peer) && known.scope.as_deref() == scope
        };
        let mut connections = all.iter().filter(serves);
        connections.find_map(|known| open(&known.connection.upgrade()?))
    }

    /// Others may use this connection from now on.
    pub(crate) fn offer(
        &self,
        peer: &Arc<Peer>,
        scope: Option<Rc<Scope>>,
        connection: &Rc<Multiplexed<TransportOf<E>>>,
    ) {
        self.multiplexed.borrow_mut().push(Shared {
            peer: Arc::clone(peer),
            scope,
            connection: Rc::downgrade(connection),
        });
    }
}

impl<E: Engine> Drop for WorkerGroup<E> {
    fn drop(&mut self) {
        self.group.count_idle(self.idle_counted.get(), 0);
    }
}

impl<E: Engine> fmt::Debug for WorkerGroup<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = self.idle.borrow().len();
        write!(
            formatter,
            "WorkerGroup({}, {idle} idle)",
            self.group.config().name.display()
        )
    }
}

impl<E: Engine> fmt::Debug for WorkerUpstreams<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WorkerUpstreams({})", self.groups.borrow().len())
    }
}

/// Ends a task when it is dropped.
#[derive(Debug)]
struct OwnedTask {
    scheduler: Rc<Scheduler>,
    task: TaskId,
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.scheduler.end(self.task);
    }
}

/// The groups of a configuration, by `Upstream::index`.
#[derive(Debug, Default)]
pub struct Upstreams(Vec<Arc<Group>>);

impl Upstreams {
    /// The groups of `config`. Servers that `previous` had as well keep their figures.
    pub fn new(config: &Config, previous: Option<&Self>) -> Self {
        let http = config.http.as_ref();
        let configured = http.map_or(&[][..], |http| &http.upstreams);
        let groups = configured.iter().map(|upstream| {
            let same = previous.and_then(|previous| previous.named(upstream));
            let awaits_health_checks = Self::awaits_health_checks(config, upstream);
            match same {
                Some(same) => same.followed_by(upstream, awaits_health_checks),
                None => Arc::new(Group::checked(upstream, None, awaits_health_checks)),
            }
        });
        Self(groups.collect())
    }

    /// Those of `stream`.
    pub fn of_stream(config: &Config, previous: Option<&Self>) -> Self {
        let configured = config.stream.iter().flat_map(|stream| &stream.upstreams);
        let groups = configured.map(|upstream| {
            let same = previous.and_then(|previous| previous.named(upstream));
            match same {
                Some(same) => same.followed_by(upstream, false),
                None => Arc::new(Group::new(upstream, None)),
            }
        });
        Self(groups.collect())
    }

    fn all(&self) -> &[Arc<Group>] {
        &self.0
    }

    fn has(&self, group: &Arc<Group>) -> bool {
        self.0.iter().any(|known| Arc::ptr_eq(known, group))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.0.iter()
    }

    pub fn group(&self, upstream: &Upstream) -> Option<&Arc<Group>> {
        self.0.get(upstream.index)
    }

    fn named(&self, upstream: &Upstream) -> Option<&Group> {
        let is_same = |group: &&Arc<Group>| {
            let known = group.config();
            known.name == upstream.name && known.port == upstream.port
        };
        self.0.iter().find(is_same).map(|group| &**group)
    }
}

/// Hosts named by variables that one worker remembers, with their connections and whose turn it is.
const EVALUATED_MAX: usize = 1024;
