//! Several worker threads, on as many queues, on fewer and on more.

use crate::ask;
use crate::client::Client;
use crate::namespace::{has, in_namespace, output_of, text_of};
use crate::nginx::Nginx;
use crate::others::Load;
use crate::server::{Server, Site, wait_for};
use crate::topology::{
    FAR, HOSTS, STACK, Topology, between_queues, is_steered, kernel_connections,
};
use mill_sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

const SERVERS: &str = "server { listen 80; listen [::]:80; keepalive_requests 1000000; }";

/// Receive and transmit queues, and workers.
const CASES: [([u32; 2], u32); 6] = [
    ([2, 2], 2),
    ([1, 1], 2),
    ([2, 2], 1),
    ([2, 2], 3),
    ([4, 4], 2),
    // The second queue receives and can't send.
    ([2, 1], 2),
];

fn main_of(workers: u32) -> String {
    format!("worker_processes {workers};")
}

fn with_workers(
    queues: [u32; 2],
    workers: u32,
    test: impl FnOnce(&Topology, &Site, Server) + Send,
) {
    between_queues(queues, |topology| {
        let site = Site::new();
        let conf = site.configure(&main_of(workers), SERVERS);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        assert!(is_steered());
        test(topology, &site, server);
    });
}

/// The threads that answered the requests of one [`ask`], which the error log names after the process. The log is
/// written after the answers.
fn threads_that_served(site: &Site, asked: &Asked) -> BTreeSet<String> {
    let is_its = |line: &&str| line.contains("open() ") && line.contains(&asked.target);
    wait_for(|| site.error_log().lines().filter(is_its).count() >= asked.count);
    let log = site.error_log();
    let lines = log.lines().filter(is_its);
    let thread = |line: &str| {
        let (_, rest) = line.split_once('#').unwrap();
        rest.split(':').next().unwrap().to_owned()
    };
    lines.map(thread).collect()
}

/// Requests for a target that is not there, and that no others have asked for.
struct Asked {
    target: String,
    count: usize,
}

/// Connections, two requests each, and none of them the kernel's.
fn ask(topology: &Topology, count: usize) -> Asked {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let target = format!("/missing-{}.", NUMBER.fetch_add(1, Ordering::Relaxed));
    topology.at_client(|| {
        for number in 0..count {
            let address = format!("{}:80", HOSTS[number % 2]).parse().unwrap();
            let mut client = Client::connect(address).unwrap();
            assert_eq!(client.get(&target).unwrap().status, 404);
            assert_eq!(client.get("/").unwrap().content, b"hello\n");
        }
    });
    assert_eq!(kernel_connections(80), "");
    Asked { target, count }
}

fn is_without_errors(report: &str) {
    assert!(report.contains("Requests/sec"), "{report}");
    let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
    assert!(!has_errors, "{report}");
}

#[test]
fn each_worker_serves_some_of_the_connections() {
    for (queues, workers) in CASES {
        with_workers(queues, workers, |topology, site, server| {
            let asked = ask(topology, 60);
            let threads = threads_that_served(site, &asked);
            assert_eq!(threads.len(), workers as usize, "{queues:?} {threads:?}");
            let log = site.error_log();
            assert!(
                !log.contains("[warn] ") || !log.contains("kernel sockets only"),
                "{log}"
            );
            assert!(server.end(Signal::Quit).success());
            assert!(!is_steered(), "nothing is left");
        });
    }
}

#[test]
fn the_steering_counters_of_all_workers_add_up() {
    for (queues, workers) in [([2, 2], 2), ([1, 1], 2)] {
        with_workers(queues, workers, |topology, _, server| {
            ask(topology, 60);
            let process = server.pid().number().to_string();
            let is_quiet = |status: &Value| {
                let total = |name| ask::figure(status, &format!("total.{name}"));
                total("server.connections_active") == 0
                    && total("stack.steering_redirected") == total("stack.frames_received")
            };
            wait_for(|| is_quiet(&ask::json(&[&process])));
            let status = ask::json(&[&process]);
            ask::assert_consistent(&status);
            let of_each = |name: &str| -> Vec<u64> {
                let each = status["workers"].as_array().unwrap().iter();
                each.map(|worker| ask::figure(worker, name)).collect()
            };
            let received = of_each("stack.frames_received");
            assert!(received.iter().all(|count| *count > 0), "{received:?}");
            let redirected = of_each("stack.steering_redirected");
            if queues[0] == workers {
                assert_eq!(redirected, received, "a worker has the count of its queue");
            } else {
                let all = [received.iter().sum(), 0];
                assert_eq!(redirected, all, "the first one has the count of all");
            }
        });
    }
}

#[test]
fn files_fetched_from_any_worker_are_whole() {
    for (queues, workers) in CASES {
        with_workers(queues, workers, |topology, site, _server| {
            let large: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
            fs::write(site.path("20m.bin"), &large).unwrap();
            let expected = text_of("sha256sum", &[site.path("20m.bin").to_str().unwrap()]);
            let expected = expected.split(' ').next().unwrap();
            topology.at_client(|| {
                for host in HOSTS {
                    let four = format!(
                        "for i in 1 2 3 4; do curl -sSf http://{host}/20m.bin | sha256sum & done 2>&1; wait"
                    );
                    let sums = text_of("sh", &["-c", &four]);
                    assert_eq!(sums.matches(expected).count(), 4, "{queues:?} {host}: {sums}");
                }
            });
            assert_eq!(kernel_connections(80), "");
        });
    }
}

#[test]
fn wrk_and_ab_find_no_errors() {
    for (queues, workers) in CASES {
        with_workers(queues, workers, |topology, _, _server| {
            topology.at_client(|| {
                for host in HOSTS {
                    let url = format!("http://{host}/");
                    if has("wrk") {
                        let report = text_of("wrk", &["-t2", "-c40", "-d1s", &url]);
                        is_without_errors(&report);
                    }
                    if has("ab") {
                        let report = text_of("ab", &["-q", "-n1000", "-c20", &url]);
                        assert!(report.contains("Failed requests:        0"), "{report}");
                    }
                }
            });
            assert_eq!(kernel_connections(80), "");
        });
    }
}

#[test]
fn a_worker_process_that_is_killed_is_replaced_on_all_queues() {
    for (queues, workers) in CASES {
        with_workers(queues, workers, |topology, site, server| {
            for count in 2..4 {
                ask(topology, 20);
                // While load is in progress.
                let load = has("wrk").then(|| topology.at_client(|| Load::start(1)));
                wait_for(|| output_of("sleep", &["0.2"]).status.success());
                server.worker().kill(Signal::Kill.number()).unwrap();
                let in_force = "configuration 1 is in force";
                wait_for(|| site.error_log().matches(in_force).count() == count);
                drop(load);
                let asked = ask(topology, 60);
                let threads = threads_that_served(site, &asked);
                assert_eq!(threads.len(), workers as usize, "{queues:?} {threads:?}");
            }
            assert!(server.end(Signal::Quit).success());
        });
    }
}

#[test]
fn another_number_of_workers_leaves_every_connection_where_it_is() {
    for (queues, workers) in [([2, 2], 1), ([2, 2], 2), ([1, 1], 2)] {
        with_workers(queues, workers, |topology, site, server| {
            let addresses: Vec<_> = (0..8)
                .map(|number| format!("{}:80", HOSTS[number % 2]).parse().unwrap())
                .collect();
            let mut kept: Vec<Client> = topology.at_client(|| {
                let clients = addresses
                    .iter()
                    .map(|address| Client::connect(*address).unwrap());
                clients.collect()
            });
            let worker = server.worker();
            for (number, wanted) in [(2, 2), (3, 1), (4, 3), (5, 2)] {
                let load = has("wrk").then(|| topology.at_client(|| Load::start(1)));
                site.configure(&main_of(wanted), SERVERS);
                server.signal(Signal::Hangup);
                let in_force = format!("configuration {number} is in force");
                wait_for(|| site.error_log().contains(&in_force));
                for client in &mut kept {
                    assert_eq!(client.get("/").unwrap().content, b"hello\n", "{wanted}");
                }
                ask(topology, 20);
                if let Some(load) = load {
                    is_without_errors(&load.report());
                }
            }
            assert_eq!(server.worker(), worker);
            let log = site.error_log();
            let expected = match workers {
                1 => {
                    "the first worker thread serves --stack, the other 2 serve kernel sockets only"
                }
                _ => "\"worker_processes 1\" is too few for --stack, which has 2 worker threads",
            };
            assert!(log.contains(expected), "{log}");
            assert!(server.end(Signal::Quit).success());
        });
    }
}

#[test]
fn ports_come_and_go_with_all_workers() {
    for (queues, workers) in [([2, 2], 2), ([1, 1], 2)] {
        with_workers(queues, workers, |topology, site, server| {
            let load = has("wrk").then(|| topology.at_client(|| Load::start(2)));
            let fetch_all = |port: u16| {
                topology.at_client(|| {
                    (0..20).all(|_| {
                        let address = format!("{}:{port}", HOSTS[0]).parse().unwrap();
                        let client = Client::connect(address);
                        client.is_ok_and(|mut client| client.get("/").is_ok())
                    })
                })
            };
            for number in 2..5 {
                let added = 80 + number;
                let more = format!("server {{ listen {added}; }}");
                site.configure(&main_of(workers), &format!("{SERVERS} {more}"));
                server.signal(Signal::Hangup);
                let in_force = format!("configuration {number} is in force");
                wait_for(|| site.error_log().contains(&in_force));
                assert!(fetch_all(added));
                assert_eq!(kernel_connections(added), "");
            }
            if let Some(load) = load {
                is_without_errors(&load.report());
            }
            assert!(server.end(Signal::Quit).success());
        });
    }
}

#[test]
fn stopped_workers_continue_with_the_waiting_frames() {
    for (queues, workers) in [([2, 2], 2), ([1, 1], 2)] {
        with_workers(queues, workers, |topology, _, server| {
            ask(topology, 10);
            let number = server.worker().number();
            let send = |signal: &str| {
                text_of("sh", &["-c", &format!("kill -{signal} {number}")]);
            };
            send("STOP");
            let waiting: Vec<_> = topology.at_client(|| {
                let ask_later = |number: usize| {
                    let address = format!("{}:80", HOSTS[number % 2]).parse().unwrap();
                    std::thread::spawn(move || Client::connect(address).unwrap().get("/").unwrap())
                };
                (0..8).map(ask_later).collect()
            });
            // Time enough for the frames to be in the queues.
            output_of("sleep", &["0.3"]);
            send("CONT");
            for thread in waiting {
                assert_eq!(thread.join().unwrap().content, b"hello\n");
            }
            ask(topology, 20);
        });
    }
}

#[test]
fn a_flow_that_changes_its_queue_goes_on() {
    for (queues, workers) in [([2, 2], 1), ([2, 2], 2), ([2, 2], 3), ([4, 4], 2)] {
        with_workers(queues, workers, |topology, site, server| {
            let large: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
            fs::write(site.path("2m.bin"), &large).unwrap();
            let addresses: Vec<_> = (0..8)
                .map(|number| format!("{}:80", HOSTS[number % 2]).parse().unwrap())
                .collect();
            let mut kept: Vec<Client> = topology.at_client(|| {
                let clients = addresses
                    .iter()
                    .map(|address| Client::connect(*address).unwrap());
                clients.collect()
            });
            for turn in 0..6 {
                // The clients' frames leave by one queue, and then by another.
                topology.at_client(|| leave_by(turn % queues[0], queues[0]));
                for client in &mut kept {
                    assert_eq!(
                        client.get("/").unwrap().content,
                        b"hello\n",
                        "{queues:?} {turn}"
                    );
                }
                assert!(kept[0].get("/2m.bin").unwrap().content == large);
                // New connections belong to the worker of their queue, if workers have queues to themselves.
                let asked = ask(topology, 8);
                let count = threads_that_served(site, &asked).len();
                assert!(count == 1 || workers > queues[0], "{queues:?} {count}");
            }
            // Frames without room were retransmitted. A worker tells of itself now and then: one that has got frames later than the other
            // one that it has given them.
            let handed = || {
                let status = ask::json(&[&server.pid().number().to_string()]);
                ["on", "here"]
                    .map(|name| ask::figure(&status, &format!("total.stack.link_handed_{name}")))
            };
            let has_colleagues = (2..=queues[0]).contains(&workers);
            wait_for(|| {
                let [on, here] = handed();
                on == here
            });
            assert_eq!(handed()[0] > 0, has_colleagues, "{queues:?} {workers}");
            assert!(server.end(Signal::Quit).success());
        });
    }
}

#[test]
fn over_a_tap_device_each_worker_has_a_queue() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure(&main_of(2), SERVERS);
        let _server = Server::configured(&site, &conf, &["--stack", TAP]);
        for number in 0..60 {
            let host = ["10.77.0.2", "[fd77::2]"][number % 2];
            let mut client = Client::connect(format!("{host}:80").parse().unwrap()).unwrap();
            assert_eq!(client.get("/missing").unwrap().status, 404);
        }
        let asked = Asked {
            target: String::from("/missing"),
            count: 60,
        };
        let threads = threads_that_served(&site, &asked);
        assert_eq!(threads.len(), 2, "{threads:?}");
        let expected = text_of("sha256sum", &[site.path("large.bin").to_str().unwrap()]);
        let expected = expected.split(' ').next().unwrap();
        for host in ["10.77.0.2", "[fd77::2]"] {
            let four = format!(
                "for i in 1 2 3 4; do curl -sSf http://{host}/large.bin | sha256sum & done; wait"
            );
            let sums = text_of("sh", &["-c", &four]);
            assert_eq!(sums.matches(expected).count(), 4, "{host}: {sums}");
            if has("wrk") {
                let url = format!("http://{host}/");
                is_without_errors(&text_of("wrk", &["-t2", "-c20", "-d1s", &url]));
            }
        }
    });
}

/// A load generator's threads, each with connections of its own.
#[test]
fn load_is_sent_by_several_threads_at_one_device() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    for queues in [[1, 1], [2, 2], [2, 1]] {
        between_queues(queues, |topology| {
            let site = Site::new();
            let servers = "server { listen 80; listen [::]:80; keepalive_requests 1000000; }";
            let _nginx = topology.at_client(|| Nginx::start(&site, servers));
            for target in ["http://10.50.0.2/", "http://[fd50::2]/"] {
                for threads in ["-t2", "-t3", "-t1"] {
                    let arguments = ["wrk", "--stack", STACK, threads, "-c12", "-d1s", target];
                    let report = text_of(env!("CARGO_BIN_EXE_millstream"), &arguments);
                    is_without_errors(&report);
                    assert!(!report.contains("Requests/sec:      0.00"), "{report}");
                }
            }
            assert_eq!(kernel_connections(80), "");
        });
    }
}

/// The device of the test over TAP.
const TAP: &str =
    "tap:mill0,address=10.77.0.2/24,host=10.77.0.1/24,address=fd77::2/64,host=fd77::1/64";

/// Makes frames leave the clients' interface by this queue of so many (the kernel's
/// Documentation/networking/scaling.rst, XPS), from any processor. A kernel connection follows once none of its frames
/// are in flight.
pub(crate) fn leave_by(queue: u32, of: u32) {
    let mut script = String::from("mount -t sysfs none /sys");
    for other in 0..of {
        let mask = if other == queue { "3" } else { "0" };
        let file = format!("/sys/class/net/{FAR}/queues/tx-{other}/xps_cpus");
        script.push_str(&format!(" && echo {mask} > {file}"));
    }
    // sysfs shows the namespace in which it is mounted.
    text_of("unshare", &["-m", "sh", "-c", &script]);
}
