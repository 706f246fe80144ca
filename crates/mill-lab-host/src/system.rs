//! The system under test: its files, its command line, its allocator; its start, the wait for its port, its end.

mod listening;

use crate::allocator;
use crate::client::millstream;
use crate::host::{Host, Line};
use crate::host_folder::HostFolder;
use crate::interrupt::Interrupt;
use crate::journal::{Entry, Journal};
use crate::names::{Names, affinity_masks, cpu_list};
use crate::needs;
use crate::own_stack;
use crate::patience::wait_for;
use crate::process::{Process, Streams};
use crate::topology::Testbed;
use mill_lab::recipe::{Allocator, Setup, Side, System, SystemKind};
use mill_lab::record::CommandLine;
use std::path::Path;
use std::time::Duration;

/// Why a system does not run: this machine lacks something, or something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    Absent(String),
    Failed(String),
}

/// A system that listens, and the systems behind it.
#[derive(Debug)]
pub struct Running {
    /// The system under test first; each with its side.
    processes: Vec<(Process, Side)>,
    /// The system under test does not stay in the foreground: the journal has the command that stops it.
    leaves: bool,
}

/// Where a system runs: its host's folder, and where its output goes on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub testbed: &'a Testbed,
    pub place: &'a HostFolder,
    pub folder: &'a Path,
    pub names: &'a Names,
    pub nofile: Option<u64>,
    /// A program with its arguments that runs the system under test; empty for none.
    pub wrapper: &'a [&'a str],
}

/// Starts the systems behind it first, then the system itself, and waits until it listens.
pub fn start(
    setup: &Setup,
    upstreams: &[System],
    site: Site<'_>,
    journal: &mut Journal,
    interrupt: &Interrupt,
) -> Result<Running, Trouble> {
    let mut running = Running {
        processes: Vec::new(),
        leaves: leaves(&setup.system),
    };
    let all = std::iter::once(&setup.system)
        .chain(upstreams)
        .collect::<Vec<_>>();
    for system in all.into_iter().rev() {
        let host = site.testbed.host(system.side);
        let missing = needs::unmet(&system.needs)
            .or_else(|| out_of_reach(system, site.testbed))
            .or_else(|| nginx(system, host).err())
            .or_else(|| own_stack::unmet(&stack_of(system, site), host))
            .or_else(|| match system.is_run() {
                true => own_stack::unmet_runner(system.runner.as_deref(), host),
                false => None,
            });
        if let Some(reason) = missing {
            return Err(Trouble::Absent(reason));
        }
        let is_in_front = std::ptr::eq(system, &raw const setup.system);
        let wrapper = if is_in_front { site.wrapper } else { &[] };
        let process = start_one(system, Site { wrapper, ..site }, journal)?;
        running.processes.insert(0, (process, system.side));
        running.await_listener(system, site, interrupt)?;
    }
    Ok(running)
}

impl Running {
    /// First process of the system under test.
    pub fn pid(&self) -> Option<u32> {
        self.processes.first().map(|(process, _)| process.pid())
    }

    /// First processes of the systems on a side, of which the server's has the system under test.
    pub fn pids(&self, side: Side) -> Vec<u32> {
        let there = self.processes.iter().filter(|(_, of)| *of == side);
        there.map(|(process, _)| process.pid()).collect()
    }

    /// Whether the system under test has left the foreground: its process ids are unknown then.
    pub fn has_left(&mut self) -> bool {
        let front = self.processes.first_mut();
        self.leaves && front.is_some_and(|(process, _)| process.ended().is_some())
    }

    pub fn commands(&self) -> Vec<CommandLine> {
        self.processes
            .iter()
            .map(|(process, _)| process.command().clone())
            .collect()
    }

    /// Ends all, the one in front first; false if the system under test had ended by itself before. A system that
    /// left the foreground is stopped when the journal is undone.
    pub fn end(mut self) -> bool {
        let lived = self
            .processes
            .first_mut()
            .is_some_and(|(process, _)| process.ended().is_none());
        for (process, _) in self.processes.drain(..) {
            process.end(END_TIMEOUT);
        }
        lived || self.leaves
    }

    fn await_listener(
        &mut self,
        system: &System,
        site: Site<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Trouble> {
        let port = site.names.port_of(system);
        let stack = stack_of(system, site);
        let leaves = leaves(system);
        let (process, _) = self.processes.first_mut().expect("it was started just now");
        let failed = |what: String| Trouble::Failed(format!("{}: {what}", system.title));
        let state = wait_for(START_TIMEOUT, || {
            if interrupt.is_asked() {
                return Some(Err(String::from("interrupted")));
            }
            let host = site.testbed.host(system.side);
            let listens = listening::listens(host, process.pid(), port);
            let is_there = || {
                let client = site.testbed.clients.first();
                let address = system.host.as_ref().unwrap_or(&site.testbed.address);
                own_stack::is_there(&stack, host)
                    && own_stack::takes_connections(&stack, client, process.pid(), address, port)
            };
            if listens && (stack.is_empty() || is_there()) {
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
                let seconds = START_TIMEOUT.as_secs();
                return Err(failed(format!(
                    "nothing listens on port {port} after {seconds} s"
                )));
            }
        }
        if matches!(site.testbed.host(system.side), Host::Remote(_)) {
            return Ok(());
        }
        allocator::verify(process.pid(), system.allocator).map_err(failed)
    }
}

/// Files of systems are written for the server's host alone.
fn out_of_reach(system: &System, testbed: &Testbed) -> Option<String> {
    let is_far = matches!(testbed.server, Host::Remote(_)) && system.side == Side::Client;
    is_far.then(|| {
        format!(
            "{} on the client's side is not started over ssh",
            system.title
        )
    })
}

fn start_one(system: &System, site: Site<'_>, journal: &mut Journal) -> Result<Process, Trouble> {
    let failed =
        |what: &dyn std::fmt::Display| Trouble::Failed(format!("{}: {what}", system.title));
    let names = folder_names(system, site);
    let mut line = Line::new(site.wrapper.iter().copied());
    line.argv
        .extend(argv(system, &names, site).map_err(|what| failed(&what))?);
    line.nofile = site.nofile;
    line.cpus = Some(cpu_list(site.testbed.cpus(system.side))).filter(|list| !list.is_empty());
    line.environment = environment(system, &names)?;
    let folder = system
        .start
        .as_ref()
        .and_then(|start| start.folder.as_ref());
    line.folder = folder.map(|folder| names.fill(folder));
    write_files(system, &names, site).map_err(|error| failed(&error))?;
    let (out, err) = log_names(site.folder, system);
    let host = site.testbed.host(system.side);
    let streams = Streams {
        out: &out,
        err: &err,
    };
    let role = format!("server {}", system.name);
    note_stop(system, &names, host, &line, journal).map_err(|error| failed(&error))?;
    Process::start(host, &line, &role, streams, journal)
        .map_err(|error| failed(&format!("{}: {error}", host.text(&line))))
}

/// The nginx to start. Debian's is in /usr/sbin, which is not in the PATH of its users: on the local machine it is
/// looked for there too. The error is the text of a report's cell.
fn nginx(system: &System, host: &Host) -> Result<String, String> {
    let name = system.binary.as_deref().unwrap_or("nginx");
    if system.kind != SystemKind::Nginx || matches!(host, Host::Remote(_)) {
        return Ok(String::from(name));
    }
    needs::program(name)
        .map(|path| path.display().to_string())
        .ok_or_else(|| format!("not on this machine: needs {name}"))
}

/// The command, before taskset and other wrappers.
fn argv(system: &System, names: &Names, site: Site<'_>) -> Result<Vec<String>, String> {
    let host = site.testbed.host(system.side);
    let stack = names.fill(&system.stack);
    let mut argv = match system.is_run() {
        true => own_stack::run_words(system.runner.as_deref(), &stack, host)?,
        false => Vec::new(),
    };
    argv.extend(program(system, names, host)?);
    argv.extend(system.args.iter().map(|word| names.fill(word)));
    if system.kind == SystemKind::Millstream && !stack.is_empty() {
        argv.extend([String::from("--stack"), stack]);
    }
    Ok(argv)
}

/// The program with the words that every one of its kind has.
fn program(system: &System, names: &Names, host: &Host) -> Result<Vec<String>, String> {
    let mut argv = match system.kind {
        SystemKind::Nginx => vec![nginx(system, host)?],
        SystemKind::Millstream => {
            let binary = millstream(system.binary.as_deref(), host)?;
            vec![binary, String::from("serve")]
        }
        SystemKind::Command => {
            let start = system
                .start
                .as_ref()
                .ok_or("a command needs [system.….start]")?;
            let mut argv: Vec<String> = start.argv.iter().map(|word| names.fill(word)).collect();
            if let Some(first) = argv.first_mut().filter(|first| *first == OWN_NAME)
                && needs::program(OWN_NAME).is_none()
            {
                *first = millstream(None, host)?;
            }
            argv
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
    Ok(argv)
}

/// A command of this name is the running program where PATH has none.
const OWN_NAME: &str = "millstream";

/// The value of `--stack`; empty for the kernel's.
fn stack_of(system: &System, site: Site<'_>) -> String {
    folder_names(system, site).fill(&system.stack)
}

/// The names of a trial, with the folder, the port and the CPUs of this system.
fn folder_names(system: &System, site: Site<'_>) -> Names {
    let mut names = site.names.clone();
    names
        .set("run", site.place.folder().join(&system.name).display())
        .set("port", site.names.port_of(system));
    if system.side == Side::Client {
        let cpus = site.testbed.cpus(Side::Client);
        names
            .set("cpus", cpu_list(cpus))
            .set("affinity_masks", affinity_masks(cpus));
    }
    names
}

fn environment(system: &System, names: &Names) -> Result<Vec<(String, String)>, Trouble> {
    let filled = |(name, value): (&String, &String)| (name.clone(), names.fill(value));
    let mut environment: Vec<_> = system.environment.iter().map(filled).collect();
    if let Some(library) = allocator::library(system.allocator).map_err(Trouble::Absent)? {
        debug_assert!(system.allocator != Allocator::Glibc);
        let library = library.display().to_string();
        let preloaded = environment
            .iter_mut()
            .find(|(name, _)| name == "LD_PRELOAD");
        match preloaded {
            // Other libraries that the recipe preloads, such as Onload, stay.
            Some((_, others)) => *others = format!("{library}:{others}"),
            None => environment.push((String::from("LD_PRELOAD"), library)),
        }
    }
    Ok(environment)
}

fn write_files(system: &System, names: &Names, site: Site<'_>) -> std::io::Result<()> {
    let write = |name: &str, text: &str| {
        let path = format!("{}/{name}", system.name);
        let text = names.fill(text);
        // The folder is removed at the end; the files that were used are kept with the trial.
        let kept = format!("server-{}-{}", system.name, name.replace('/', "-"));
        if !text.is_empty() {
            std::fs::write(site.folder.join(kept), &text)?;
        }
        site.place.write(&path, text.as_bytes())
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

fn leaves(system: &System) -> bool {
    let start = system.start.as_ref();
    start.is_some_and(|start| !start.stop.is_empty())
}

/// A system that leaves the foreground is stopped by the journal, also after a failure or a crash. A stop that fails
/// because nothing runs any more is ignored.
fn note_stop(
    system: &System,
    names: &Names,
    host: &Host,
    line: &Line,
    journal: &mut Journal,
) -> std::io::Result<()> {
    let Some(start) = system.start.as_ref().filter(|_| leaves(system)) else {
        return Ok(());
    };
    let folder = line.folder.as_deref().unwrap_or("/");
    let mut undo = ["sh", "-c", FORGIVING, folder].map(String::from).to_vec();
    undo.extend(start.stop.iter().map(|word| names.fill(word)));
    journal.note(&Entry::Ran {
        host: host.clone(),
        argv: line.argv.clone(),
        undo,
    })
}

/// Changes to the folder and runs the command.
const FORGIVING: &str = "cd \"$0\" && \"$@\" || :";

/// Where a system's two streams go.
pub(crate) fn log_names(
    folder: &Path,
    system: &System,
) -> (std::path::PathBuf, std::path::PathBuf) {
    let name = |end: &str| folder.join(format!("server-{}.{end}", system.name));
    (name("out"), name("err"))
}

/// Its last output, for an error message.
fn last_words(folder: &Path, system: &System) -> String {
    let (out, err) = log_names(folder, system);
    let text = [err, out].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(format!("and said: {}", line.trim()))
    });
    text.unwrap_or_else(|| String::from("and said nothing"))
}

/// nginx with a large configuration listens after a tenth of a second; under valgrind it takes longer.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Under valgrind a server writes its sums at its end.
const END_TIMEOUT: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    /// The file that a stop leaves in its folder, and the messages of undoing.
    fn check(stop: &str, expected: bool) {
        let scratch = crate::scratch::Scratch::new(&format!("stop-{expected}"));
        let folder = &scratch.0;
        let text = format!(
            "title = 't'\nkind = 'command'\n[start]\nargv = ['true']\nstop = [{stop}]\nfolder = '${{run}}'\n"
        );
        let system: System = toml::from_str(&text).unwrap();
        let mut names = Names::default();
        names.set("run", folder.display());
        let mut line = Line::new(["true"]);
        line.folder = Some(folder.display().to_string());
        let mut journal = Journal::begin(folder, "stop").unwrap();
        note_stop(&system, &names, &Host::Local, &line, &mut journal).unwrap();
        let problems = journal.restore();
        let left = folder.join("stopped").exists();
        assert_eq!((problems, left), (Vec::new(), expected), "{stop}");
    }

    #[test]
    fn a_system_that_leaves_the_foreground_is_stopped_by_the_journal() {
        check("'touch', 'stopped'", true);
        check("'false'", false);
    }
}
