//! Several processes of one program under `millstream run`, each with a stack and queues of the interface.

use crate::client::Client;
use crate::handover::{SETTLED, SIGCONT, SIGSTOP, UNANSWERED, is_stopped, owners};
use crate::namespace::{alone, get, has, text_of};
use crate::others::Load;
use crate::run::{Accelerated, BINARY, address, workers_of_nginx};
use crate::run_calls::PYTHON;
use crate::run_devices::reload_under_load;
use crate::run_faults::NOTED;
use crate::server::{Site, wait_for};
use crate::topology::{
    FAR_ADDRESS, HOSTS, STACK, Topology, between_queues, is_steered, kernel_connections,
    resets_of_kernel,
};
use crate::upgrade::is_running;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use mill_sys::{clock, descriptor};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

const SERVERS: &str =
    "server { listen 80; listen [::]:80; location = /worker { return 200 $pid; } }";
const WITH_REUSEPORT: &str =
    "server { listen 80 reuseport; location = /worker { return 200 $pid; } }";

/// The worker that answers a new connection.
fn worker(topology: &Topology) -> Option<String> {
    let url = format!("http://{}/worker", HOSTS[0]);
    topology.at_client(|| get(&url))
}

/// The workers that answer new connections, once there are so many that are not among `former` ones.
pub(crate) fn workers(
    topology: &Topology,
    count: usize,
    former: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    wait_for(|| {
        for _ in 0..20 {
            let answered = worker(topology).expect("each request is answered");
            if !former.contains(&answered) {
                found.insert(answered);
            }
        }
        found.len() >= count
    });
    found
}

fn pid(worker: &str) -> Pid {
    Pid::new(worker.parse().unwrap()).unwrap()
}

/// Kept connections to all workers, by their numbers.
fn kept(topology: &Topology, count: usize) -> Vec<Client> {
    let mut known = BTreeSet::new();
    let mut kept = Vec::new();
    wait_for(|| {
        let mut client = topology.at_client(|| Client::connect(address(80)).unwrap());
        let answer = client.get("/worker").unwrap();
        if known.insert(answer.content) {
            kept.push(client);
        }
        kept.len() == count
    });
    kept
}

/// Reloads three workers so many times, each with the rest of an answer to send.
fn reload_with_answers_under_way(
    topology: &Topology,
    (nginx, site): (&Accelerated, &Site),
    times: usize,
) {
    let large = fs::read(site.path("large.bin")).unwrap();
    let mut known = workers(topology, 3, &BTreeSet::new());
    for _ in 0..times {
        let mut kept = kept(topology, 3);
        assert_eq!(kernel_connections(80), "");
        let begun = kept.iter_mut().map(|client| {
            client
                .send(b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n")
                .unwrap();
            let (_, len) = client.head().unwrap();
            (len, client.content(100_000).unwrap())
        });
        let begun: Vec<(usize, Vec<u8>)> = begun.collect();
        nginx.signal(Signal::Hangup);
        let new = workers(topology, 3, &known);
        known.extend(new);
        for (client, (len, start)) in kept.iter_mut().zip(begun) {
            let rest = client.content(len - start.len()).unwrap();
            assert!(large == [start, rest].concat(), "an old worker's answer");
        }
    }
}

#[test]
fn each_worker_of_nginx_has_connections_and_reloads_lose_none() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    for servers in [SERVERS, WITH_REUSEPORT] {
        between_queues([3, 3], |topology| {
            let site = Site::new();
            let (nginx, first) = workers_of_nginx(topology, &site, (3, servers));
            drop(first);
            reload_with_answers_under_way(topology, (&nginx, &site), 4);
            assert_eq!(kernel_connections(80), "");
            nginx.end(Signal::Quit);
        });
    }
}

/// Most of what a process has for queues of others is for frames that are received later.
#[test]
fn a_process_takes_little_memory_for_queues_that_others_have() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between_queues([4, 4], |topology| {
        let site = Site::new();
        let (nginx, first) = workers_of_nginx(topology, &site, (2, SERVERS));
        for worker in nginx.children() {
            let status = format!("/proc/{}/status", worker.number());
            let status = fs::read_to_string(status).unwrap();
            let peak = status.lines().find(|line| line.starts_with("VmHWM"));
            let peak = peak.and_then(|line| line.split_whitespace().nth(1));
            let peak_kib: u64 = peak.unwrap().parse().unwrap();
            assert!(peak_kib < 80 << 10, "{peak_kib} KiB");
        }
        drop(first);
        nginx.end(Signal::Quit);
    });
}

/// 5, or as many as `MILLSTREAM_RELOADS` says.
fn reloads() -> usize {
    let chosen = std::env::var("MILLSTREAM_RELOADS").unwrap_or_default();
    chosen.parse().unwrap_or(5)
}

#[test]
fn reloads_under_load_lose_no_request() {
    if !has("nginx") || !has("wrk") {
        println!("not tested: there is no nginx or no wrk");
        return;
    }
    for (queues, workers) in [(1, 1), (2, 2), (1, 2)] {
        between_queues([queues, queues], |topology| {
            let site = Site::new();
            let (nginx, first) = workers_of_nginx(topology, &site, (workers, SERVERS));
            drop(first);
            let load = topology.at_client(|| Load::with_header("Connection: close", 600));
            reload_under_load(&nginx, reloads());
            let report = load.interrupt();
            assert_eq!(kernel_connections(80), "");
            nginx.end(Signal::Quit);
            println!("{report}");
            assert!(report.contains("Requests/sec"), "{report}");
            let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
            assert!(!has_errors, "{report}");
        });
    }
}

#[test]
fn queues_of_a_worker_that_is_killed_are_the_others_and_then_its_successors() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    for queues in [2, 1] {
        between_queues([queues, queues], check_killed_workers);
    }
}

fn check_killed_workers(topology: &Topology) {
    let site = Site::new();
    let (nginx, first) = workers_of_nginx(topology, &site, (2, SERVERS));
    drop(first);
    let mut living = workers(topology, 2, &BTreeSet::new());
    for _ in 0..3 {
        let killed = living.pop_first().unwrap();
        let pid = pid(&killed);
        let idle = kept(topology, 2);
        descriptor::wait_readable(&[], Some(NOTED)).unwrap();
        pid.kill(Signal::Kill.number()).unwrap();
        // Its own connection is reset, the other one goes on.
        let heard = idle
            .into_iter()
            .map(|mut client| client.get("/worker").is_err());
        assert_eq!(heard.filter(|is_reset| *is_reset).count(), 1);
        // nginx starts another one; requests that the killed one had are lost, as on the kernel.
        wait_for(|| {
            let answered = worker(topology);
            answered.is_some_and(|it| it != killed && !living.contains(&it))
        });
        let former = BTreeSet::from([killed]);
        living = workers(topology, 2, &former);
    }
    assert_eq!(kernel_connections(80), "");
    nginx.end(Signal::Terminate);
}

/// The one that has the only queue is killed, while the other one can't look for another way.
#[test]
fn connections_of_a_stopped_worker_outlive_the_one_that_has_the_queue() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between_queues([1, 1], |topology| {
        let site = Site::new();
        let (nginx, first) = workers_of_nginx(topology, &site, (2, SERVERS));
        drop(first);
        workers(topology, 2, &BTreeSet::new());
        let mut clients = BTreeMap::new();
        for mut client in kept(topology, 2) {
            let answered = client.get("/worker").unwrap().content;
            clients.insert(String::from_utf8(answered).unwrap(), client);
        }
        let of_queue = owners(pid(clients.keys().next().unwrap()))[0];
        let is_other = |name: &&String| pid(name) != of_queue;
        let other = clients.keys().find(is_other).unwrap().clone();
        let stopped = pid(&other);
        stopped.kill(SIGSTOP).unwrap();
        wait_for(|| is_stopped(stopped));
        of_queue.kill(Signal::Kill.number()).unwrap();
        wait_for(|| worker(topology).is_some_and(|name| !clients.contains_key(&name)));
        descriptor::wait_readable(&[], Some(SETTLED)).unwrap();
        let client = clients.get_mut(&other).unwrap();
        client
            .send(b"GET /worker HTTP/1.1\r\nHost: test\r\n\r\n")
            .unwrap();
        let hears = descriptor::wait_readable(&[client.as_fd()], Some(UNANSWERED)).unwrap();
        assert!(!hears[0], "the peer hears nothing as long as it is stopped");
        stopped.kill(SIGCONT).unwrap();
        assert_eq!(client.answer().unwrap().content, other.as_bytes());
        assert_eq!(kernel_connections(80), "");
        nginx.end(Signal::Quit);
    });
}

/// The library has not noted what was said last, so the keeper's probe has to be answered. Another worker has the interface, and knows that
/// the answer is of no process any more.
#[test]
fn a_peer_of_a_killed_worker_that_has_just_said_something_hears_of_it() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    alone(|| {
        between_queues([2, 2], |topology| {
            let site = Site::new();
            let (nginx, first) = workers_of_nginx(topology, &site, (2, SERVERS));
            drop(first);
            workers(topology, 2, &BTreeSet::new());
            let mut clients = kept(topology, 2);
            descriptor::wait_readable(&[], Some(NOTED)).unwrap();
            let mut said = |place: usize| clients[place].get("/worker").unwrap().content;
            said(1);
            let killed = String::from_utf8(said(0)).unwrap();
            let since = clock::monotonic();
            pid(&killed).kill(Signal::Kill.number()).unwrap();
            let heard = clients[0].content(1).unwrap_err();
            let took = clock::monotonic() - since;
            assert_eq!(heard.kind(), ErrorKind::ConnectionReset);
            println!("heard after {took:?}");
            assert!(took < Duration::from_secs(1), "{took:?}");
            assert_eq!(clients[1].get("/worker").unwrap().status, 200);
            nginx.end(Signal::Terminate);
        });
    });
}

/// A master of nginx that is no child of this process, ended whatever happens.
struct Daemon(Option<Pid>);

impl Daemon {
    fn signal(&self, signal: Signal) {
        self.0.unwrap().kill(signal.number()).unwrap();
    }

    /// Ends it, and waits for that.
    fn quit(mut self) {
        self.signal(Signal::Quit);
        let pid = self.0.take().unwrap();
        wait_for(|| !is_running(pid));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = pid.kill(Signal::Terminate.number());
        }
    }
}

/// nginx as it is started on servers: in the background, with a new binary (`USR2`) and the way back.
#[test]
fn nginx_changes_its_binary_and_goes_back_and_no_request_is_lost() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between_queues([2, 2], |topology| {
        let site = Site::new();
        let conf = site.configure("worker_processes 2;", SERVERS);
        let text = fs::read_to_string(&conf).unwrap();
        fs::write(&conf, text.replace("daemon off;", "daemon on;")).unwrap();
        // It starts its new binary by the name that it was started with.
        let program = text_of("sh", &["-c", "command -v nginx"]);
        let log = site.path("error.log");
        let words = [
            "run",
            "--stack",
            STACK,
            "--",
            program.trim_end(),
            "-c",
            &conf,
        ];
        // Not text_of: what it says would end with the last process that has its output.
        let started = std::process::Command::new(BINARY)
            .args([&words[..], &["-e", log.to_str().unwrap()]].concat())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(started.unwrap().success());
        let master = || {
            let pid = fs::read_to_string(site.path("pid")).unwrap_or_default();
            pid.trim_end().parse().ok().and_then(Pid::new)
        };
        wait_for(|| master().is_some() && worker(topology).is_some());
        let old = Daemon(master());
        let first = workers(topology, 2, &BTreeSet::new());
        let mut held = kept(topology, 2);

        old.signal(Signal::User2);
        wait_for(|| master().is_some_and(|now| Some(now) != old.0));
        let new = Daemon(master());
        let second = workers(topology, 2, &first);
        for client in &mut held {
            let answer = client.get("/worker").unwrap().content;
            assert!(
                first.contains(&String::from_utf8(answer).unwrap()),
                "an old worker's"
            );
        }
        // The old master ends its workers, and starts others when the new one is not wanted.
        old.signal(Signal::WindowChange);
        wait_for(|| !first.iter().any(|worker| is_running(pid(worker))));
        assert!(second.contains(&worker(topology).unwrap()));
        old.signal(Signal::Hangup);
        let former: BTreeSet<String> = first.union(&second).cloned().collect();
        workers(topology, 2, &former);
        new.quit();
        assert!(!former.contains(&worker(topology).unwrap()));
        assert_eq!(kernel_connections(80), "");
        old.quit();
        wait_for(|| !is_steered());
    });
}

/// Processes that open connections at the same time over all queues: each hears what was said to it.
const OPENERS: &str = "
import os, socket, sys
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        for turn in range(20):
            own = []
            for place in range(10):
                s = socket.create_connection((sys.argv[1], 7000))
                said = b'%d %d %d;' % (number, turn, place) * (1 + 400 * (turn % 3))
                s.sendall(said)
                own.append((s, said))
            for s, said in own:
                heard = b''
                while len(heard) < len(said): 
                    part = s.recv(99999)
                    assert part, 'closed'
                    heard += part
                assert heard == said, (heard[:40], said[:40])
                s.close()
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
";

const ECHO: &str = "
import asyncio
async def talk(r, w):
    while d := await r.read(9999): w.write(d); await w.drain()
    w.close()
async def main():
    await (await asyncio.start_server(talk, '0.0.0.0', 7000, backlog=500)).serve_forever()
asyncio.run(main())
";

#[test]
fn connections_that_several_processes_open_never_mix() {
    if !Path::new(PYTHON).exists() {
        println!("not tested: there is no python3");
        return;
    }
    for queues in [1, 3] {
        between_queues([queues, queues], |topology| {
            let echo = topology.at_client(|| {
                let echo = std::process::Command::new(PYTHON)
                    .args(["-c", ECHO])
                    .spawn();
                Ended(echo.unwrap())
            });
            let port = format!("{FAR_ADDRESS}:7000").parse().unwrap();
            wait_for(|| Client::connect(port).is_ok());
            let words = [
                "run",
                "--stack",
                STACK,
                "--",
                PYTHON,
                "-c",
                OPENERS,
                FAR_ADDRESS,
            ];
            assert_eq!(
                text_of(BINARY, &words).trim_end(),
                "[0, 0, 0, 0]",
                "{queues} queues"
            );
            // Answers come to the queues of all processes, from the first one on.
            assert_eq!(resets_of_kernel(), 0, "{queues} queues");
            drop(echo);
            wait_for(|| !is_steered());
        });
    }
}

/// A process that is ended whatever happens.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// New connections are the workers' by a hash; a reload of them loses none.
#[test]
fn with_fewer_queues_than_workers_each_worker_has_connections() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    for (queues, servers) in [(1, SERVERS), (2, SERVERS), (1, WITH_REUSEPORT)] {
        between_queues([queues, queues], |topology| {
            let site = Site::new();
            let (nginx, first) = workers_of_nginx(topology, &site, (3, servers));
            drop(first);
            reload_with_answers_under_way(topology, (&nginx, &site), 3);
            assert_eq!(kernel_connections(80), "");
            nginx.end(Signal::Quit);
        });
    }
}
