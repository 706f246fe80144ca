//! Answers that make a peer unhealthy before a probe does: `failover=` of `health_check`.

use mill_config::config::Failover;
use mill_runtime::time::Instant;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counted by all workers. Without rules an answer costs a load.
#[derive(Debug, Default)]
pub(super) struct Failovers {
    is_used: AtomicBool,
    rules: Mutex<Vec<(Failover, Window)>>,
}

/// What was counted since the rule's period began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    began: Option<Instant>,
    answers: u32,
}

impl Failovers {
    /// Rules that there are already go on counting.
    pub(super) fn set<'a>(&self, rules: impl Iterator<Item = &'a Failover>) {
        let mut known = self.rules();
        let window = |rule: &Failover| {
            let same = known.iter().find(|(other, _)| other == rule);
            same.map(|(_, window)| *window).unwrap_or_default()
        };
        let rules: Vec<_> = rules.map(|rule| (rule.clone(), window(rule))).collect();
        self.is_used.store(!rules.is_empty(), Relaxed);
        *known = rules;
    }

    /// One more answer. Returns whether a rule finds too many, which then counts anew.
    pub(super) fn on_answer(&self, status: u16, now: Instant) -> bool {
        if !self.is_used.load(Relaxed) {
            return false;
        }
        let mut rules = self.rules();
        let concerned = rules
            .iter_mut()
            .filter(|(rule, _)| rule.statuses.contains(&status));
        // All of them count, also behind one that has enough.
        concerned.fold(false, |has_enough, (rule, window)| {
            has_enough | window.count(rule, now)
        })
    }

    fn rules(&self) -> MutexGuard<'_, Vec<(Failover, Window)>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn count(&mut self, rule: &Failover, now: Instant) -> bool {
        let began = self.began.filter(|began| now.since(*began) < rule.period);
        if began.is_none() {
            self.answers = 0;
        }
        self.began = Some(began.unwrap_or(now));
        self.answers += 1;
        let has_enough = self.answers >= rule.answers;
        if has_enough {
            *self = Self::default();
        }
        has_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::time::Duration;

    #[test]
    fn so_many_answers_within_the_period_are_enough_and_are_counted_anew() {
        let rule = Failover {
            statuses: 500..=599,
            answers: 3,
            period: Duration::from_secs(2),
        };
        let failovers = Failovers::default();
        let at = |millis: u64| Instant::from_nanos((1000 + millis) * 1_000_000);
        assert!(!failovers.on_answer(503, at(0)), "there is no rule");
        failovers.set([&rule].into_iter());
        for (millis, status, expected) in [
            (0, 503, false),
            (1, 404, false),
            (2, 500, false),
            (1999, 599, true),
            (2000, 503, false),
            (2001, 503, false),
            // Too late for the third.
            (4001, 503, false),
            (4002, 503, false),
        ] {
            assert_eq!(
                failovers.on_answer(status, at(millis)),
                expected,
                "{millis}"
            );
        }
        failovers.set([&rule].into_iter());
        assert!(
            failovers.on_answer(503, at(4003)),
            "a reload forgets nothing"
        );
        failovers.set([].into_iter());
        assert!(!failovers.on_answer(503, at(4004)));
    }
}
