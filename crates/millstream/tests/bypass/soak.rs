//! Load for a while at four fifths of the server's capacity: nothing fails, nothing grows, and all counters agree.
//!
//! Ten seconds, or as many as `MILL_SOAK_SECONDS` says.

use crate::ask::{assert_consistent, figure as figure_of, json};
use crate::namespace::get;
use crate::others::{Echo, the_rest_is_undisturbed};
use crate::overload::figure;
use crate::server::{Server, Site, wait_for};
use crate::topology::{HOSTS, STACK, Topology, between, kernel_connections};
use mill_sys::process::Pid;
use std::process::Command;

const SERVER: &str = "server {
    listen 80; listen [::]:80; keepalive_requests 1000000000;
    location = /counters { stub_status; }
}";

/// The default is short enough to be run each time.
fn seconds() -> u32 {
    let wanted = std::env::var("MILL_SOAK_SECONDS");
    wanted.map_or(10, |wanted| wanted.parse().unwrap())
}

/// The counts of a load over the stack, in JSON. Its verdict tells whether the machine was quiet enough for the latency
/// to be valid, which does not matter here.
fn load(topology: &Topology, seconds: u32, words: &[&str]) -> String {
    let duration = format!("{seconds}s");
    let url = format!("http://{}/", HOSTS[0]);
    let own = [
        "load",
        "--stack",
        "af_xdp:mill1",
        "-t",
        "1",
        "-c",
        "64",
        "-d",
        &duration,
        "--warm-up",
        "0s",
        "--quiet",
        "--json",
        "-",
    ];
    let all = [&own, words, &[&url]].concat();
    let output = topology.at_client(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command.args(all).output().unwrap()
    });
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        !text.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(figure(&text, "\"failed\":"), 0.0, "{text}");
    text
}

/// Kibibytes of memory in use (proc(5), status: VmRSS).
pub(crate) fn resident_kib(process: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.number())).unwrap();
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
    between(1500, |topology| {
        let echo = Echo::start();
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        let site = Site::new();
        let conf = site.configure("worker_processes 1;", SERVER);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let worker = server.worker();
        let most = figure(&load(topology, 2, &[]), "\"answered_per_s\":");
        let rate = format!("{:.0}", 0.8 * most);
        // Memory that is allocated once is allocated now.
        load(topology, 1, &["--rate", &rate]);
        let before = (resident_kib(worker), handled());
        let report = load(topology, seconds(), &["--rate", &rate]);
        let after = (resident_kib(worker), handled());
        let answered = figure(&report, "\"answered\":");
        println!(
            "{} s at {rate} of {most:.0} requests/s: {answered} answered, {} to {} KiB",
            seconds(),
            before.0,
            after.0
        );
        // One is the query itself; others were in progress when the load ended.
        let counted = f64::from(u32::try_from(after.1 - before.1 - 1).unwrap());
        let unread = counted - answered;
        let unfinished = figure(&report, "\"unfinished\":");
        assert!(
            (0.0..=unfinished).contains(&unread),
            "{counted} handled: {report}"
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
}

/// Far less than a byte for each request of the shortest load.
const GROWTH_MAX_KIB: u64 = 1024;
