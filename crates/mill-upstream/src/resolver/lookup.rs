//! A name that is being looked up, and the requests that wait for it.

use super::Resolver;
use super::addresses::Addresses;
use super::counters::Counted;
use super::error::ResolveError;
use super::host_name::HostName;
use super::message::{Question, RecordKind, Records};
use mill_runtime::datagrams::DatagramEngine;
use mill_runtime::race::both;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::sync::semaphore::{NoPermit, Semaphore};
use std::cell::RefCell;
use std::rc::Rc;

/// One look-up, for all requests of this worker that ask for the name while it lasts.
#[derive(Debug)]
pub(super) struct Lookup {
    name: HostName,
    /// A semaphore without permits: closed when the look-up ends.
    askers: Rc<Semaphore>,
    outcome: RefCell<Result<Addresses, ResolveError>>,
}

impl Lookup {
    pub(super) fn new(name: HostName, scheduler: &Rc<Scheduler>) -> Self {
        Self {
            name,
            askers: Semaphore::new(scheduler, 0, ASKERS_MAX),
            outcome: RefCell::new(Err(ResolveError::ServerFailure)),
        }
    }

    /// Waits until [`Lookup::outcome`] says how it ended; fails with [`NoPermit::TooManyWait`] where as many wait as may.
    pub(super) async fn ended(&self) -> Result<(), NoPermit> {
        self.askers.acquire().await.map(drop)
    }

    pub(super) fn outcome(&self) -> Result<Addresses, ResolveError> {
        self.outcome.borrow().clone()
    }

    fn has_askers(&self) -> bool {
        self.askers.waiting() > 0
    }

    fn end(&self, outcome: Result<Addresses, ResolveError>) {
        *self.outcome.borrow_mut() = outcome;
        self.askers.close();
    }
}

impl<E: DatagramEngine> Resolver<E> {
    /// The task of a look-up.
    pub(super) async fn look_up(self: Rc<Self>, lookup: Rc<Lookup>) {
        self.counters.count(Counted::Name);
        let outcome = self.addresses_of(&lookup).await;
        if let Ok(addresses) = &outcome {
            let mut cache = self.cache.borrow_mut();
            cache.insert(&lookup.name, addresses.clone(), self.scheduler.now());
        }
        self.lookups.borrow_mut().remove(lookup.name.as_bytes());
        lookup.end(outcome);
    }

    /// As with nginx, an error for one family is an error for the name.
    async fn addresses_of(&self, lookup: &Lookup) -> Result<Addresses, ResolveError> {
        let first = self.take_turn();
        let (ipv4, ipv6) = both(
            self.family(lookup, first, RecordKind::A, self.options.ipv4),
            self.family(lookup, first, RecordKind::Aaaa, self.options.ipv6),
        )
        .await;
        let (ipv4, ipv6) = (ipv4?, ipv6?);
        let all = [ipv4.addresses, ipv6.addresses].concat();
        if all.is_empty() {
            return Err(ResolveError::NotFound);
        }
        let ttl = ipv4.ttl_seconds.into_iter().chain(ipv6.ttl_seconds).min();
        Ok(Addresses::new(all.into(), self.valid_until(ttl)))
    }

    async fn family(
        &self,
        lookup: &Lookup,
        first: usize,
        kind: RecordKind,
        is_wanted: bool,
    ) -> Result<Records, ResolveError> {
        if !is_wanted {
            return Ok(Records::default());
        }
        let name = lookup.name;
        let question = Question { name, kind };
        let is_waited_for = || lookup.has_askers();
        self.ask_through(question, first, is_waited_for).await
    }
}

/// Requests of one worker that may wait for one name.
const ASKERS_MAX: usize = 65_536;
