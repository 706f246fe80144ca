//! One check of one server: probe after probe, and what follows from them.

use crate::proxy::probe::{Probe, ProbeEnd, ProbeFault};
use mill_config::config::{HealthCheck, LogLevel};
use mill_runtime::engine::Engine;
use mill_runtime::sync::semaphore::Semaphore;
use mill_upstream::peer::{Health, Peer};
use mill_upstream::probe::verdict::{Verdict, combined};
use mill_upstream::probe::{delay, jitter};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What the checks of a server think of it.
#[derive(Debug)]
pub(super) struct Opinions(RefCell<Vec<Verdict>>);

impl Opinions {
    /// Before the first probes: what is known of the server.
    pub(super) fn new<'a>(checks: impl Iterator<Item = &'a HealthCheck>, peer: &Peer) -> Rc<Self> {
        let known = peer.load().health();
        let verdicts = checks.map(|check| Verdict::new(check, known));
        Rc::new(Self(RefCell::new(verdicts.collect())))
    }

    /// One check has a result. Returns whether it thinks otherwise now, and what all of them think together.
    fn on_result(&self, number: usize, check: &HealthCheck, has_passed: bool) -> (bool, Health) {
        let mut verdicts = self.0.borrow_mut();
        let verdict = verdicts.get_mut(number);
        let has_changed = verdict.is_some_and(|verdict| verdict.on_result(check, has_passed));
        let all = combined(verdicts.iter().map(|verdict| verdict.health()));
        (has_changed, all)
    }
}

/// Probes until the task is ended.
pub(super) fn watch<E: Engine>(
    mut probe: Probe<E>,
    opinions: Rc<Opinions>,
    number: usize,
    permits: &Rc<Semaphore>,
) -> impl Future<Output = ()> + use<E> {
    let permits = Rc::clone(permits);
    let local = Rc::clone(&probe.local);
    async move {
        let mut wait = jitter(&probe.check, local.engine.random());
        loop {
            local.scheduler.sleep(wait).await;
            let end = {
                // Without a permit the worker is ending.
                let Ok(_permit) = permits.acquire().await else {
                    return;
                };
                probe.run().await
            };
            conclude(&probe, end, &opinions, number);
            wait = delay(&probe.check, local.engine.random());
        }
    }
}

/// Counts and logs the result, and has it decide about the server.
fn conclude<E: Engine>(probe: &Probe<E>, end: ProbeEnd, opinions: &Opinions, number: usize) {
    let (load, check) = (probe.peer.load(), &probe.check);
    let (has_passed, during) = match end {
        ProbeEnd::Passed(during) => (true, during),
        ProbeEnd::NotSent(fault) => return log(probe, LogLevel::Crit, format_args!("{fault}")),
        ProbeEnd::Failed(fault) => {
            if let ProbeFault::Fault(fault) = fault {
                log(probe, fault.level(), format_args!("{fault}"));
            }
            (false, fault.during())
        }
    };
    load.count_health_check(has_passed);
    let (has_changed, health) = opinions.on_result(number, check, has_passed);
    load.set_health(health, probe.local.scheduler.now());
    if has_changed && has_passed {
        let text = format_args!("peer is healthy while {during}");
        log(probe, LogLevel::Notice, text);
    } else if has_changed {
        let text = format_args!("peer is unhealthy while {during}");
        log(probe, LogLevel::Warn, text);
    }
}

/// Logs in the location's error log, with what NGINX Plus adds.
fn log<E: Engine>(probe: &Probe<E>, level: LogLevel, message: fmt::Arguments<'_>) {
    let matching = probe.check.matching.as_ref();
    let name = matching.map(|matching| matching.name.display());
    let (peer, group) = (&probe.peer.name, &probe.group.config().name);
    let port = probe.check.port.map(|port| format!(", port {port}"));
    let text = format_args!(
        "{message}, health check \"{}\" of peer {} in upstream \"{}\"{}",
        name.unwrap_or_default(),
        peer.display(),
        group.display(),
        port.unwrap_or_default(),
    );
    let location = &probe.place.location;
    probe.local.log_location_error(location, level, text);
}
