//! Several workers on a queue, several queues.

use super::bench::Bench;
use super::frames::{Frame, tcp};
use crate::steering::counters::SteeringCounters;
use crate::steering::layout::TABLES_MAX;
use crate::steering::{Rules, SteeringError};
use mill_sys::bpf::program::{Trial, Verdict};
use mill_sys::interface;
use std::os::fd::{AsFd, AsRawFd};

/// Flows from many addresses and ports to these targets.
fn flows(targets: &[&str]) -> Vec<Frame> {
    let mut flows = Vec::new();
    for target in targets {
        for number in 0..250_u16 {
            let port = 1024 + number * 191;
            let source = if target.starts_with('[') {
                format!("[2001:db8:{number:x}::{:x}]:{port}", number / 3)
            } else {
                format!("198.51.100.{}:{port}", number / 3)
            };
            flows.push(tcp(&source, target));
        }
    }
    flows
}

#[test]
fn program_and_process_agree_about_the_worker_of_each_flow() {
    let targets = ["192.0.2.1:80", "192.0.2.1:65535", "[2001:db8::1]:80"];
    let Some(bench) = Bench::serving(&targets) else {
        return;
    };
    for workers in [1, 2, 3, 7, 64] {
        bench.table.set_workers(workers);
        let hash = bench.table.flow_hash();
        assert_eq!(hash.workers, workers);
        // Only worker 0 has a socket: the others' frames pass.
        let mut per_worker = vec![0_u32; usize::try_from(workers).unwrap()];
        for frame in flows(&targets) {
            let worker = hash.worker(frame.source, frame.target.port());
            per_worker[usize::try_from(worker).unwrap()] += 1;
            let (verdict, _) = bench.try_bytes(&frame.bytes());
            let is_first = verdict == Verdict::Redirect;
            assert_eq!(is_first, worker == 0, "{frame:?} of {workers}");
        }
        // 750 flows: no worker has none, or many more than three times its share. The key of the hash is drawn, and addresses and
        // ports are alike: one of 64 workers was seen with 33 flows in the place of 11.
        let fair = 750 / workers;
        for count in per_worker {
            assert!(count > 0 && count <= fair * 3 + 10, "{count} of {fair}");
        }
    }
}

#[test]
fn each_worker_has_its_own_socket() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80"]) else {
        return;
    };
    bench.table.set_workers(3);
    let hash = bench.table.flow_hash();
    bench.rules.set_socket(0, 2, bench.socket.as_fd()).unwrap();
    for frame in flows(&["192.0.2.1:80"]) {
        let worker = hash.worker(frame.source, 80);
        let (verdict, grown) = bench.try_bytes(&frame.bytes());
        let expected = if worker == 1 {
            assert_eq!(grown.unclaimed, 1);
            Verdict::Pass
        } else {
            assert_eq!(grown.redirected, 1);
            Verdict::Redirect
        };
        assert_eq!(verdict, expected, "{worker}");
    }
}

#[test]
fn each_queue_has_its_own_sockets_and_counters() {
    let Some(bench) = Bench::serving(&["192.0.2.1:80"]) else {
        return;
    };
    let queues = ["numtxqueues", "2", "numrxqueues", "2"];
    let mut line = vec!["link", "add", "near"];
    line.extend(queues);
    line.extend(["type", "veth", "peer", "far"]);
    line.extend(queues);
    super::wire::ip(&line);
    super::wire::ip(&["link", "set", "near", "up"]);
    let index = interface::index("near").unwrap();
    let frame = tcp("9.9.9.9:9", "192.0.2.1:80").bytes();
    let verdict = |queue: u32| {
        let trial = Trial {
            frame: &frame,
            arrival: Some((index, queue)),
            repeat: 1,
        };
        bench.rules.try_out(trial).unwrap().verdict
    };
    assert_eq!(verdict(0), Verdict::Redirect);
    assert_eq!(verdict(1), Verdict::Pass);
    bench.rules.set_socket(1, 0, bench.socket.as_fd()).unwrap();
    assert_eq!(verdict(1), Verdict::Redirect);
    let expected = SteeringCounters {
        redirected: 2,
        unclaimed: 1,
        ..SteeringCounters::default()
    };
    assert_eq!(bench.table.counters(), expected);
}

/// Each of so many workers has a table, and the program reaches all of them.
#[test]
fn a_program_with_the_most_tables_is_loaded() {
    let partitions: Vec<Vec<u32>> = (0..TABLES_MAX).map(|queue| vec![queue]).collect();
    match Rules::load_partitions(TABLES_MAX, &partitions, None) {
        Ok(rules) => {
            let last = TABLES_MAX as usize - 1;
            let numbers = [0, last].map(|partition| rules.descriptors(partition)[0].as_raw_fd());
            assert_ne!(numbers[0], numbers[1]);
        }
        Err(error @ SteeringError::Rights(_)) => println!("not tested: {error}"),
        Err(error) => panic!("{error}"),
    }
}
