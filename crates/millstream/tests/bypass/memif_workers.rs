//! Several workers over one memif, each with rings of its own: with our load at the other end, with DPDK between the two, and while
//! the server is reloaded, replaced or killed.

use crate::ask;
use crate::namespace::{has, in_namespace, output_of, text_of};
use crate::server::{Server, Site, wait_for};
use crate::upgrade::is_running;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

const TARGET: &str = "http://10.62.0.1/";

/// An end of the memif in the test's network namespace, with so many rings. Abstract names are a namespace's own.
fn end_of(role: &str, host: u8, rings: u32) -> String {
    format!("memif:@mill-workers,role={role},address=10.62.0.{host}/24,rings={rings}")
}

/// A server and the other end's stack.
struct World {
    site: Site,
    server: Server,
    far: String,
}

/// A server with two workers and as many rings, in either role.
fn with_server(test: impl Fn(World) + Sync) {
    for (role, other) in [("master", "slave"), ("slave", "master")] {
        in_namespace(|| {
            let site = Site::new();
            let server = two_workers(&site, &end_of(role, 1, 2));
            let far = end_of(other, 2, 2);
            test(World { site, server, far });
        });
    }
}

fn two_workers(site: &Site, stack: &str) -> Server {
    let servers = "server { listen 80; keepalive_requests 1000000; }";
    let conf = site.configure("worker_processes 2;", servers);
    Server::configured(site, &conf, &["--stack", stack])
}

impl World {
    /// Requests on connections of so many threads; all of them are answered.
    fn load(&self, threads: u32, path: &str) {
        let (stack, threads) = (&self.far, format!("-t{threads}"));
        let target = format!("{TARGET}{path}");
        let words = ["wrk", "--stack", stack, &threads, "-c20", "-d1s", &target];
        let Output { status, text } = said(&words);
        assert!(status, "{text}");
        has_no_errors(&text);
    }

    fn figures(&self, name: &str) -> Vec<u64> {
        figures(&self.master().number().to_string(), name)
    }

    /// The master that the pid file names. The file is not there between a new master's end and the old one taking the name back.
    fn served_by(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.site.path("pid")).ok()?;
        Pid::new(text.trim().parse().ok()?)
    }

    fn master(&self) -> Pid {
        self.served_by().unwrap()
    }

    fn in_force(&self) -> usize {
        self.site.error_log().matches("is in force").count()
    }

    /// Replaces the binary under load, and waits until both workers of the new one have their rings.
    fn upgrade(&self) -> Pid {
        let (old, before) = (self.master(), self.in_force());
        old.kill(Signal::User2.number()).unwrap();
        let pid = || fs::read_to_string(self.site.path("pid")).unwrap_or_default();
        let is_new = |text: &str| {
            text.trim()
                .parse()
                .is_ok_and(|number: i32| number != old.number())
        };
        wait_for(|| is_new(&pid()) && self.in_force() > before);
        wait_for(|| self.are_above("stack.frames_received", 0));
        self.master()
    }

    fn are_above(&self, name: &str, least: u64) -> bool {
        self.figures(name).iter().all(|figure| *figure > least)
    }

    fn end(self) {
        // The server would wait for clients that have disappeared.
        let master = self.master();
        master.kill(Signal::Terminate.number()).unwrap();
        wait_for(|| !is_running(master));
    }
}

fn has_no_errors(report: &str) {
    assert!(report.contains("Requests/sec:"), "{report}");
    let is_bad = report.contains("Socket errors") || report.contains("Non-2xx");
    assert!(!is_bad, "{report}");
}

struct Output {
    status: bool,
    text: String,
}

fn said(words: &[&str]) -> Output {
    let output = output_of(BINARY, words);
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    Output {
        status: output.status.success(),
        text: format!("{out}{err}"),
    }
}

/// A figure of each worker.
fn figures(process: &str, name: &str) -> Vec<u64> {
    let status = ask::json(&[process]);
    let workers = status["workers"].as_array().unwrap().iter();
    workers
        .map(|worker: &Value| ask::figure(worker, name))
        .collect()
}

/// wrk with connections that are kept, until it is told to end.
struct Load(Child);

impl Load {
    fn begin(world: &World) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["wrk", "--stack", &world.far, "-t2", "-c16", "-d60s", TARGET]);
        let load = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let load = Self(load.unwrap());
        wait_for(|| world.are_above("stack.frames_received", 100));
        load
    }

    /// No request has failed, and the other end has noticed nothing.
    fn end(self) {
        let pid = Pid::new(i32::try_from(self.0.id()).unwrap()).unwrap();
        pid.kill(Signal::Interrupt.number()).unwrap();
        let output = self.0.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("the peer is gone"), "{said}");
        has_no_errors(&String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn each_worker_serves_connections_of_its_own_thread_of_the_load() {
    with_server(|world| {
        world.load(2, "");
        world.load(2, "large.bin");
        let received = world.figures("stack.frames_received");
        assert!(received.iter().all(|frames| *frames > 1000), "{received:?}");
        // Both directions of a flow are one worker's: what is handed on are answers of neighbours, and last segments.
        let handed = world.figures("stack.link_handed_on");
        let mut pairs = handed.iter().zip(&received);
        assert!(
            pairs.all(|(handed, received)| handed * 20 < *received),
            "{handed:?}"
        );
        assert!(!world.site.error_log().contains("rings in each direction"));
        world.end();
    });
}

#[test]
fn one_thread_of_load_reaches_both_workers() {
    with_server(|world| {
        world.load(1, "");
        let received = world.figures("stack.frames_received");
        assert!(received.iter().all(|frames| *frames > 500), "{received:?}");
        world.end();
    });
}

#[test]
fn a_peer_with_one_ring_is_served_by_one_worker_and_the_log_says_so() {
    with_server(|world| {
        let far = world.far.replace("rings=2", "rings=1");
        let few = World { far, ..world };
        few.load(1, "");
        let log = few.site.error_log();
        assert!(log.contains("the peer agrees to 1 of the 2 rings"), "{log}");
        let far = few.far.replace("rings=1", "rings=2");
        let enough = World { far, ..few };
        enough.load(2, "");
        enough.end();
    });
}

#[test]
fn load_with_more_threads_than_rings_is_refused() {
    in_namespace(|| {
        let stack = end_of("slave", 2, 2);
        let Output { status, text } = said(&["wrk", "--stack", &stack, "-t3", "-c3", TARGET]);
        let expected = "a memif carries 2 threads, and 3 were asked for or are the default: give \"-t2\" with \
                        \"--stack\", or the stack \"rings=3\"";
        assert!(!status && text.contains(expected), "{text}");
    });
}

#[test]
fn five_changes_of_the_binary_fail_no_request_and_the_peer_notices_none() {
    with_server(|world| {
        let load = Load::begin(&world);
        for _ in 0..5 {
            let old = world.master();
            world.upgrade();
            old.kill(Signal::Quit.number()).unwrap();
            // Its connections go on until it closes them, between two requests.
            wait_for(|| !is_running(old));
        }
        load.end();
        let is_gone = || world.site.error_log().matches("the peer is gone").count();
        wait_for(|| is_gone() > 0);
        assert_eq!(is_gone(), 1);
        world.end();
    });
}

#[test]
fn an_old_master_that_is_told_to_quit_at_once_waits_until_the_new_one_serves() {
    with_server(|world| {
        let load = Load::begin(&world);
        let old = world.master();
        old.kill(Signal::User2.number()).unwrap();
        wait_for(|| world.site.path("pid.oldbin").exists());
        old.kill(Signal::Quit.number()).unwrap();
        wait_for(|| !is_running(old));
        wait_for(|| world.are_above("stack.frames_received", 500));
        load.end();
        world.end();
    });
}

#[test]
fn changes_of_the_binary_fail_no_connection_that_is_opened_meanwhile() {
    with_server(|world| {
        let old = world.master();
        let words = [
            "ab", "--stack", &world.far, "-n", "20000", "-c", "20", TARGET,
        ];
        let load = thread::scope(|scope| {
            let load = scope.spawn(|| said(&words));
            // One that ends as soon as it serves, and one whose predecessor is told to end before it has begun.
            let new = world.upgrade();
            new.kill(Signal::Quit.number()).unwrap();
            wait_for(|| !is_running(new) && !world.site.path("pid.oldbin").exists());
            old.kill(Signal::User2.number()).unwrap();
            wait_for(|| world.site.path("pid.oldbin").exists());
            old.kill(Signal::Quit.number()).unwrap();
            wait_for(|| !is_running(old));
            load.join().unwrap()
        });
        let Output { status, text } = load;
        assert!(
            status && text.contains("Complete requests:      20000"),
            "{text}"
        );
        assert!(text.contains("Failed requests:        0"), "{text}");
        world.end();
    });
}

#[test]
fn a_change_of_the_binary_that_is_taken_back_fails_no_request() {
    with_server(|world| {
        let load = Load::begin(&world);
        let old = world.master();
        let new = world.upgrade();
        new.kill(Signal::Quit.number()).unwrap();
        wait_for(|| !is_running(new) && world.served_by() == Some(old));
        let before = world.figures("stack.frames_received");
        wait_for(|| {
            let mut pairs = before.iter().zip(world.figures("stack.frames_received"));
            pairs.all(|(before, now)| now > before + 100)
        });
        load.end();
        world.end();
    });
}

#[test]
fn reloads_under_load_fail_no_request() {
    with_server(|world| {
        let load = Load::begin(&world);
        for _ in 0..5 {
            let before = world.in_force();
            world.server.signal(Signal::Hangup);
            wait_for(|| world.in_force() > before);
        }
        load.end();
        world.end();
    });
}

#[test]
fn all_workers_serve_again_after_their_process_was_killed() {
    with_server(|world| {
        world.load(2, "");
        world.server.worker().kill(Signal::Kill.number()).unwrap();
        wait_for(|| world.in_force() == 2);
        world.load(2, "");
        let received = world.figures("stack.frames_received");
        assert!(received.iter().all(|frames| *frames > 500), "{received:?}");
        world.end();
    });
}

/// testpmd, which passes frames on between two memifs, each queue by itself.
struct Switch {
    child: Child,
    sockets: [PathBuf; 2],
}

impl Switch {
    fn start(site: &Site) -> Self {
        let sockets = ["near.sock", "far.sock"].map(|name| site.path(name));
        let log = fs::File::create(site.path("testpmd.log")).unwrap();
        let mut command = Command::new("dpdk-testpmd");
        let prefix = format!("mill{}", std::process::id());
        command
            .args(["--lcores", "0@0,1@0", "--no-pci", "--no-huge", "-m", "256"])
            .args(["--no-shconf", "--no-telemetry", "--file-prefix", &prefix]);
        for (number, socket) in sockets.iter().enumerate() {
            let socket = socket.display();
            command.arg(format!(
                "--vdev=net_memif{number},role=server,id=0,socket={socket},socket-abstract=no,zero-copy=no"
            ));
        }
        command
            .args([
                "--",
                "--rxq=2",
                "--txq=2",
                "--forward-mode=io",
                "--auto-start",
            ])
            .args(["--total-num-mbufs=16384"])
            .stdin(Stdio::piped())
            .stderr(log.try_clone().unwrap())
            .stdout(log);
        let child = command.spawn().unwrap();
        let said = || fs::read_to_string(site.path("testpmd.log")).unwrap_or_default();
        wait_for(|| said().contains("Checking link statuses"));
        Self { child, sockets }
    }

    fn end_of(&self, side: usize, host: u8) -> String {
        let socket = self.sockets[side].display();
        format!("memif:{socket},role=slave,address=10.62.0.{host}/24,rings=2")
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn dpdk_with_two_queues_lies_between_two_workers_and_two_threads_of_load() {
    if !has("dpdk-testpmd") {
        println!("not tested: there is no dpdk-testpmd");
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let switch = Switch::start(&site);
        text_of("chmod", &["666", switch.sockets[0].to_str().unwrap()]);
        let server = two_workers(&site, &switch.end_of(0, 1));
        let far = switch.end_of(1, 2);
        let world = World { site, server, far };
        // What leaves before DPDK has both connections is lost, and sent again after a second.
        let load = Load::begin(&world);
        // DPDK keeps the connection: its 22.11 might end if the server left it.
        for _ in 0..3 {
            let old = world.master();
            world.upgrade();
            old.kill(Signal::Quit.number()).unwrap();
            wait_for(|| !is_running(old));
        }
        load.end();
        assert!(!world.site.error_log().contains("the peer is gone"));
        world.end();
    });
}
