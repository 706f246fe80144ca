//! Many more processes of one program than the interface has queues.

use crate::client::Client;
use crate::namespace::has;
use crate::others::Load;
use crate::run::{Accelerated, address, workers_of_nginx};
use crate::run_calls::PYTHON;
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

/// A child for each connection. Then threads that make sockets, while further children and programs begin, each of which looks at its limit;
/// how many have another one than the program is said to the first peer.
const FORKING: &str = "
import os, resource, socket, subprocess, sys, threading
def limit(): return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
s = socket.create_server(('0.0.0.0', 7000), backlog=200)
peers, children = [], []
for _ in range(int(sys.argv[1])):
    peers.append(s.accept()[0])
    children.append(os.fork())
    if children[-1] == 0:
        peers[-1].sendall(b'child')
        peers[-1].recv(1)
        os._exit(0)
beyond = sum(int(number) >= limit() for number in os.listdir('/proc/self/fd'))
def churn():
    while True:
        with socket.socket() as one:
            one.settimeout(.01)
            try: one.connect((peers[0].getpeername()[0], 9))
            except OSError: pass
for _ in range(3): threading.Thread(target=churn, daemon=True).start()
wrong = 0
for _ in range(100):
    child = os.fork()
    if child == 0: os._exit(limit() != int(sys.argv[2]))
    wrong += os.waitpid(child, 0)[1] != 0
for _ in range(20):
    wrong += subprocess.run(['sh', '-c', 'test $(ulimit -Sn) = ' + sys.argv[2]]).returncode != 0
peers[0].sendall(b'%-4d%-4d' % (beyond, wrong))
for child in children: os.waitpid(child, 0)
";

#[test]
fn children_and_programs_begin_with_the_limit_of_a_program_that_the_library_has_many_descriptors_beside()
 {
    const PEERS: usize = 80;
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between_queues([1, 1], |topology| {
        let command =
            format!("ulimit -Sn {PROGRAMS_MAX}; exec {PYTHON} -c \"$0\" {PEERS} {PROGRAMS_MAX}");
        let running = Accelerated::start(&["sh", "-c", &command, FORKING]);
        topology.at_client(|| {
            let mut peers = Vec::new();
            wait_for(|| {
                peers.extend(Client::connect(address(7000)));
                peers.len() == PEERS
            });
            for peer in &mut peers {
                assert_eq!(peer.content(5).unwrap(), b"child");
            }
            let said = peers[0].content(8).unwrap();
            let (beyond, wrong) = said.split_at(4);
            assert_ne!(beyond, b"0   ", "the library has few descriptors");
            assert_eq!(wrong, b"0   ");
        });
        // It ends with its children, whose peers have closed; this signal does nothing.
        let ended = running.end_alone(Signal::WindowChange);
        assert!(ended.success(), "{ended}");
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
