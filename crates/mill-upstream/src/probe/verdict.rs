//! What a health check thinks of a server: so many passes or failures in a row change it.

use crate::peer::Health;
use mill_config::config::HealthCheck;

/// The opinion of one check about one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    health: Health,
    /// In a row, up to now; one of them is 0.
    passes: u32,
    fails: u32,
}

impl Verdict {
    /// Before the first probe of this check. `known` is what is known of the server from before; a check that is not
    /// `mandatory` does not hold up a server that waits for another one.
    pub const fn new(check: &HealthCheck, known: Health) -> Self {
        Self {
            health: match known {
                Health::Checking if !check.mandatory => Health::Healthy,
                known => known,
            },
            passes: 0,
            fails: 0,
        }
    }

    pub const fn health(&self) -> Health {
        self.health
    }

    /// A probe has ended. Returns whether the opinion has changed.
    pub fn on_result(&mut self, check: &HealthCheck, has_passed: bool) -> bool {
        let before = self.health;
        if has_passed {
            (self.passes, self.fails) = (self.passes.saturating_add(1), 0);
            if self.passes >= check.passes {
                self.health = Health::Healthy;
            }
        } else {
            (self.passes, self.fails) = (0, self.fails.saturating_add(1));
            if self.fails >= check.fails {
                self.health = Health::Unhealthy;
            }
        }
        self.health != before
    }
}

/// What several checks think of one server: one that fails is enough, and each mandatory one must have passed.
pub fn combined(verdicts: impl Iterator<Item = Health> + Clone) -> Health {
    let has = |wanted: Health| verdicts.clone().any(|health| health == wanted);
    if has(Health::Unhealthy) {
        Health::Unhealthy
    } else if has(Health::Checking) {
        Health::Checking
    } else {
        Health::Healthy
    }
}
