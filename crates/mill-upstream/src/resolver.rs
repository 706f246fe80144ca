//! The stub resolver (nginx's `resolver`): names of hosts to addresses, by the servers of the configuration.
//!
//! Each worker has its own, with its own cache; nothing is shared but counters. A name that is not cached is looked up
//! by a spawned task, one for all requests that wait for it: `lookup.rs`, whose questions go through `query.rs` (which
//! server, until when) and `message.rs` (what a reply says), which do no I/O. Only the task knows the engine.
//!
//! A reply counts only if it comes from the server that was asked, to the port that asked, with the same random
//! identifier and the same question (RFC 5452). Each attempt has a socket, and so a random port, of its own.

/// What a name resolved to.
pub mod addresses;

/// What was asked and heard, for all workers together.
pub mod counters;

/// Why a name has no addresses.
pub mod error;

/// Names as they are asked for.
pub mod host_name;

/// Messages of DNS: emitted and parsed.
pub mod message;

/// The servers behind a name that may change while they are used.
pub mod members;

/// The names whose addresses are known.
mod cache;

/// A name that is being looked up, and what waits for it.
mod lookup;

/// The task of a look-up: questions over sockets, by datagrams, then over TCP.
mod asking;

/// The course of a question: which server, until when, what counts as its reply.
mod query;

use addresses::{Addresses, Services};
use asking::Asking;
use cache::{Cache, Limits};
use counters::{Counted, ResolverCounters};
use error::ResolveError;
use host_name::HostName;
use lookup::{Found, Lookup, Wanted};
use mill_config::config::NameServers;
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::sync::semaphore::NoPermit;
use mill_runtime::time::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// One worker's resolver, for one directive `resolver`.
pub struct Resolver {
    scheduler: Rc<Scheduler>,
    options: Arc<NameServers>,
    counters: Arc<ResolverCounters>,
    cache: RefCell<Cache>,
    /// Of addresses, by name.
    lookups: RefCell<BTreeMap<Box<[u8]>, Rc<Lookup>>>,
    /// Grows with each name that is looked up: the servers take turns.
    next_server: Cell<usize>,
    /// Grows with each name that is found: its addresses take turns.
    next_address: Cell<usize>,
    start: StartTask,
}

/// Spawns the task of a look-up over the engine; false if as many tasks live as may.
type StartTask = Box<dyn Fn(&Rc<Resolver>, &Rc<Lookup>) -> bool>;

/// What is known of a name when a request asks for it.
enum Known {
    Now(Addresses),
    Later(Rc<Lookup>),
}

impl Resolver {
    /// `counters` are of all workers' resolvers together.
    pub fn new<E: DatagramEngine>(
        engine: &E,
        scheduler: &Rc<Scheduler>,
        options: &Arc<NameServers>,
        counters: &Arc<ResolverCounters>,
    ) -> Rc<Self> {
        let engine = engine.clone();
        let start = move |resolver: &Rc<Self>, lookup: &Rc<Lookup>| {
            let asking = Asking::new(&engine, resolver);
            let task = asking.look_up(Rc::clone(lookup));
            let spawned = resolver.scheduler.spawn(Purpose::Background, task);
            spawned.is_ok()
        };
        Rc::new(Self {
            scheduler: Rc::clone(scheduler),
            options: Arc::clone(options),
            counters: Arc::clone(counters),
            cache: RefCell::new(Cache::new(CACHE_LIMITS)),
            lookups: RefCell::default(),
            next_server: Cell::new(0),
            next_address: Cell::new(0),
            start: Box::new(start),
        })
    }

    /// The addresses of a host, or of a literal address, within `timeout` (`resolver_timeout`). For a name that is cached
    /// it does not wait, and allocates nothing. Dropping the future ends only this request's waiting.
    pub async fn resolve(
        self: &Rc<Self>,
        host: &[u8],
        timeout: Duration,
    ) -> Result<Addresses, ResolveError> {
        let lookup = match self.look_into_cache(host)? {
            Known::Now(addresses) => return Ok(addresses),
            Known::Later(lookup) => lookup,
        };
        match self.wait_for(&lookup, timeout).await? {
            Found::Addresses(addresses) => Ok(self.rotated(addresses)),
            Found::Services(_) => unreachable!("addresses are looked up here"),
        }
    }

    /// The SRV records of `service` at a host (RFC 2782), which are not cached: their user, the task that keeps an
    /// upstream group up to date, asks when the former ones end.
    pub async fn resolve_service(
        self: &Rc<Self>,
        service: &[u8],
        host: &[u8],
        timeout: Duration,
    ) -> Result<Services, ResolveError> {
        let name = HostName::of_service(service, host).ok_or(ResolveError::NotFound)?;
        let lookup = self.start_lookup(name, Wanted::Services)?;
        match self.wait_for(&lookup, timeout).await? {
            Found::Services(services) => Ok(services),
            Found::Addresses(_) => unreachable!("services are looked up here"),
        }
    }

    /// The directive.
    pub const fn options(&self) -> &Arc<NameServers> {
        &self.options
    }

    /// When a name that does not exist may be asked for again by what asks at intervals: nginx's 10 seconds, or
    /// `valid=`.
    fn retry_missing_after(&self) -> Duration {
        self.options.valid.unwrap_or(RETRY_MISSING_AFTER)
    }

    /// How many names are cached.
    pub fn cached_names(&self) -> usize {
        self.cache.borrow().names()
    }

    fn look_into_cache(self: &Rc<Self>, host: &[u8]) -> Result<Known, ResolveError> {
        if let Some(address) = literal(host) {
            let all: Rc<[IpAddr]> = Rc::new([address]);
            return Ok(Known::Now(Addresses::new(all, Instant::FAR)));
        }
        let name = HostName::parse(host).ok_or(ResolveError::NotFound)?;
        let cached = self.cache.borrow_mut().find(&name, self.scheduler.now());
        if let Some(addresses) = cached {
            return Ok(Known::Now(self.rotated(addresses)));
        }
        let under_way = self.lookups.borrow().get(name.as_bytes()).cloned();
        if let Some(lookup) = under_way {
            return Ok(Known::Later(lookup));
        }
        if self.lookups.borrow().len() >= LOOKUPS_MAX {
            return Err(self.failed(ResolveError::Busy));
        }
        let lookup = self.start_lookup(name, Wanted::Addresses)?;
        let mut lookups = self.lookups.borrow_mut();
        lookups.insert(name.as_bytes().into(), Rc::clone(&lookup));
        Ok(Known::Later(lookup))
    }

    fn start_lookup(
        self: &Rc<Self>,
        name: HostName,
        wanted: Wanted,
    ) -> Result<Rc<Lookup>, ResolveError> {
        let lookup = Rc::new(Lookup::new(name, wanted, &self.scheduler));
        if !(self.start)(self, &lookup) {
            return Err(self.failed(ResolveError::Busy));
        }
        Ok(lookup)
    }

    async fn wait_for(&self, lookup: &Lookup, timeout: Duration) -> Result<Found, ResolveError> {
        let deadline = self.scheduler.now() + timeout;
        match self.scheduler.until(deadline, lookup.ended()).await {
            Ok(Err(NoPermit::TooManyWait)) => Err(self.failed(ResolveError::Busy)),
            Ok(_) => lookup.outcome(),
            Err(_) => Err(self.failed(ResolveError::TimedOut)),
        }
    }

    fn rotated(&self, addresses: Addresses) -> Addresses {
        let turn = self.next_address.get();
        self.next_address.set(turn.wrapping_add(1));
        addresses.rotated(turn)
    }

    /// A look-up has ended.
    fn on_ended(&self, lookup: &Lookup, outcome: Result<Found, ResolveError>) {
        if lookup.wanted == Wanted::Addresses {
            self.lookups.borrow_mut().remove(lookup.name.as_bytes());
        }
        if let Ok(Found::Addresses(addresses)) = &outcome {
            let mut cache = self.cache.borrow_mut();
            cache.insert(&lookup.name, addresses.clone(), self.scheduler.now());
        }
        lookup.end(outcome);
    }

    fn failed(&self, error: ResolveError) -> ResolveError {
        self.counters.count(Counted::Failure(error));
        error
    }

    fn valid_until(&self, ttl_seconds: Option<u32>) -> Instant {
        let ttl = Duration::from_secs(u64::from(ttl_seconds.unwrap_or(0)));
        self.scheduler.now() + self.options.valid.unwrap_or(ttl)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Resolver")
            .field("options", &self.options)
            .field("lookups", &self.lookups.borrow().len())
            .finish_non_exhaustive()
    }
}

/// An address in place of a name; one of IPv6 may be in brackets.
fn literal(host: &[u8]) -> Option<IpAddr> {
    let inner = host.strip_prefix(b"[").and_then(|h| h.strip_suffix(b"]"));
    std::str::from_utf8(inner.unwrap_or(host))
        .ok()?
        .parse()
        .ok()
}

/// What one worker keeps: more names than a configuration has, with room for a few that have hundreds of addresses.
const CACHE_LIMITS: Limits = Limits {
    names_max: 4096,
    bytes_max: 1 << 20,
};

/// Names that one worker looks up at once: each takes two sockets and a task.
const LOOKUPS_MAX: usize = 512;

/// nginx's `ctx->valid` after an error.
const RETRY_MISSING_AFTER: Duration = Duration::from_secs(10);
