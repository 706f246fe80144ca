//! Many more processes of one program than the interface has queues.

use crate::client::Client;
use crate::namespace::has;
use crate::others::Load;
use crate::run::{Accelerated, address, workers_of_nginx};
use crate::run_devices::reload_under_load;
use crate::server::{Site, wait_for};
use crate::topology::{Topology, between_queues, is_steered, kernel_connections};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;

const WORKERS: u32 = 24;

/// Quick reloads of so many can lose single requests (docs/run.md), so there is load before and after reloads only.
#[test]
fn many_workers_on_two_queues_serve_before_and_after_reloads() {
    if !has("nginx") || !has("wrk") {
        println!("not tested: there is no nginx or no wrk");
        return;
    }
    between_queues([2, 2], |topology| {
        let site = Site::new();
        let servers = "server { listen 80; }";
        let (nginx, kept) = workers_of_nginx(topology, &site, (WORKERS, servers));
        drop(kept);
        for reloads in [0, 1, 2] {
            reload_under_load(&nginx, reloads);
            wait_for(|| nginx.children().len() == WORKERS as usize);
            check_answer(topology);
            check_load(topology);
        }
        assert_eq!(kernel_connections(80), "");
        nginx.end(Signal::Quit);
        wait_for(|| !is_steered());
    });
}

/// The process that has a queue has four descriptors for each other one. A program may have 1024 as a rule, and is to get all of them.
#[test]
fn the_librarys_descriptors_for_many_processes_leave_the_program_its_own() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between_queues([1, 1], |topology| {
        let site = Site::new();
        let main = format!("worker_processes {};", 2 * WORKERS);
        let conf = site.configure(&main, "server { listen 80; }");
        let command = format!("ulimit -Sn {PROGRAMS_MAX}; exec nginx -c {conf} -e stderr");
        let nginx = Accelerated::start(&["sh", "-c", &command]);
        let mut most = Vec::new();
        wait_for(|| {
            let all = nginx.children().into_iter().map(descriptors);
            most = all.max_by_key(Vec::len).unwrap_or_default();
            most.len() >= 4 * (2 * WORKERS as usize - 1)
        });
        let of_the_program = most.iter().filter(|number| **number < PROGRAMS_MAX);
        let count = of_the_program.count();
        assert!(count < 200, "{count} of {}", most.len());
        for worker in nginx.children() {
            let limits = fs::read_to_string(format!("/proc/{}/limits", worker.number())).unwrap();
            let open_files = limits
                .lines()
                .find(|line| line.starts_with("Max open files"));
            let soft = open_files.and_then(|line| line.split_whitespace().nth(3));
            assert_eq!(soft.unwrap().parse(), Ok(PROGRAMS_MAX));
        }
        check_answer(topology);
        nginx.end(Signal::Quit);
        wait_for(|| !is_steered());
    });
}

/// The soft limit that most systems begin with.
const PROGRAMS_MAX: u32 = 1024;

/// The numbers of all descriptors of a process.
fn descriptors(process: Pid) -> Vec<u32> {
    let all = fs::read_dir(format!("/proc/{}/fd", process.number()));
    let names = all.into_iter().flatten().flatten();
    let numbers = names.filter_map(|name| name.file_name().to_str()?.parse().ok());
    numbers.collect()
}

fn check_answer(topology: &Topology) {
    let answered = || {
        let answer = Client::connect(address(80)).and_then(|mut client| client.get("/"));
        answer.is_ok_and(|answer| answer.status == 200)
    };
    topology.at_client(|| wait_for(answered));
}

/// A connection a request, for a second; each is answered.
fn check_load(topology: &Topology) {
    let load = topology.at_client(|| Load::with_header("Connection: close", 1));
    let report = load.report();
    println!("{report}");
    assert!(report.contains("Requests/sec"), "{report}");
    let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
    assert!(!has_errors, "{report}");
}
