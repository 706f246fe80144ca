//! The system under test: its files, its command line, its allocator; started, listened for, ended.

mod listening;

use crate::allocator;
use crate::client::millstream;
use crate::host::{Host, Line};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::names::Names;
use crate::needs;
use crate::patience::wait_for;
use crate::place::Place;
use crate::process::{Process, Streams};
use crate::topology::Ground;
use mill_lab::recipe::{Allocator, Setup, System, SystemKind};
use mill_lab::record::CommandLine;
use std::path::Path;
use std::time::Duration;

/// Why a system is not there: because of what this machine lacks, or because something went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    Absent(String),
    Failed(String),
}

/// A system that listens, and whatever runs behind it.
#[derive(Debug)]
pub struct Running {
    /// The one under test first.
    processes: Vec<Process>,
    /// How those are ended that leave the foreground.
    stops: Vec<Line>,
    host: Host,
}

/// Where a system is put: its host's folder, and where its output goes on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub ground: &'a Ground,
    pub place: &'a Place,
    pub folder: &'a Path,
    pub names: &'a Names,
    pub nofile: Option<u64>,
}

/// Starts what is behind first, then the system itself, and waits until it listens.
pub fn start(
    setup: &Setup,
    upstreams: &[System],
    site: Site<'_>,
    journal: &mut Journal,
    interrupt: &Interrupt,
) -> Result<Running, Trouble> {
    let mut running = Running {
        processes: Vec::new(),
        stops: Vec::new(),
        host: site.ground.server.clone(),
    };
    let all = std::iter::once(&setup.system)
        .chain(upstreams)
        .collect::<Vec<_>>();
    for system in all.into_iter().rev() {
        if let Some(reason) = needs::unmet(&system.needs) {
            return Err(Trouble::Absent(reason));
        }
        let process = start_one(system, site, journal)?;
        running.processes.insert(0, process);
        running.stops.extend(stop_line(system, site.names));
        running.await_listener(system, site, interrupt)?;
    }
    Ok(running)
}

impl Running {
    /// First process of the system under test.
    pub fn pid(&self) -> Option<u32> {
        self.processes.first().map(Process::pid)
    }

    pub fn commands(&self) -> Vec<CommandLine> {
        self.processes
            .iter()
            .map(|process| process.command().clone())
            .collect()
    }

    /// Ends all, the one in front first; false if the one under test had ended by itself before.
    pub fn end(mut self) -> bool {
        let lived = self
            .processes
            .first_mut()
            .is_some_and(|process| process.ended().is_none());
        for line in &self.stops {
            let _ = self.host.command(line).output();
        }
        for process in self.processes.drain(..) {
            process.end(PATIENCE_END);
        }
        lived || !self.stops.is_empty()
    }

    fn await_listener(
        &mut self,
        system: &System,
        site: Site<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Trouble> {
        let port = site.names.port_of(system);
        let leaves = !self.stops.is_empty();
        let process = self.processes.first_mut().expect("it was started just now");
        let failed = |what: String| Trouble::Failed(format!("{}: {what}", system.title));
        let state = wait_for(PATIENCE_START, || {
            if interrupt.is_asked() {
                return Some(Err(String::from("interrupted")));
            }
            if listening::listens(&site.ground.server, process.pid(), port) {
                return Some(Ok(()));
            }
            let status = process
                .ended()
                .filter(|status| !(leaves && status.success()))?;
            Some(Err(format!(
                "it ended with {status} {}",
                last_words(site.folder, system)
            )))
        });
        match state {
            Some(Ok(())) => {}
            Some(Err(what)) => return Err(failed(what)),
            None => {
                let seconds = PATIENCE_START.as_secs();
                return Err(failed(format!(
                    "nothing listens on port {port} after {seconds} s"
                )));
            }
        }
        if site.ground.server != Host::Local && !matches!(site.ground.server, Host::Namespace(_)) {
            return Ok(());
        }
        allocator::verify(process.pid(), system.allocator).map_err(failed)
    }
}

fn start_one(system: &System, site: Site<'_>, journal: &mut Journal) -> Result<Process, Trouble> {
    let failed =
        |what: &dyn std::fmt::Display| Trouble::Failed(format!("{}: {what}", system.title));
    let run = site.place.folder().join(&system.name);
    let mut names = site.names.clone();
    names
        .set("run", run.display())
        .set("port", site.names.port_of(system));
    let mut line = Line::new(argv(system, &names, site).map_err(|what| failed(&what))?);
    line.nofile = site.nofile;
    line.cpus =
        Some(crate::names::cpu_list(&site.ground.server_cpus)).filter(|list| !list.is_empty());
    line.environment = environment(system, &names)?;
    write_files(system, &names, site).map_err(|error| failed(&error))?;
    let (out, err) = log_names(site.folder, system);
    let host = &site.ground.server;
    let streams = Streams {
        out: &out,
        err: &err,
    };
    let role = format!("server {}", system.name);
    Process::start(host, &line, &role, streams, journal)
        .map_err(|error| failed(&format!("{}: {error}", host.text(&line))))
}

/// The command, before taskset and its kin.
fn argv(system: &System, names: &Names, site: Site<'_>) -> Result<Vec<String>, String> {
    let mut argv = match system.kind {
        SystemKind::Nginx => {
            let binary = system
                .binary
                .clone()
                .unwrap_or_else(|| String::from("nginx"));
            vec![binary]
        }
        SystemKind::Millstream => {
            let binary = millstream(system.binary.as_deref(), &site.ground.server)?;
            vec![binary, String::from("serve")]
        }
        SystemKind::Command => {
            let start = system
                .start
                .as_ref()
                .ok_or("a command needs [system.….start]")?;
            start.argv.iter().map(|word| names.fill(word)).collect()
        }
    };
    if system.kind != SystemKind::Command {
        let fixed = [
            "-p",
            "${run}/",
            "-e",
            "${run}/error.log",
            "-c",
            "${run}/nginx.conf",
        ];
        argv.extend(fixed.map(|word| names.fill(word)));
        let config = system.config.as_deref().unwrap_or_default();
        if !config
            .lines()
            .any(|line| line.trim_start().starts_with("daemon"))
        {
            argv.extend(["-g", "daemon off;"].map(String::from));
        }
    }
    argv.extend(system.args.iter().map(|word| names.fill(word)));
    Ok(argv)
}

fn environment(system: &System, names: &Names) -> Result<Vec<(String, String)>, Trouble> {
    let filled = |(name, value): (&String, &String)| (name.clone(), names.fill(value));
    let mut environment: Vec<_> = system.environment.iter().map(filled).collect();
    if let Some(library) = allocator::library(system.allocator).map_err(Trouble::Absent)? {
        debug_assert!(system.allocator != Allocator::Glibc);
        environment.push((String::from("LD_PRELOAD"), library.display().to_string()));
    }
    Ok(environment)
}

fn write_files(system: &System, names: &Names, site: Site<'_>) -> std::io::Result<()> {
    let write = |name: &str, text: &str| {
        let path = format!("{}/{name}", system.name);
        site.place.write(&path, names.fill(text).as_bytes())
    };
    // Makes the folder, too.
    write("error.log", "")?;
    if let Some(config) = &system.config {
        write("nginx.conf", config)?;
    }
    for (name, text) in system.start.iter().flat_map(|start| &start.files) {
        write(name, text)?;
    }
    Ok(())
}

fn stop_line(system: &System, names: &Names) -> Option<Line> {
    let stop = &system.start.as_ref()?.stop;
    (!stop.is_empty()).then(|| Line::new(stop.iter().map(|word| names.fill(word))))
}

fn log_names(folder: &Path, system: &System) -> (std::path::PathBuf, std::path::PathBuf) {
    let name = |end: &str| folder.join(format!("server-{}.{end}", system.name));
    (name("out"), name("err"))
}

/// What it printed last, for an error message.
fn last_words(folder: &Path, system: &System) -> String {
    let (out, err) = log_names(folder, system);
    let text = [err, out].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(format!("and said: {}", line.trim()))
    });
    text.unwrap_or_else(|| String::from("and said nothing"))
}

/// nginx with a large configuration is there in a tenth of a second; adapters of whole stacks take longer.
const PATIENCE_START: Duration = Duration::from_secs(20);

const PATIENCE_END: Duration = Duration::from_secs(5);
