//! Removing what was not used for long, and what was purged: a task of one worker.

use super::{CacheZone, now};
use crate::local::Local;
use crate::site::Site;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

/// Starts the task, if the site has caches.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>, site: &Arc<Site>) -> Option<TaskId> {
    let zones: Vec<Arc<CacheZone>> = site.caches.iter().cloned().collect();
    if zones.is_empty() {
        return None;
    }
    let task = {
        let local = Rc::clone(local);
        async move {
            loop {
                local.scheduler.sleep(INTERVAL).await;
                for store in zones.iter().filter_map(|zone| zone.known()) {
                    store.expire(now(&local), SHARE);
                }
            }
        }
    };
    match local.scheduler.spawn(Purpose::Background, task) {
        Ok(task) => Some(task),
        Err(_) => {
            let text = format_args!("no task is left to remove what is old in caches");
            local.log_error(None, LogLevel::Error, text);
            None
        }
    }
}

/// Time between two looks, and objects that one looks at: a million objects are gone through in less than a minute, a look
/// takes less than a millisecond.
const INTERVAL: Duration = Duration::from_millis(100);
const SHARE: usize = 2048;
