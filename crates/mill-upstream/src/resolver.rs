//! The stub resolver (nginx's `resolver`): names of hosts to addresses, by the servers of the configuration.
//!
//! Each worker has its own, with its own cache; nothing is shared but counters. A name that is not cached is looked up
//! by a spawned task, one for all requests that wait for it: `lookup.rs`, whose questions go through `query.rs` (which
//! server, until when) and `message.rs` (what a reply says), which do no I/O.
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

/// A name that is being looked up.
mod lookup;

/// Questions over sockets: datagrams, then TCP.
mod exchange;

/// The course of a question: which server, until when, what counts as its reply.
mod query;

use addresses::Addresses;
use cache::{Cache, Limits};
use counters::{Counted, ResolverCounters};
use error::ResolveError;
use host_name::HostName;
use lookup::Lookup;
use message::{Question, RecordKind, Service};
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::sync::semaphore::NoPermit;
use mill_runtime::time::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// The directive `resolver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverOptions {
    /// At least one; asked in turn.
    pub servers: Vec<SocketAddr>,
    /// How long answers hold (`valid=`), in place of their times to live.
    pub valid: Option<Duration>,
    /// Whether to ask for addresses of IPv4, and of IPv6; not both are off.
    pub ipv4: bool,
    pub ipv6: bool,
}

/// One worker's resolver.
pub struct Resolver<E: DatagramEngine> {
    engine: E,
    scheduler: Rc<Scheduler>,
    options: ResolverOptions,
    counters: Arc<ResolverCounters>,
    cache: RefCell<Cache>,
    /// By name.
    lookups: RefCell<BTreeMap<Box<[u8]>, Rc<Lookup>>>,
    /// Grows with each name that is asked for: the servers take turns.
    next_server: Cell<usize>,
}

/// The SRV records of a service, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    pub all: Vec<Service>,
    pub valid_until: Instant,
}

/// What is known of a name when a request asks for it.
enum Known {
    Now(Addresses),
    Later(Rc<Lookup>),
}

impl<E: DatagramEngine> Resolver<E> {
    /// `counters` are of all workers' resolvers together.
    pub fn new(
        engine: &E,
        scheduler: &Rc<Scheduler>,
        options: ResolverOptions,
        counters: &Arc<ResolverCounters>,
    ) -> Rc<Self> {
        Rc::new(Self {
            engine: engine.clone(),
            scheduler: Rc::clone(scheduler),
            options,
            counters: Arc::clone(counters),
            cache: RefCell::new(Cache::new(CACHE_LIMITS)),
            lookups: RefCell::default(),
            next_server: Cell::new(0),
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
        let deadline = self.scheduler.now() + timeout;
        match self.scheduler.until(deadline, lookup.ended()).await {
            Ok(Err(NoPermit::TooManyWait)) => Err(self.failed(ResolveError::Busy)),
            Ok(_) => Ok(lookup.outcome()?.rotated(self.engine.random())),
            Err(_) => Err(self.failed(ResolveError::TimedOut)),
        }
    }

    /// The SRV records of `service` at a host (RFC 2782), which are not cached: their user, the task that keeps an
    /// upstream group up to date, asks when the former ones end.
    pub async fn resolve_service(
        &self,
        service: &[u8],
        host: &[u8],
        timeout: Duration,
    ) -> Result<Services, ResolveError> {
        let name = HostName::of_service(service, host).ok_or(ResolveError::NotFound)?;
        self.counters.count(Counted::Service);
        let kind = RecordKind::Srv;
        let question = Question { name, kind };
        let asked = self.ask_through(question, self.take_turn(), || true);
        let deadline = self.scheduler.now() + timeout;
        let Ok(found) = self.scheduler.until(deadline, asked).await else {
            return Err(self.failed(ResolveError::TimedOut));
        };
        let records = found?;
        if records.services.is_empty() {
            return Err(ResolveError::NotFound);
        }
        Ok(Services {
            valid_until: self.valid_until(records.ttl_seconds),
            all: records.services,
        })
    }

    /// When a name that does not exist may be asked for again by what asks at intervals: nginx's 10 seconds, or
    /// `valid=`.
    pub fn retry_missing_after(&self) -> Duration {
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
        let now = self.scheduler.now();
        if let Some(addresses) = self.cache.borrow_mut().find(&name, now) {
            return Ok(Known::Now(addresses.rotated(self.engine.random())));
        }
        if let Some(lookup) = self.lookups.borrow().get(name.as_bytes()) {
            return Ok(Known::Later(Rc::clone(lookup)));
        }
        self.start_lookup(name).map(Known::Later)
    }

    fn start_lookup(self: &Rc<Self>, name: HostName) -> Result<Rc<Lookup>, ResolveError> {
        let mut lookups = self.lookups.borrow_mut();
        if lookups.len() >= LOOKUPS_MAX {
            return Err(self.failed(ResolveError::Busy));
        }
        let lookup = Rc::new(Lookup::new(name, &self.scheduler));
        let task = Rc::clone(self).look_up(Rc::clone(&lookup));
        if self.scheduler.spawn(Purpose::Background, task).is_err() {
            return Err(self.failed(ResolveError::Busy));
        }
        lookups.insert(name.as_bytes().into(), Rc::clone(&lookup));
        Ok(lookup)
    }

    /// The number of the server that the next name is asked of first.
    fn take_turn(&self) -> usize {
        let turn = self.next_server.get();
        self.next_server.set(turn.wrapping_add(1));
        turn
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

impl<E: DatagramEngine> fmt::Debug for Resolver<E> {
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
