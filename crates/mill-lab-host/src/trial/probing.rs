//! The pass of a probe: a measurement under the same load, which is restarted until the probe has finished.

use super::{Bench, begin, figures};
use crate::client::{Clients, Outcome};
use crate::interrupt::Interrupt;
use crate::names::Names;
use crate::patience::pause;
use crate::probe::{self, Looked, Scene};
use crate::system::{Running, Trouble};
use mill_lab::plan::Trial;
use mill_lab::recipe::{Counter, Probe, ProbeKind, Tool};
use mill_lab::record::TrialRecord;
use std::time::Duration;

/// Measures, and adds to the record what was counted; the rate of the load meanwhile is used only as a divisor.
pub(super) fn pass(
    trial: &Trial,
    probe: &Probe,
    record: &mut TrialRecord,
    names: &Names,
    running: &Running,
    bench: &mut Bench<'_>,
) -> Result<(), Trouble> {
    let load = &trial.setup.load;
    if probe.kind == ProbeKind::Capture && !trial.setup.system.stack.is_empty() {
        let reason = "packets of a stack of our own pass by what captures; its own option `pcap=` writes them";
        record
            .absent
            .insert(String::from("capture"), String::from(reason));
        return Ok(());
    }
    let alone =
        load.tool == Tool::None || matches!(probe.kind, ProbeKind::Path | ProbeKind::Environment);
    let mut scene = Scene {
        testbed: bench.prepared_testbed.testbed.clone(),
        server: running.pid(),
        clients: Vec::new(),
        port: names.port_of(&trial.setup.system),
        folder: bench.folder.to_owned(),
    };
    if alone {
        let looked = probe::look(probe, &scene);
        figures::add_probe(record, looked, Err(String::from("no load ran meanwhile")));
        return Ok(());
    }
    let probe = &with_requests(probe);
    let clients = begin(trial, &load.args, names, "probe-client", bench)?;
    scene.clients = clients.pids();
    pause(Duration::from_secs_f64(load.ramp_s.clamp(0.0, 60.0)));
    let interrupt = bench.interrupt;
    let (looked, rate) = look_under_load(probe, &scene, clients, interrupt, || {
        begin(trial, &load.args, names, "probe-client", bench)
    });
    if let Err(problem) = &rate {
        let what = format!("{:?}", probe.kind).to_lowercase();
        record.notes.push(format!(
            "probe {what}: {problem}; what it counted a second is of less load"
        ));
    }
    figures::add_probe(record, looked, rate);
    Ok(())
}

/// Counters are reported per request: received requests are counted with them.
fn with_requests(probe: &Probe) -> Probe {
    let mut probe = probe.clone();
    if probe.kind == ProbeKind::Counters && !probe.counters.contains(&Counter::TcpReceive) {
        probe.counters.push(Counter::TcpReceive);
    }
    probe
}

/// Measures while clients run, one round after the other. A failure of the load affects the probe alone: the clean
/// pass is over and valid.
fn look_under_load(
    probe: &Probe,
    scene: &Scene,
    first: Clients,
    interrupt: &Interrupt,
    mut again: impl FnMut() -> Result<Clients, Trouble>,
) -> (Looked, Result<Option<f64>, String>) {
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| probe::look(probe, scene));
        let mut rounds = Rounds::default();
        let mut clients = Some(first);
        while let Some(running) = clients.take() {
            let goes_on = rounds.add(running.finish(interrupt));
            if goes_on && !looking.is_finished() {
                match again() {
                    Ok(more) => clients = Some(more),
                    Err(trouble) => rounds.fail(format!("{trouble:?}")),
                }
            }
        }
        let looked = looking.join().unwrap_or_else(|_| {
            rounds.fail(String::from("the probe itself failed"));
            Looked::default()
        });
        (looked, rounds.rate())
    })
}

/// The load under a probe, all its rounds.
#[derive(Debug, Default)]
struct Rounds {
    requests: f64,
    seconds: f64,
    problem: Option<String>,
}

impl Rounds {
    /// Adds a round's result; returns whether to run another one.
    fn add(&mut self, finished: Result<Option<Outcome>, String>) -> bool {
        match finished {
            Ok(Some(outcome)) => {
                let rate = outcome.printed.figures.get("requests_per_s");
                self.requests += rate.copied().unwrap_or(0.0) * outcome.seconds;
                self.seconds += outcome.seconds;
                return true;
            }
            Ok(None) => self.fail(String::from("interrupted")),
            Err(problem) => self.fail(format!("the load under the probe: {problem}")),
        }
        false
    }

    fn fail(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Requests a second over all rounds.
    fn rate(self) -> Result<Option<f64>, String> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok((self.seconds > 0.0).then(|| self.requests / self.seconds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_lab::output::Printed;

    fn round(rate: f64, seconds: f64) -> Result<Option<Outcome>, String> {
        let figures = [(String::from("requests_per_s"), rate)].into();
        let printed = Printed {
            figures,
            ..Printed::default()
        };
        Ok(Some(Outcome { printed, seconds }))
    }

    #[test]
    fn the_rate_of_several_rounds_is_that_of_all_their_requests() {
        let mut rounds = Rounds::default();
        assert!(rounds.add(round(100.0, 1.0)) && rounds.add(round(400.0, 2.0)));
        assert_eq!(rounds.rate(), Ok(Some(300.0)));
    }

    #[test]
    fn a_round_that_failed_makes_the_rate_unknown_and_ends_the_rounds() {
        let mut rounds = Rounds::default();
        assert!(rounds.add(round(100.0, 1.0)));
        assert!(!rounds.add(Err(String::from("connection refused"))));
        let problem = rounds.rate().unwrap_err();
        assert!(problem.contains("connection refused"), "{problem}");
    }
}
