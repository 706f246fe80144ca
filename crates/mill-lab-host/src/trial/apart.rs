//! Probes that start a server of their own: the system calls and allocations of a request, and the memory of a
//! connection, without effects of earlier requests.

use super::Bench;
use super::check::request;
use crate::client;
use crate::interrupt::Interrupt;
use crate::monitor::process;
use crate::names::Names;
use crate::probe::{Looked, strace, valgrind};
use crate::request::Connection;
use crate::system::{self, Running, Site, Trouble};
use mill_lab::plan::Trial;
use mill_lab::recipe::{Probe, ProbeKind, Side, Where};
use mill_lab::record::TrialRecord;
use mill_sys::rlimit::Resource;
use std::io;
use std::path::PathBuf;

/// Measures, and adds to the record what was counted, or why nothing was.
pub(super) fn pass(
    trial: &Trial,
    probe: &Probe,
    record: &mut TrialRecord,
    names: &Names,
    bench: &mut Bench<'_>,
) {
    let mut pass = Pass {
        trial,
        names,
        bench,
    };
    let (metric, looked) = match probe.kind {
        ProbeKind::Strace => ("system_calls_per_request", pass.system_calls(probe)),
        ProbeKind::Valgrind => ("allocations_per_request", pass.allocations()),
        _ => ("idle_connection_bytes", pass.idle_connections()),
    };
    match looked {
        Ok(looked) => {
            record.figures.extend(looked.figures);
            record.commands.extend(looked.commands);
        }
        Err(Trouble::Absent(reason) | Trouble::Failed(reason)) => {
            record.absent.insert(String::from(metric), reason);
        }
    }
}

struct Pass<'a, 'b> {
    trial: &'a Trial,
    names: &'a Names,
    bench: &'a mut Bench<'b>,
}

/// A server, and where its output goes.
struct Fresh {
    running: Running,
    folder: PathBuf,
    mark: usize,
}

impl Pass<'_, '_> {
    /// Starts a server afresh; `label` is the name of its folder.
    fn start(&mut self, label: &str, wrapper: &[&str]) -> Result<Fresh, Trouble> {
        let folder = self.bench.folder.join(label);
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|error| Trouble::Failed(format!("{}: {error}", folder.display())))?;
        let prepared_testbed = self.bench.prepared_testbed;
        let site = Site {
            testbed: &prepared_testbed.testbed,
            place: &prepared_testbed.place,
            folder: &folder,
            names: self.names,
            nofile: prepared_testbed.nofile,
            wrapper,
        };
        let mark = self.bench.journal.mark();
        let (setup, upstreams) = (&self.trial.setup, &self.trial.upstreams);
        let running = system::start(
            setup,
            upstreams,
            site,
            self.bench.journal,
            self.bench.interrupt,
        );
        match running {
            Ok(running) => Ok(Fresh {
                running,
                folder,
                mark,
            }),
            Err(trouble) => {
                self.bench.journal.undo_to(mark);
                Err(trouble)
            }
        }
    }

    fn end(&mut self, fresh: Fresh) {
        fresh.running.end();
        self.bench.journal.undo_to(fresh.mark);
    }

    /// For each of the probe's loads; the counts of the first are subtracted from those of the second.
    fn system_calls(&mut self, probe: &Probe) -> Result<Looked, Trouble> {
        let mut counted = Vec::new();
        for (index, args) in probe.loads.iter().enumerate() {
            counted.push(self.counted(&format!("strace-{index}"), args, probe.at)?);
        }
        let (less, all) = match counted.as_slice() {
            [] => {
                return Err(Trouble::Failed(String::from(
                    "the probe strace needs `loads`",
                )));
            }
            [all] => (strace::Counted::default(), all),
            [less, .., all] => (less.clone(), all),
        };
        let side = if probe.at == Where::Client {
            ".client"
        } else {
            ""
        };
        let mut looked = Looked::default();
        let by_name = all.per_request(&less).map_err(Trouble::Failed)?;
        let stem = format!("system_calls_per_request{side}");
        looked
            .figures
            .insert(stem.clone(), by_name.iter().map(|(_, calls)| calls).sum());
        // Rarer calls are noise of the load, such as a full socket buffer now and then.
        let frequent = by_name.into_iter().filter(|(_, calls)| *calls >= 0.01);
        looked
            .figures
            .extend(frequent.map(|(name, calls)| (format!("{stem}.{name}"), calls)));
        Ok(looked)
    }

    /// The calls of a server, or of the clients, under one load.
    fn counted(&mut self, label: &str, args: &str, at: Where) -> Result<strace::Counted, Trouble> {
        let mut fresh = self.start(label, &[])?;
        let result = self.count(&mut fresh, args, at);
        self.end(fresh);
        result.map_err(Trouble::Failed)
    }

    fn count(
        &mut self,
        fresh: &mut Fresh,
        args: &str,
        at: Where,
    ) -> Result<strace::Counted, String> {
        let report = fresh.folder.join("strace.txt");
        let file = report.display().to_string();
        let pids: Vec<u32> =
            process::descendants(&fresh.running.pids(Side::Server), &process::parents())
                .into_iter()
                .collect();
        let wrapper = ["strace", "-f", "-c", "-o", &file];
        let (attached, wrapper) = if at == Where::Client {
            (None, &wrapper[..])
        } else {
            let attached = strace::attach(&wrapper, &pids, &fresh.folder, self.bench.journal)?;
            (Some(attached), &[][..])
        };
        let files = (fresh.folder.as_path(), "client");
        let (load, prepared_testbed) = (&self.trial.setup.load, self.bench.prepared_testbed);
        let clients = client::start(
            load,
            args,
            prepared_testbed,
            self.names,
            files,
            wrapper,
            self.bench.journal,
        )?;
        let outcome = clients.finish(self.bench.interrupt)?.ok_or("interrupted")?;
        if let Some(attached) = attached {
            process::wait_until_idle(&pids);
            attached.end(strace::TIMEOUT);
        }
        let text = std::fs::read_to_string(&report).map_err(|error| format!("strace: {error}"))?;
        let requests = outcome.printed.figures.get("requests").copied();
        Ok(strace::Counted {
            calls: strace::parse(&text),
            requests: requests.unwrap_or(0.0),
        })
    }

    fn allocations(&mut self) -> Result<Looked, Trouble> {
        let few = self.allocated(REQUESTS_FEW)?;
        let many = self.allocated(REQUESTS_MANY)?;
        let each = (many - few) / f64::from(REQUESTS_MANY - REQUESTS_FEW);
        // A difference of two counts may come out slightly below zero.
        let each = if each.abs() < 0.005 { 0.0 } else { each };
        let mut looked = Looked::default();
        looked
            .figures
            .insert(String::from("allocations_per_request"), each);
        Ok(looked)
    }

    /// Allocations of a server from its start to its end, with so many requests between.
    fn allocated(&mut self, requests: u32) -> Result<f64, Trouble> {
        let label = format!("valgrind-{requests}");
        let fresh = self.start(&label, &valgrind::WRAPPER)?;
        let processes =
            process::descendants(&fresh.running.pids(Side::Server), &process::parents()).len();
        let (_, err) = system::log_names(&fresh.folder, &self.trial.setup.system);
        let asked = match request(self.trial, self.names, self.bench.prepared_testbed) {
            Some(request) => request.repeat(requests),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        self.end(fresh);
        asked.map_err(|error| Trouble::Failed(format!("under valgrind: {error}")))?;
        let text = std::fs::read_to_string(err).unwrap_or_default();
        let sum = valgrind::sum(&text, processes);
        sum.ok_or_else(|| {
            Trouble::Failed(String::from(
                "valgrind did not tell the heap usage of all processes",
            ))
        })
    }

    fn idle_connections(&mut self) -> Result<Looked, Trouble> {
        let fresh = self.start("idle", &[])?;
        let pids = process::descendants(&fresh.running.pids(Side::Server), &process::parents());
        let memory = || -> Result<process::Memory, String> {
            let memory: Option<Vec<_>> = pids.iter().map(|pid| process::memory(*pid)).collect();
            let memory = memory.ok_or("the server's smaps_rollup cannot be read")?;
            Ok(memory.into_iter().sum())
        };
        let measured = (|| {
            self.open(1).map_err(|error| error.to_string())?;
            let before = memory()?;
            let held = self
                .open(IDLE_CONNECTIONS)
                .map_err(|error| format!("idle connections: {error}"))?;
            let after = memory()?;
            drop(held);
            Ok((before, after))
        })();
        self.end(fresh);
        let (before, after) = measured.map_err(Trouble::Failed)?;
        let each = |after: f64, before: f64| (after - before) / f64::from(IDLE_CONNECTIONS);
        let mut looked = Looked::default();
        looked.figures.extend([
            (
                String::from("idle_connection_bytes"),
                each(after.shared, before.shared),
            ),
            (
                String::from("idle_connection_bytes.private"),
                each(after.private, before.private),
            ),
            (String::from("memory_bytes.server.before"), before.shared),
        ]);
        Ok(looked)
    }

    /// Connections that made one request each.
    fn open(&self, count: u32) -> io::Result<Vec<Connection>> {
        let mut limit = Resource::Descriptors.limit()?;
        limit.soft = limit.hard;
        Resource::Descriptors.set_limit(limit)?;
        let request = request(self.trial, self.names, self.bench.prepared_testbed);
        let request = request.ok_or(io::ErrorKind::NotFound)?;
        let interrupt: &Interrupt = self.bench.interrupt;
        let mut held = Vec::new();
        while held.len() < count as usize && !interrupt.is_asked() {
            let mut connection = request.connect()?;
            connection.ask()?;
            held.push(connection);
        }
        Ok(held)
    }
}

/// Multiples of 14, so that each connection of 14 requests is used up. The first is past the growth of tables and caches.
const REQUESTS_FEW: u32 = 140;
const REQUESTS_MANY: u32 = 1120;

/// Enough that a page is a byte per connection, few enough for usual limits of open files.
const IDLE_CONNECTIONS: u32 = 4000;
