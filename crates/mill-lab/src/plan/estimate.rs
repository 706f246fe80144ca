//! How long a plan takes: what the recipe says of its loads, and what has to be done around them.

use super::{Plan, Trial};
use crate::recipe::{Load, Probe, ProbeKind, Tool};
use std::time::Duration;

/// Starting a server, waiting until it listens, stopping it, and setting the system back, in seconds: measured with
/// nginx in network namespaces.
const AROUND_TRIAL_S: f64 = 1.5;
/// perf needs this to begin and to write down what it saw, in seconds.
const AROUND_PROBE_S: f64 = 1.0;
/// Taken for a load that doesn't say how long it takes, in seconds.
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
    load.seconds
        .or_else(|| duration_in(&load.args))
        .unwrap_or(UNKNOWN_LOAD_S)
}

fn prime_seconds(load: &Load) -> f64 {
    match &load.prime {
        Some(args) => duration_in(args).unwrap_or_else(|| load_seconds(load)),
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

/// What `-d 180s` or `--duration=2m` says, as wrk reads it.
fn duration_in(args: &str) -> Option<f64> {
    let mut words = args.split_whitespace();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--duration") {
            Some(rest) => rest.strip_prefix('='),
            None => word.strip_prefix("-d").filter(|rest| !rest.is_empty()),
        };
        let value = match (value, word) {
            (Some(value), _) => value,
            (None, "-d" | "--duration") => words.next()?,
            _ => continue,
        };
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match value.strip_prefix(digits)? {
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "ms" => 0.001,
            _ => return None,
        };
        return digits.parse::<f64>().ok().map(|number| number * unit);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_from_arguments_as_wrk_has_them() {
        let check = |args: &str, expected: Option<f64>| {
            assert_eq!(duration_in(args), expected, "{args}");
        };
        check("-t 1 -c 50 -d 180s http://x/", Some(180.0));
        check("-t1 -c50 -d3m http://x/", Some(180.0));
        check("--duration 2 http://x/", Some(2.0));
        check("--duration=1h", Some(3600.0));
        check("-n 800000 -c 100 ${url}", None);
        check("-d soon", None);
        check("-d", None);
    }
}
