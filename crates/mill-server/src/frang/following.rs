//! What an engine with a stack of its own is told of blocked addresses, so that it drops what they send.

use super::Frang;
use crate::local::Local;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// What one worker's engine knows.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    frang: Option<Arc<Frang>>,
    generation: u64,
    /// When the first of the blocks that the engine knows ends.
    expiry: Option<Instant>,
    /// When the engine was last told.
    told: Instant,
    is_empty: bool,
}

impl Followed {
    /// A configuration comes into force.
    pub(crate) fn adopt(&mut self, frang: Option<&Arc<Frang>>) {
        self.frang = frang.cloned();
        self.generation = u64::MAX;
        self.is_empty = false;
    }

    /// Tells the engine what has changed. Called each turn: costs two comparisons.
    pub(crate) fn follow<E: Engine>(&mut self, engine: &E, now: Instant) {
        let Some(frang) = &self.frang else {
            if !std::mem::replace(&mut self.is_empty, true) && engine.can_block() {
                engine.set_blocked(&[]);
            }
            return;
        };
        let generation = frang.blocks.generation();
        let is_same = generation == self.generation;
        let is_due = !is_same || self.expiry.is_some_and(|expiry| expiry <= now);
        if !is_due || !engine.can_block() {
            return;
        }
        // While addresses are blocked one after the other, they are told together.
        if now.since(self.told) < INTERVAL && self.generation != u64::MAX {
            return;
        }
        let blocks = frang.blocks.all(now);
        let addresses: Vec<IpAddr> = blocks.iter().map(|block| block.address).collect();
        engine.set_blocked(&addresses);
        let ends = blocks.iter().map(|block| block.until);
        self.expiry = ends.min().filter(|end| *end != Instant::FAR);
        (self.generation, self.told) = (generation, now);
    }
}

/// Starts a task that wakes the worker once a second: frames that are dropped in the kernel do not, and blocks end.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>, frang: Option<&Arc<Frang>>) -> Option<TaskId> {
    if frang.is_none() || !local.engine.can_block() {
        return None;
    }
    let task = {
        let local = Rc::clone(local);
        async move {
            loop {
                local.scheduler.sleep(WAKE_INTERVAL).await;
            }
        }
    };
    match local.scheduler.spawn(Purpose::Background, task) {
        Ok(task) => Some(task),
        Err(_) => {
            let text = format_args!("no task is left to end the blocks of addresses in time");
            local.log_error(None, LogLevel::Error, text);
            None
        }
    }
}

/// Time between two lists for an engine: 16384 addresses take less than a millisecond.
const INTERVAL: Duration = Duration::from_millis(100);

/// How late the block of an address may end where nothing else happens.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
