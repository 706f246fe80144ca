//! What the tasks of one worker share.

use crate::log::WorkerLog;
use crate::site::Site;
use mill_metrics::ServerCounters;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::scheduler::Scheduler;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A file of the engine's.
pub type FileOf<E> = <<E as Engine>::Files as Files>::File;

/// What the process is, for variables and logs.
#[derive(Clone)]
pub struct Environment {
    pub pid: u32,
    pub hostname: Arc<[u8]>,
    /// Seconds east of UTC at a Unix time, by the system's time zone.
    pub utc_offset: fn(i64) -> i32,
}

/// One worker's part of everything that its connections share: no other worker ever touches it.
#[derive(Debug)]
pub struct Local<E: Engine> {
    pub engine: E,
    pub scheduler: Rc<Scheduler>,
    pub environment: Environment,
    /// This worker's part of the logs.
    pub log: WorkerLog,
    pub counters: RefCell<ServerCounters>,
    /// The worker finishes what is under way and keeps no connection alive.
    pub draining: Cell<bool>,
    /// The configuration in force for the next request.
    site: RefCell<Arc<Site>>,
}

impl<E: Engine> Local<E> {
    pub fn new(
        engine: E,
        scheduler: Rc<Scheduler>,
        environment: Environment,
        site: Arc<Site>,
        log: WorkerLog,
    ) -> Rc<Self> {
        Rc::new(Self {
            engine,
            scheduler,
            environment,
            log,
            counters: RefCell::default(),
            draining: Cell::new(false),
            site: RefCell::new(site),
        })
    }

    pub fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site.borrow())
    }

    /// Puts a configuration in force for all requests from now on.
    pub fn set_site(&self, site: Arc<Site>) {
        *self.site.borrow_mut() = site;
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Environment {{ pid: {} }}", self.pid)
    }
}
