//! Closing idle connections to upstream servers: those that have waited for `keepalive_timeout`, those that their servers
//! have closed, and those to servers that the group no longer has.

use crate::local::Local;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Has the sweeping task wait without a timer while no connection is idle.
#[derive(Debug)]
pub(crate) struct Sweeping {
    scheduler: Rc<Scheduler>,
    /// The task while it waits for an idle connection.
    waits: Cell<Option<TaskId>>,
}

impl Sweeping {
    pub(super) const fn new(scheduler: Rc<Scheduler>) -> Self {
        Self {
            scheduler,
            waits: Cell::new(None),
        }
    }

    pub(super) const fn scheduler(&self) -> &Rc<Scheduler> {
        &self.scheduler
    }

    /// A connection is idle.
    pub(super) fn notice(&self) {
        if let Some(task) = self.waits.take() {
            self.scheduler.wake_soon(task);
        }
    }
}

/// Starts the task; the worker ends it. Without it, as no task is left, connections close when they are taken.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>) -> Option<TaskId> {
    let sweeper = Rc::clone(local);
    let task = async move {
        let upstreams = &sweeper.upstreams;
        loop {
            poll_fn(|_| {
                if upstreams.has_idle() {
                    return Poll::Ready(());
                }
                upstreams
                    .sweeping
                    .waits
                    .set(Some(sweeper.scheduler.current()));
                Poll::Pending
            })
            .await;
            sweeper.scheduler.sleep(PERIOD).await;
            upstreams.expire_idle(sweeper.scheduler.now());
        }
    };
    local.scheduler.spawn(Purpose::Background, task).ok()
}

/// How often idle connections are looked at: the longest time that a connection closed by its server stays open here.
const PERIOD: Duration = Duration::from_secs(1);
