//! A name that is being looked up, and the requests that wait for it.

use super::addresses::{Addresses, Services};
use super::error::ResolveError;
use super::host_name::HostName;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::sync::semaphore::{NoPermit, Semaphore};
use std::cell::RefCell;
use std::rc::Rc;

/// One look-up, for all requests of this worker that ask for the name while it lasts.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) name: HostName,
    pub(super) wanted: Wanted,
    /// A semaphore without permits: closed when the look-up ends.
    askers: Rc<Semaphore>,
    outcome: RefCell<Result<Found, ResolveError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Addresses,
    Services,
}

/// What was looked up.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Addresses(Addresses),
    Services(Services),
}

impl Lookup {
    pub(super) fn new(name: HostName, wanted: Wanted, scheduler: &Rc<Scheduler>) -> Self {
        Self {
            name,
            wanted,
            askers: Semaphore::new(scheduler, 0, ASKERS_MAX),
            outcome: RefCell::new(Err(ResolveError::ServerFailure)),
        }
    }

    /// Waits until [`Lookup::outcome`] says how it ended; fails with [`NoPermit::TooManyWait`] where as many wait as may.
    pub(super) async fn ended(&self) -> Result<(), NoPermit> {
        self.askers.acquire().await.map(drop)
    }

    pub(super) fn outcome(&self) -> Result<Found, ResolveError> {
        self.outcome.borrow().clone()
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.askers.waiting() > 0
    }

    pub(super) fn end(&self, outcome: Result<Found, ResolveError>) {
        *self.outcome.borrow_mut() = outcome;
        self.askers.close();
    }
}

/// Requests of one worker that may wait for one name.
const ASKERS_MAX: usize = 65_536;
