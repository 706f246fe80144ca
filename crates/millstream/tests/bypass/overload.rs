//! A server with less CPU time than it needs, and far more requests than it can answer: an answer costs it hardly more
//! than without overload.

use crate::namespace::{alone, has, output_of, text_of};
use crate::server::{Server, Site, ticks_of};
use crate::topology::{FAR, HOSTS, Topology, between, serve_on};
use mill_sys::process::Pid;
use std::process::{Child, Command, Stdio};

/// It sleeps when it is idle, so that its CPU time is that of its answers.
const STACK: &str = "af_xdp:mill0,polling=interrupt";

/// Load whose frames arrive at the server as fast as one processor makes them.
const FAR_STACK: &str = "af_xdp:mill1";

/// A process that uses the rest of the processor.
struct Competitor(Child);

impl Competitor {
    fn start() -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        // It does not end otherwise.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server on the first processor, with 655 parts of 1679 in its time (sched(7): the weights of nice 2 and 0): 39 %.
fn confine(server: &Server) {
    for process in [server.pid(), server.worker()] {
        let number = process.number().to_string();
        text_of("taskset", &["-a", "-c", "-p", "0", &number]);
    }
    let group = server.pid().number().to_string();
    text_of("renice", &["-n", "2", "-g", &group]);
}

/// The minimum of the server's CPU time, in hundredths of a second, for a comparison: its share of a load is some 39.
const TICKS_MIN: f64 = 15.0;

/// The result of a load: answers, and hundredths of a second of the server's time.
#[derive(Clone, Copy, Debug)]
struct Brought {
    answers_per_s: f64,
    answers: f64,
    ticks: f64,
}

impl Brought {
    fn per_tick(self) -> f64 {
        self.answers / self.ticks
    }
}

fn load(topology: &Topology, worker: Pid, words: &[&str]) -> Brought {
    let url = format!("http://{}/", HOSTS[0]);
    let own = [
        "-c",
        "1",
        env!("CARGO_BIN_EXE_millstream"),
        "load",
        "--stack",
        FAR_STACK,
        "-t",
        "1",
        "-d",
        "1s",
        "--quiet",
        "--json",
        "-",
    ];
    let before = ticks_of(worker);
    let all = [&own, words, &[url.as_str()]].concat();
    // Its verdict tells whether the load was late, which does not matter here.
    let output = topology.at_client(|| output_of("taskset", &all));
    let ticks = ticks_of(worker) - before;
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.as_str();
    assert_eq!(figure(text, "\"failed\":"), 0.0, "{text}");
    Brought {
        answers_per_s: figure(text, "\"answered_per_s\":"),
        answers: figure(text, "\"answered\":"),
        ticks: f64::from(u32::try_from(ticks.max(1)).unwrap()),
    }
}

/// A number of the summary in a load's JSON.
pub(crate) fn figure(text: &str, word: &str) -> f64 {
    let summary = text.split_once("\"summary\":");
    let (_, rest) = summary
        .and_then(|(_, summary)| summary.split_once(word))
        .unwrap_or_else(|| panic!("{word} in {text}"));
    let rest = rest.trim_start();
    let end = rest.find(|byte: char| !byte.is_ascii_digit() && byte != '.' && byte != 'e');
    rest[..end.unwrap_or(rest.len())].parse().unwrap()
}

/// The share of its answers that an overloaded server still gives. Compared for the same time, or, as other processes may run here as
/// well, for the same CPU time.
fn kept(topology: &Topology, worker: Pid, life: &[&str]) -> f64 {
    let closed = [&["-c", "64"], life].concat();
    let best = load(topology, worker, &closed);
    let rate = format!("{:.0}", 4.0 * best.answers_per_s);
    let open = [&["-c", "400", "--rate", &rate], life].concat();
    let overloaded = load(topology, worker, &open);
    println!("{FAR} {life:?}: {best:?}, {overloaded:?}");
    if best.ticks.min(overloaded.ticks) < TICKS_MIN {
        println!("not compared: others left the server too little time");
        return 1.0;
    }
    let for_time = overloaded.answers_per_s / best.answers_per_s;
    for_time.max(overloaded.per_tick() / best.per_tick())
}

const TRIES_MAX: u32 = 3;
const KEPT_MIN: f64 = 0.6;

#[test]
fn four_times_as_much_as_can_be_answered_does_not_make_the_answers_fewer() {
    if !["taskset", "renice"].iter().all(|tool| has(tool)) {
        println!("not tested: there is no taskset or no renice");
        return;
    }
    alone(|| {
        between(1500, |topology| {
            let site = Site::new();
            let server = serve_on(&site, STACK);
            confine(&server);
            let _competitor = Competitor::start();
            let worker = server.worker();
            for life in [&[][..], &["--no-keepalive"]] {
                // One second of others' work can be in either part.
                let mut tries = (0..TRIES_MAX).map(|_| kept(topology, worker, life));
                assert!(tries.any(|kept| kept >= KEPT_MIN), "{life:?}, see above");
            }
        });
    });
}
