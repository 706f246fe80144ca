//! Load for a while at four fifths of the server's capacity, of small requests, connections and large answers: nothing fails,
//! nothing grows, and all counters agree.
//!
//! Ten seconds, or as many as `MILL_SOAK_SECONDS` says.

use crate::ask::{assert_consistent, figure as figure_of, json};
use crate::namespace::{alone, get};
use crate::others::{Echo, the_rest_is_undisturbed};
use crate::overload::figure;
use crate::server::{Server, Site, wait_for};
use crate::topology::{HOSTS, STACK, Topology, between, kernel_connections};
use mill_sys::process::Pid;
use std::fs;
use std::process::{Child, Command, Stdio};

const SERVER: &str = "server {
    listen 80; listen [::]:80; keepalive_requests 1000000000;
    location = /counters { stub_status; }
}";

/// The default is short enough to be run each time.
fn seconds() -> u32 {
    let wanted = std::env::var("MILL_SOAK_SECONDS");
    wanted.map_or(10, |wanted| wanted.parse().unwrap())
}

/// One kind of clients, all of which run at once.
struct Clients {
    words: &'static [&'static str],
    path: &'static str,
    /// Of the requests a second that the server answers these alone.
    share: f64,
}

/// Kept connections from a stack like the server's; from the kernel connections with one request each, and large answers. Together
/// they take four fifths of what the server can do.
const CLIENTS: [Clients; 3] = [
    Clients {
        words: &["--stack", "af_xdp:mill1", "-c", "64"],
        path: "/",
        share: 0.4,
    },
    Clients {
        words: &["-c", "16", "--no-keepalive"],
        path: "/",
        share: 0.2,
    },
    Clients {
        words: &["-c", "4"],
        path: "/large.bin",
        share: 0.2,
    },
];

const LARGE_BYTES: usize = 3_000_000;

impl Clients {
    /// A load whose verdict tells whether the machine was quiet enough for the latency to be valid, which does not matter here.
    fn begin(&self, topology: &Topology, seconds: u32, rate: Option<f64>) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command
            .args(["load", "-t", "1", "--warm-up", "0s", "--quiet"])
            .args(["--json", "-", "-d", &format!("{seconds}s")])
            .args(self.words);
        if let Some(rate) = rate {
            command.args(["--rate", &format!("{rate:.0}")]);
        }
        command.arg(format!("http://{}{}", HOSTS[0], self.path));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        topology.at_client(|| command.spawn().unwrap())
    }

    /// Answers a second without the other kinds, but with their stack on the interface: where it has a program, long segments are cut
    /// before they pass it, and cost several times as much.
    fn most(&self, topology: &Topology) -> f64 {
        let [on_stack, ..] = &CLIENTS;
        let is_on_stack = self.words == on_stack.words;
        let beside = (!is_on_stack).then(|| on_stack.begin(topology, 4, Some(10.0)));
        let report = end(self.begin(topology, 3, None));
        beside.map(end);
        figure(&report, "\"answered_per_s\":")
    }
}

/// What a load has counted, in JSON.
fn end(load: Child) -> String {
    let output = load.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!text.is_empty(), "{said}");
    assert_eq!(figure(&text, "\"failed\":"), 0.0, "{text}");
    text
}

/// All kinds of clients at their rates; how many requests were answered, and how many were under way at the end.
fn load_all(topology: &Topology, seconds: u32, rates: &[f64]) -> (f64, f64) {
    let begin = |(clients, rate): (&Clients, &f64)| clients.begin(topology, seconds, Some(*rate));
    let loads: Vec<Child> = CLIENTS.iter().zip(rates).map(begin).collect();
    let reports: Vec<String> = loads.into_iter().map(end).collect();
    let sum = |name: &str| reports.iter().map(|report| figure(report, name)).sum();
    (sum("\"answered\":"), sum("\"unfinished\":"))
}

/// Kibibytes of memory in use (proc(5), status: VmRSS).
pub(crate) fn resident_kib(process: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.number())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

/// Requests that the server has handled, this one included.
fn handled() -> u64 {
    let text = get("http://127.0.0.1/counters").unwrap();
    let numbers = text.lines().nth(2).unwrap();
    numbers.split_whitespace().nth(2).unwrap().parse().unwrap()
}

#[test]
fn nothing_fails_and_nothing_grows_in_a_long_load() {
    alone(|| {
        between(1500, |topology| {
            let echo = Echo::start();
            let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
            let site = Site::new();
            let conf = site.configure("worker_processes 1;", SERVER);
            fs::write(site.path("large.bin"), vec![b'x'; LARGE_BYTES]).unwrap();
            // So few connections in TIME-WAIT that their table has its size before anything is measured, as it would after a minute.
            let stack = format!("{STACK},time-wait=1024");
            let server = Server::configured(&site, &conf, &["--stack", &stack]);
            let worker = server.worker();
            let rates = CLIENTS.map(|clients| clients.share * clients.most(topology));
            // Memory that is allocated once is allocated now.
            load_all(topology, 3, &rates);
            let before = (resident_kib(worker), handled());
            let (answered, unfinished) = load_all(topology, seconds(), &rates);
            let after = (resident_kib(worker), handled());
            println!(
                "{} s at {rates:.0?} requests/s: {answered} of {:.0} answered, {} to {} KiB",
                seconds(),
                rates.iter().sum::<f64>() * f64::from(seconds()),
                before.0,
                after.0
            );
            // One is the query itself; others were in progress when the load ended.
            let counted = f64::from(u32::try_from(after.1 - before.1 - 1).unwrap());
            let unread = counted - answered;
            assert!(
                (0.0..=unfinished).contains(&unread),
                "{counted} handled, {answered} answered, {unfinished} under way"
            );
            // The last frames may still be in flight.
            let process = server.pid().number().to_string();
            let steered = || figure_of(&json(&[&process]), "total.stack.steering_redirected");
            let mut before_last = 0;
            wait_for(|| std::mem::replace(&mut before_last, steered()) == before_last);
            assert_consistent(&json(&[&process]));
            let grown = after.0.saturating_sub(before.0);
            assert!(grown < GROWTH_MAX_KIB, "{grown} KiB more than before");
            assert_eq!(server.worker(), worker);
            assert_eq!(kernel_connections(80), "");
            let log = site.error_log();
            for bad in ["[error]", "[crit]", "[alert]", "[emerg]"] {
                assert_eq!(log.lines().find(|line| line.contains(bad)), None);
            }
            the_rest_is_undisturbed(topology, &mut kept);
        });
    });
}

/// Memory of large answers is kept for the next ones, so that it grows with the most of them that were under way at once.
const GROWTH_MAX_KIB: u64 = 4 * 1024;
