//! How long a plan takes: the durations of its loads, and the work around them.

use super::{Plan, Trial};
use crate::command::seconds_asked;
use crate::recipe::{Load, Probe, ProbeKind, Tool};
use std::time::Duration;

/// Starting a server, waiting until it listens, stopping it, and setting the system back, in seconds: measured with
/// nginx in network namespaces.
const AROUND_TRIAL_S: f64 = 1.5;
/// perf needs this to begin and to write down what it saw, in seconds.
const AROUND_PROBE_S: f64 = 1.0;
/// Seconds assumed for a load without a duration in arguments or recipe.
const UNKNOWN_LOAD_S: f64 = 10.0;

impl Plan {
    /// How long the trials take, one after the other.
    pub fn estimate(&self) -> Duration {
        let seconds: f64 = self.trials.iter().map(Trial::seconds).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// How long they would take if nothing that they need were absent.
    pub fn estimate_of_all(&self) -> Duration {
        let seconds: f64 = self.trials.iter().map(Trial::seconds_if_there).sum();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl Trial {
    /// How long it takes, from server start to stop; nothing if what it needs is surely absent.
    pub fn estimate(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds()).unwrap_or(Duration::MAX)
    }

    fn seconds(&self) -> f64 {
        if self.is_absent {
            0.0
        } else {
            self.seconds_if_there()
        }
    }

    fn seconds_if_there(&self) -> f64 {
        let load = &self.setup.load;
        let probes: f64 = self
            .setup
            .probe
            .iter()
            .map(|probe| probe_seconds(probe, load))
            .sum();
        AROUND_TRIAL_S + prime_seconds(load) + load_seconds(load) + probes
    }
}

fn load_seconds(load: &Load) -> f64 {
    if load.tool == Tool::None {
        return 0.0;
    }
    seconds_asked(load.tool.name(), &load.args)
        .or(load.seconds)
        .unwrap_or(UNKNOWN_LOAD_S)
}

fn prime_seconds(load: &Load) -> f64 {
    match &load.prime {
        Some(args) => seconds_asked(load.tool.name(), args).unwrap_or_else(|| load_seconds(load)),
        None => 0.0,
    }
}

/// A look at the machine alone takes its own time; one under load waits for the ramps too.
fn probe_seconds(probe: &Probe, load: &Load) -> f64 {
    let ramps = match probe.kind {
        ProbeKind::Environment | ProbeKind::Path => 0.0,
        _ => 2.0 * load.ramp_s,
    };
    AROUND_PROBE_S + probe.seconds + ramps
}
