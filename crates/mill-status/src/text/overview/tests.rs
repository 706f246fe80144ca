//! Tests of the overview.

use super::*;
use crate::document::{OptionInForce, Server};

fn figures(of: &[(&str, u64)]) -> Figures {
    of.iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

fn example() -> Status {
    let worker = |number: u32, state, requests| Worker {
        process: 4712,
        worker: number,
        thread: 4713 + number,
        state,
        uptime_s: 100.0,
        no_turn_s: 3.24,
        turns: 1000,
        turns_busy: 250,
        cpu_s: Some(50.0),
        server: figures(&[("requests", requests), ("connections_active", 2)]),
        stack: Some(figures(&[
            ("frames_received", 20),
            ("frames_transmitted", 30),
            ("dropped_checksum", 3),
            ("dropped_no_route", 4),
            ("segments_sent", 200),
            ("segments_retransmitted", 1),
            ("steering_passed", 9),
        ])),
        ..Worker::default()
    };
    let workers = vec![worker(0, State::Runs, 10), worker(1, State::Hangs, 5)];
    Status {
        server: Server {
            program: String::from("millstream"),
            version: String::from("millstream/0.1.0"),
            pid: 4711,
            role: String::from("master"),
            uptime_s: 3720.0,
            configuration: String::from("/etc/nginx/nginx.conf"),
            generation: 2,
            listen: vec![String::from("0.0.0.0:80"), String::from("[::]:80")],
            stack: Some(String::from("af_xdp:eth0")),
            kernel_tls: Some(false),
            fallbacks: vec![String::from(
                "af_xdp:eth0: packet memory is in small pages, there are no large ones (no room); \"sysctl vm.nr_hugepages=64\" makes some",
            )],
            options: vec![OptionInForce::default()],
            ..Server::default()
        },
        total: Total::of(&workers),
        workers,
        ..Status::default()
    }
}

#[test]
fn the_overview_shows_all_workers_and_names_those_that_hang() {
    let text = overview(&example());
    let expected = "\
millstream/0.1.0, process 4711, the master, up 1 h 2 min
configuration /etc/nginx/nginx.conf (number 2 since the start)
listens at    0.0.0.0:80, [::]:80
own stack     af_xdp:eth0
TLS records   sealed by workers; the kernel could not (no kTLS)
fallback      af_xdp:eth0: packet memory is in small pages, there are no large ones (no room);
              \"sysctl vm.nr_hugepages=64\" makes some

WORKER  THREAD  STATE  CPU  BUSY  TURNS  CONNS  ACCEPTED  REQUESTS  FRAMES IN  FRAMES OUT
     0    4713  runs   50%   25%   1000      2         0        10         20          30
     1    4714  HANGS  50%   25%   1000      2         0         5         20          30
worker 1: no turn for 3.2 s

connections   4 active (0 reading, 0 writing, 0 waiting), 0 accepted, 0 reset by clients
requests      15, answered with 0 2xx, 0 3xx, 0 4xx, 0 5xx; 0 B sent
troubles      none
stack         0 connections, 0 half open, 0 in TIME-WAIT; 0 flows, 0 timers
segments      0 received, 400 sent, 2 of them again (0.5%), 0 timeouts, 0 out of order
frames        40 received, 6 dropped of them; 60 sent
drops         checksum\u{a0}6, no_route\u{a0}8
memory        0 B of tables, 0 B unread in 0 buffers, 0 frames held
link          steering_passed\u{a0}18
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn a_server_that_does_not_answer_is_reported_from_memory() {
    let mut status = example();
    status.server = Server {
        pid: 4711,
        ..Server::default()
    };
    status.notes = vec![String::from("process 4711 does not answer")];
    let text = overview(&status);
    assert!(
        text.starts_with("process 4711 does not answer\nprocess 4711\n\nWORKER"),
        "{text}"
    );
}
