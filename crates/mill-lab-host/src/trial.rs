//! One trial: a fresh server, a load, its figures, and the passes of the probes.

mod apart;
mod check;
mod cpu_share;
mod figures;
mod names;
mod probing;
mod workers;

use crate::client::{self, Clients, Outcome};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::monitor::{self, Monitor, Observed, Watched};
use crate::names::Names;
use crate::own_stack;
use crate::patience::pause;
use crate::prepared_testbed::PreparedTestbed;
use crate::system::{self, Running, Site, Trouble};
use mill_lab::plan::Trial;
use mill_lab::recipe::{Repeat, Setup, Side, SystemKind, Tool};
use mill_lab::record::{Status, TrialRecord};
use mill_sys::clock;
use std::path::Path;
use std::time::Duration;

/// What a trial is carried out with.
#[derive(Debug)]
pub struct Bench<'a> {
    pub prepared_testbed: &'a PreparedTestbed,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
    pub repeat: &'a Repeat,
    /// The trial's folder in the store.
    pub folder: &'a Path,
}

/// A record with nothing measured yet.
pub fn blank(trial: &Trial, attempt: u32) -> TrialRecord {
    TrialRecord {
        number: trial.number,
        block: trial.block,
        point: trial.point.clone(),
        again: trial.again,
        attempt,
        started_ms: u64::try_from(clock::realtime().as_millis()).unwrap_or(u64::MAX),
        ..TrialRecord::default()
    }
}

/// Carries it out. None if it was interrupted, with nothing to store.
pub fn carry_out(trial: &Trial, attempt: u32, mut bench: Bench<'_>) -> Option<TrialRecord> {
    let mut record = blank(trial, attempt);
    record.tuned.clone_from(&bench.prepared_testbed.tuned);
    let began = clock::monotonic();
    let outcome = measure(trial, &mut record, &mut bench);
    record.seconds = (clock::monotonic() - began).as_secs_f64();
    if bench.interrupt.is_asked() {
        return None;
    }
    match outcome {
        Ok(()) => {
            let polls = trial.setup.system.polls();
            figures::judge(&mut record, bench.repeat, polls);
        }
        Err(Trouble::Absent(reason)) => record.status = Status::Absent { reason },
        Err(Trouble::Failed(reason)) => record.status = Status::Failed { reason },
    }
    Some(record)
}

fn measure(trial: &Trial, record: &mut TrialRecord, bench: &mut Bench<'_>) -> Result<(), Trouble> {
    let load = &trial.setup.load;
    let prepared_testbed = bench.prepared_testbed;
    if let Some(reason) = client::unmet(load, prepared_testbed.testbed.clients.first()) {
        return Err(Trouble::Absent(reason));
    }
    let (names, moved) = names::of(trial, prepared_testbed);
    record.notes.extend(moved);
    let site = Site {
        testbed: &prepared_testbed.testbed,
        place: &prepared_testbed.place,
        folder: bench.folder,
        names: &names,
        nofile: prepared_testbed.nofile,
        wrapper: &[],
    };
    let mark = bench.journal.mark();
    let setup = &trial.setup;
    let running = system::start(
        setup,
        &trial.upstreams,
        site,
        bench.journal,
        bench.interrupt,
    );
    let mut running = match running {
        Ok(running) => running,
        Err(trouble) => {
            bench.journal.undo_to(mark);
            return Err(trouble);
        }
    };
    record.commands.extend(running.commands());
    let has_left = running.has_left();
    // A group with a full share would only add the cost of its accounting.
    let share = setup.system.cpu_share.filter(|share| *share < 1.0);
    let confined = share.map_or(Ok(()), |share| {
        cpu_share::confine(&running.pids(Side::Server), share, bench.journal)
    });
    let done = confined.map_err(Trouble::Absent).and_then(|()| {
        check::answer(trial, &names, prepared_testbed)?;
        under_load(trial, record, &names, &running, bench)
    });
    if has_left {
        figures::forget_server(record);
    }
    let lived = running.end();
    bench.journal.undo_to(mark);
    done?;
    if !lived {
        return Err(Trouble::Failed(String::from(
            "the server ended by itself during the trial",
        )));
    }
    for probe in setup
        .probe
        .iter()
        .filter(|probe| probe.kind.has_own_server())
    {
        if !bench.interrupt.is_asked() {
            apart::pass(trial, probe, record, &names, bench);
        }
    }
    Ok(())
}

/// All passes while the server runs.
fn under_load(
    trial: &Trial,
    record: &mut TrialRecord,
    names: &Names,
    running: &Running,
    bench: &mut Bench<'_>,
) -> Result<(), Trouble> {
    let load = &trial.setup.load;
    if load.tool != Tool::None {
        if let Some(prime) = &load.prime {
            let clients = begin(trial, prime, names, "prime", bench)?;
            record.commands.extend(clients.commands());
            clients.finish(bench.interrupt).map_err(Trouble::Failed)?;
        }
        clean_pass(trial, record, names, running, bench)?;
    }
    for probe in trial
        .setup
        .probe
        .iter()
        .filter(|probe| !probe.kind.has_own_server())
    {
        if bench.interrupt.is_asked() {
            return Ok(());
        }
        probing::pass(trial, probe, record, names, running, bench)?;
    }
    Ok(())
}

/// The pass whose rates count.
fn clean_pass(
    trial: &Trial,
    record: &mut TrialRecord,
    names: &Names,
    running: &Running,
    bench: &mut Bench<'_>,
) -> Result<(), Trouble> {
    let setup = &trial.setup;
    let unloaded = unloaded(setup, running, bench);
    let clients = begin(trial, &setup.load.args, names, "client", bench)?;
    record.commands.extend(clients.commands());
    let beside_clients = running.pids(Side::Client);
    let monitor = Monitor::start(Watched {
        server: running.pids(Side::Server),
        clients: [clients.pids(), beside_clients].concat(),
        testbed: bench.prepared_testbed.testbed.clone(),
        interval: Duration::from_millis(setup.monitors.interval_ms.max(10)),
        link_mbit: setup
            .monitors
            .link_mbit
            .or(bench.prepared_testbed.testbed.link_mbit),
        beside_interface: own_stack::is_beside_interface(setup),
    })
    .map_err(|error| Trouble::Failed(format!("the monitor: {error}")))?;
    let finished = clients.finish(bench.interrupt);
    let observed = monitor.stop();
    let Some(outcome) = finished.map_err(Trouble::Failed)? else {
        return Ok(());
    };
    keep(trial, record, outcome, &observed);
    record.figures.extend(unloaded);
    let strays = own_stack::astray(
        setup,
        &bench.prepared_testbed.testbed.server,
        &record.figures,
    );
    if let Some(problem) = strays {
        return Err(Trouble::Failed(problem));
    }
    let (host, folder) = (&bench.prepared_testbed.testbed.server, bench.folder);
    own_stack::counted::count(&setup.system, host, running.pid(), folder, record);
    std::fs::write(bench.folder.join("monitor.csv"), observed.csv())
        .map_err(|error| Trouble::Failed(format!("monitor.csv: {error}")))?;
    record.artefacts.push(String::from("monitor.csv"));
    match workers::ended(observed.ended(), bench) {
        Some(problem) => Err(Trouble::Failed(problem)),
        None => Ok(()),
    }
}

/// The CPU use of an idle server, in percent of a CPU: measured for servers that may poll without end.
fn unloaded(setup: &Setup, running: &Running, bench: &Bench<'_>) -> Option<(String, f64)> {
    let may_spin = !setup.system.stack.is_empty() || setup.system.kind == SystemKind::Command;
    if !may_spin || matches!(bench.prepared_testbed.testbed.server, Host::Remote(_)) {
        return None;
    }
    let used = monitor::cpu_of(running.pids(Side::Server), || pause(UNLOADED_LOOK));
    let percent = used * 100.0 / UNLOADED_LOOK.as_secs_f64();
    Some((String::from("process_cpu_unloaded.server"), percent))
}

/// /proc counts in steps of 10 ms: a server that takes 5 % of a CPU or more is seen.
const UNLOADED_LOOK: Duration = Duration::from_millis(200);

fn keep(trial: &Trial, record: &mut TrialRecord, outcome: Outcome, observed: &Observed) {
    let ramp = Duration::from_secs_f64(trial.setup.load.ramp_s.clamp(0.0, 3600.0));
    let (seen, absent) = observed.steady(ramp);
    record.absent.extend(absent);
    record.figures.extend(outcome.printed.figures);
    record.figures.extend(seen);
    record.percentiles = outcome.printed.percentiles;
    record.notes.extend(outcome.printed.notes);
    if outcome.printed.interrupted {
        record
            .notes
            .push(String::from("the client says that it was interrupted"));
    }
    figures::derive(&mut record.figures);
    if let Some(held) = record
        .figures
        .get("connections_held")
        .copied()
        .filter(|held| *held > 0.0)
    {
        let (server, client) = observed.memory_taken();
        for (side, bytes) in [("server", server), ("client", client)] {
            let each = monitor::cpu::float(bytes) / held;
            record
                .figures
                .insert(format!("connection_bytes.{side}"), each);
        }
    }
}

fn begin(
    trial: &Trial,
    args: &str,
    names: &Names,
    label: &str,
    bench: &mut Bench<'_>,
) -> Result<Clients, Trouble> {
    let files = (bench.folder, label);
    client::start(
        &trial.setup.load,
        args,
        bench.prepared_testbed,
        names,
        files,
        &[],
        bench.journal,
    )
    .map_err(Trouble::Failed)
}
