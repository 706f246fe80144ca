//! A server, its client, and the faults.

use crate::fates::{Client, Fates};
use crate::namespace::in_namespace;
use crate::server::{Server, Site};
use crate::topology::{Topology, between};
use crate::transport::Transport;
use mill_sys::descriptor::wait_readable;
use mill_sys::process::Pid;
use std::fs;
use std::io::Write;
use std::time::Duration;

/// The file that the client requests: larger than one segment.
pub(crate) const FILE: &str = "fates.bin";
const FILE_BYTES: u32 = 40_000;

/// A server with a client.
pub(crate) struct Stage<'a> {
    pub(crate) transport: Transport,
    pub(crate) site: Site,
    /// Where clients are, except with shared memory.
    pub(crate) topology: Option<&'a Topology>,
    pub(crate) server: Option<Server>,
}

/// The main context of the server's configuration.
pub(crate) const MAIN: &str = "worker_processes 1; worker_rlimit_nofile 20000;";
pub(crate) const HTTP: &str = "keepalive_requests 1000000; server { listen 80; }";

/// Applies a fault to a server on each of the transports while the client sends requests; prints and checks the fates.
pub(crate) fn on_each(
    transports: &[Transport],
    what: &str,
    act: impl Fn(&mut Stage<'_>) -> String + Sync,
    check: impl Fn(&Fates) + Sync,
) {
    for transport in transports {
        let run = |topology: Option<&Topology>| {
            let mut stage = Stage::set(*transport, topology, HTTP);
            let client = stage.at_client(|| Client::start(&stage.site, *transport, FILE));
            pause(SETTLING_MS);
            let done = act(&mut stage);
            pause(SETTLING_MS);
            let fates = client.end();
            tell(what, *transport, &fates, &done);
            assert_eq!(fates.wrong, 0, "{what}, {transport}: {fates:?}");
            assert!(fates.answered_last > 0, "{what}, {transport}: {fates:?}");
            check(&fates);
        };
        match transport {
            Transport::Memif => in_namespace(|| run(None)),
            Transport::Kernel | Transport::AfXdp => between(1500, |topology| run(Some(topology))),
        }
    }
}

impl<'a> Stage<'a> {
    pub(crate) fn set(transport: Transport, topology: Option<&'a Topology>, http: &str) -> Self {
        let site = Site::new();
        let content: Vec<u8> = (0..FILE_BYTES / 4)
            .flat_map(|word| (word ^ 0x5a5a).to_le_bytes())
            .collect();
        fs::write(site.path(FILE), content).unwrap();
        site.configure(MAIN, http);
        let mut stage = Self {
            transport,
            site,
            topology,
            server: None,
        };
        stage.start();
        stage
    }

    /// Starts a server, and waits until it serves.
    pub(crate) fn start(&mut self) {
        let before = self.in_force(1);
        let conf = self.site.path("nginx.conf");
        let stack = self.transport.of_server(&self.site);
        let stack: Vec<&str> = stack.iter().flat_map(|stack| ["--stack", stack]).collect();
        self.server = Some(Server::begin(conf.to_str().unwrap(), &stack));
        self.wait_until("the server serves", |stage| stage.in_force(1) > before);
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// How often this configuration has come into force.
    pub(crate) fn in_force(&self, number: usize) -> usize {
        let line = format!("configuration {number} is in force");
        self.site.error_log().matches(&line).count()
    }

    /// The master that the pid file names.
    pub(crate) fn master(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.site.path("pid")).ok()?;
        Pid::new(text.trim().parse().ok()?)
    }

    /// Runs something in the clients' namespace.
    pub(crate) fn at_client<T>(&self, run: impl FnOnce() -> T) -> T {
        match self.topology {
            Some(topology) => topology.at_client(run),
            None => run(),
        }
    }

    /// Waits until something holds, half a minute at most.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3000 {
            if holds(self) {
                return;
            }
            pause(10);
        }
        panic!("not within 30 s: {what}\n{}", self.site.error_log());
    }
}

/// Waits for the time only: both sides are processes of their own.
pub(crate) fn pause(millis: u64) {
    wait_readable(&[], Some(Duration::from_millis(millis))).unwrap();
}

/// Prints a row of the table, and appends it to the configured file.
fn tell(what: &str, transport: Transport, fates: &Fates, done: &str) {
    let Fates {
        started,
        answered,
        refused,
        reset,
        cut,
        wrong,
        timed_out,
        under_way,
        ..
    } = fates;
    let row = format!(
        "| {what} | {transport} | {started} | {answered} | {refused} | {reset} | {cut} | {wrong} | {timed_out} | {under_way} | {done} |"
    );
    println!("{row}");
    if let Some(path) = std::env::var_os("MILL_FAULTS") {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{row}").unwrap();
    }
}

/// Before anything is done, and after it: some hundreds of requests.
const SETTLING_MS: u64 = 500;
