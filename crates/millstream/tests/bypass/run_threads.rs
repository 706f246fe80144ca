//! `stacks=thread`: the threads of a program have a stack each; and what numbers descriptors have.

use crate::client::Client;
use crate::namespace::{has, output_of, text_of};
use crate::nginx::Nginx;
use crate::run::{Accelerated, BINARY, on_stack};
use crate::run_calls::PYTHON;
use crate::run_programs::{ECHO, Peer, have};
use crate::server::{Site, wait_for};
use crate::topology::{FAR_ADDRESS, STACK, between, between_queues};
use mill_sys::signal::Signal;

/// With a stack for each thread.
pub(crate) const BY_THREAD: &str = "af_xdp:mill0,stacks=thread";

const SERVERS: &str = "server { listen 80; keepalive_requests 100000000; }";

/// Sets and polls over several stacks, a line each.
const OWN_STACKS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/bypass/threads/own_stacks.py"
);

#[test]
fn the_library_takes_no_low_descriptors_on_which_wrk_counts_with_few_connections() {
    if !have(&["wrk", "nginx"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let _nginx = topology.at_client(|| Nginx::start(&site, SERVERS));
        let url = format!("http://{FAR_ADDRESS}/");
        let report = on_stack(&["wrk", "-t1", "-c2", "-d1s", &url]);
        assert!(!report.contains("Socket errors"), "{report}");
        // The program's first socket has the first number that is free.
        let first = "import socket; s = socket.create_connection((__import__('sys').argv[1], 80)); \
             print(s.fileno(), socket.socket().fileno())";
        if has(PYTHON) {
            let plain = text_of(PYTHON, &["-c", first, FAR_ADDRESS]);
            assert_eq!(on_stack(&[PYTHON, "-c", first, FAR_ADDRESS]), plain);
        }
    });
}

#[test]
fn each_thread_of_wrk_has_a_stack_and_a_share_of_the_queues() {
    if !have(&["wrk", "nginx"]) {
        return;
    }
    between_queues([2, 2], |topology| {
        let site = Site::new();
        let _nginx = topology.at_client(|| Nginx::start(&site, SERVERS));
        let url = format!("http://{FAR_ADDRESS}/");
        let words = ["wrk", "-t2", "-c4", "-d2s", &url];
        let wrk = Accelerated::on(BY_THREAD, &words);
        // Its main thread has opened a connection, too.
        let process = wrk.pid().number().to_string();
        // It fails until there is one.
        let stacks = || output_of(BINARY, &["stackdump", "stacks", "--nopids", &process]).stdout;
        wait_for(|| String::from_utf8_lossy(&stacks()).lines().skip(1).count() == 3);
        let stats = || text_of(BINARY, &["stackdump", "stats", &process]);
        let dump = stats();
        let owned: Vec<&str> = dump
            .lines()
            .filter_map(|line| line.strip_prefix("partitions_owned: "))
            .collect();
        assert_eq!(owned.len(), 3, "{dump}");
        wait_for(|| stats().matches("partitions_owned: 1\n").count() == 2);
        assert_eq!(text_of("ss", &["-Htan", "dport = :80"]), "");
        assert!(wrk.end_alone(Signal::Interrupt).success());
        let run = ["run", "--stack", BY_THREAD, "--"];
        let report = text_of(
            BINARY,
            &[&run[..], &["wrk", "-t2", "-c4", "-d1s", &url]].concat(),
        );
        assert!(!report.contains("Socket errors"), "{report}");
        assert!(!report.contains("Non-2xx"), "{report}");
    });
}

#[test]
fn sets_polls_and_children_of_threads_with_stacks_of_their_own_work_as_on_one() {
    if !have(&[PYTHON]) {
        return;
    }
    between_queues([2, 2], |topology| {
        let _echo = Peer::start(topology, &[PYTHON, "-c", ECHO]);
        let far = format!("{FAR_ADDRESS}:7000").parse().unwrap();
        topology.at_client(|| wait_for(|| Client::connect(far).is_ok()));
        for stack in [BY_THREAD, STACK] {
            let run = [
                "run",
                "--stack",
                stack,
                "--",
                PYTHON,
                OWN_STACKS,
                FAR_ADDRESS,
            ];
            let said = text_of(BINARY, &run);
            let right = said.lines().filter(|line| line.ends_with(" True"));
            assert_eq!(right.count(), 6, "{stack}: {said}");
        }
    });
}
