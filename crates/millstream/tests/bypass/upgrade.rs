//! The binary is replaced while it serves over the stack: no connection is lost, whether the new one succeeds or not.

use crate::client::Client;
use crate::handover::upgraded;
use crate::namespace::{get, has, text_of};
use crate::server::{Server, Site, wait_for};
use crate::topology::{
    BRIDGED, HOSTS, JOIN_BRIDGE, STACK, Topology, between_queues, is_steered, kernel_connections,
};
use mill_sys::descriptor::wait_readable;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const MAIN: &str = "worker_processes 1;";
pub(crate) const LISTEN: &str =
    "server { listen 80; listen [::]:80; location = /pid { return 200 \"$pid\\n\"; } }";

/// A server and its controls.
pub(crate) struct World<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) site: Site,
    pub(crate) old: Server,
}

fn upgrading(test: impl FnOnce(World<'_>) + Send) {
    upgrading_with(LISTEN, || {}, test);
}

/// The same with these blocks, and an action on the thread that starts the server.
pub(crate) fn upgrading_with(
    http: &str,
    before: impl FnOnce() + Send,
    test: impl FnOnce(World<'_>) + Send,
) {
    upgrading_on(1, http, before, test);
}

/// The same on an interface with several queues.
fn upgrading_on(
    queues: u32,
    http: &str,
    before: impl FnOnce() + Send,
    test: impl FnOnce(World<'_>) + Send,
) {
    between_queues([queues, queues], |topology| {
        let site = Site::new();
        let conf = site.configure(MAIN, http);
        before();
        let old = Server::configured(&site, &conf, &["--stack", STACK]);
        test(World {
            topology,
            site,
            old,
        });
    });
}

impl World<'_> {
    pub(crate) fn connect(&self) -> Client {
        self.connect_to(80)
    }

    pub(crate) fn connect_to(&self, port: u16) -> Client {
        let address: SocketAddr = format!("{}:{port}", HOSTS[0]).parse().unwrap();
        self.topology
            .at_client(|| Client::connect(address).unwrap())
    }

    /// Which worker process answers a new connection over the stack.
    pub(crate) fn served_by(&self) -> Option<Pid> {
        let url = format!("http://{}/pid", HOSTS[0]);
        let text = self.topology.at_client(|| get(&url))?;
        Pid::new(text.trim().parse().unwrap())
    }

    /// The master that the pid file names.
    pub(crate) fn master(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.site.path("pid")).ok()?;
        Pid::new(text.trim().parse().ok()?)
    }

    /// Starts a new binary beside the old one, whose worker process takes over.
    pub(crate) fn upgrade(&self) -> (Pid, Pid) {
        let old = self.old.worker();
        self.old.signal(Signal::User2);
        wait_for(|| self.master().is_some_and(|pid| pid != self.old.pid()));
        let master = self.master().unwrap();
        wait_for(|| !children(master).is_empty());
        let worker = children(master)[0];
        wait_for(|| self.served_by() == Some(worker));
        assert_ne!(worker, old);
        (master, worker)
    }
}

pub(crate) fn children(process: Pid) -> Vec<Pid> {
    let command = format!("pgrep -P {} || true", process.number());
    let text = text_of("sh", &["-c", &command]);
    let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
    numbers.filter_map(Pid::new).collect()
}

pub(crate) fn is_running(process: Pid) -> bool {
    // A zombie does not count: its parent may be the test, which does not reap it.
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.number()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

pub(crate) fn send(process: Pid, signal: Signal) {
    process.kill(signal.number()).unwrap();
}

fn pause(millis: u64) {
    wait_readable(&[], Some(Duration::from_millis(millis))).unwrap();
}

/// A download in progress: its first part is read, the rest is larger than all buffers between.
pub(crate) struct Download {
    client: Client,
    left: usize,
    at: usize,
}

impl Download {
    pub(crate) fn begin(world: &World<'_>) -> Self {
        let mut client = world.connect();
        client
            .send(b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n")
            .unwrap();
        let (status, left) = client.head().unwrap();
        assert_eq!((status, left), (200, 12_000_000));
        let mut download = Self {
            client,
            left,
            at: 0,
        };
        download.read(100_000);
        download
    }

    fn read(&mut self, len: usize) {
        let len = len.min(self.left);
        let bytes = self.client.content(len).unwrap();
        for (place, byte) in bytes.iter().enumerate() {
            let at = self.at + place;
            let expected = u32::try_from(at / 4).unwrap().to_le_bytes()[at % 4];
            assert_eq!(*byte, expected, "byte {at}");
        }
        self.at += len;
        self.left -= len;
    }

    fn finish(self) {
        let mut client = self.finish_alone();
        assert_eq!(client.get("/").unwrap().status, 200);
    }

    /// For a server that closes afterwards.
    pub(crate) fn finish_alone(mut self) -> Client {
        while self.left > 0 {
            self.read(1 << 20);
        }
        self.client
    }
}

#[test]
fn old_connections_finish_in_the_old_process_and_new_ones_land_in_the_new() {
    for queues in [1, 3] {
        upgrading_on(queues, LISTEN, || {}, check_upgrade);
    }
}

#[test]
fn over_a_tap_device_the_binary_is_changed_without_loss_too() {
    between_queues([1, 1], |topology| {
        topology.bridge();
        let site = Site::new();
        let conf = site.configure(MAIN, LISTEN);
        let old = Server::configured(&site, &conf, &["--stack", BRIDGED]);
        text_of("sh", &["-c", JOIN_BRIDGE]);
        check_upgrade(World {
            topology,
            site,
            old,
        });
    });
}

fn check_upgrade(world: World<'_>) {
    let was_steered = is_steered();
    let old_worker = world.old.worker();
    let mut kept: Vec<Client> = (0..20).map(|_| world.connect()).collect();
    for client in &mut kept {
        assert_eq!(client.get("/pid").unwrap().content, pid_line(old_worker));
    }
    let download = Download::begin(&world);
    let (master, worker) = world.upgrade();
    for client in &mut kept {
        assert_eq!(client.get("/pid").unwrap().content, pid_line(old_worker));
    }
    let mut new = world.connect();
    assert_eq!(new.get("/pid").unwrap().content, pid_line(worker));
    world.old.signal(Signal::Quit);
    download.finish_alone();
    assert_eq!(new.get("/pid").unwrap().content, pid_line(worker));
    drop(kept);
    wait_for(|| !is_running(world.old.pid()));
    assert_eq!(new.get("/pid").unwrap().content, pid_line(worker));
    assert_eq!(world.served_by(), Some(worker));
    assert_eq!(kernel_connections(80), "");
    assert_eq!(is_steered(), was_steered);
    send(master, Signal::Quit);
    drop(new);
    wait_for(|| !is_running(master));
    assert!(!is_steered());
}

pub(crate) fn pid_line(process: Pid) -> Vec<u8> {
    format!("{}\n", process.number()).into_bytes()
}

#[test]
fn an_upgrade_can_be_taken_back() {
    upgrading(|world| {
        let old_worker = world.old.worker();
        let mut of_old = Download::begin(&world);
        let (master, worker) = world.upgrade();
        let mut of_new = Download::begin(&world);
        send(master, Signal::Quit);
        wait_for(|| world.served_by() == Some(old_worker));
        of_old.read(1 << 20);
        of_new.read(1 << 20);
        assert!(is_running(worker));
        of_old.finish();
        of_new.finish_alone();
        wait_for(|| !is_running(master));
        wait_for(|| world.master() == Some(world.old.pid()));
        assert_eq!(world.served_by(), Some(old_worker));
        assert!(world.old.end(Signal::Quit).success());
        assert!(!is_steered());
    });
}

/// Kills one of the processes of an upgrade (master or worker, old or new), and checks whose connections go on.
fn check_killed(victim: fn([Pid; 2], [Pid; 2]) -> Pid, old_goes_on: bool, new_goes_on: bool) {
    upgrading(|world| {
        let old_worker = world.old.worker();
        let mut of_old = world.connect();
        assert_eq!(of_old.get("/").unwrap().status, 200);
        let (master, worker) = world.upgrade();
        let mut of_new = world.connect();
        assert_eq!(of_new.get("/pid").unwrap().content, pid_line(worker));
        let (old, new) = ([world.old.pid(), old_worker], [master, worker]);
        send(victim(old, new), Signal::Kill);
        wait_for(|| world.served_by().is_some());
        pause(300);
        wait_for(|| world.served_by().is_some());
        assert_eq!(of_old.get("/").is_ok(), old_goes_on);
        assert_eq!(of_new.get("/").is_ok(), new_goes_on);
        let master_is_there = is_running(master);
        if master_is_there {
            wait_for(|| world.served_by().is_some_and(|by| by != old_worker));
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
        }
    });
}

#[test]
fn a_new_worker_that_is_killed_leaves_the_old_ones_connections() {
    check_killed(|_, [_, worker]| worker, true, false);
}

#[test]
fn a_new_master_that_is_killed_lets_its_worker_finish_and_the_old_one_serve() {
    check_killed(|_, [master, _]| master, true, false);
}

#[test]
fn an_old_worker_that_is_killed_leaves_the_new_ones_connections() {
    check_killed(|[_, worker], _| worker, false, true);
}

#[test]
fn an_old_master_that_is_killed_leaves_all_new_connections() {
    check_killed(|[master, _], _| master, false, true);
}

#[test]
fn a_new_binary_that_fails_changes_nothing() {
    upgrading(|world| {
        let old_worker = world.old.worker();
        let mut kept = world.connect();
        assert_eq!(kept.get("/").unwrap().status, 200);
        fs::write(world.site.path("nginx.conf"), "bogus;").unwrap();
        world.old.signal(Signal::User2);
        wait_for(|| world.site.error_log().contains("exited with code 1"));
        assert_eq!(kept.get("/").unwrap().status, 200);
        assert_eq!(world.served_by(), Some(old_worker));
        wait_for(|| world.master() == Some(world.old.pid()));
        world.site.configure(MAIN, LISTEN);
        world.upgrade();
        assert_eq!(kept.get("/").unwrap().status, 200);
    });
}

/// A connection for each request, as fast as one client can.
pub(crate) struct Load(Child);

impl Load {
    pub(crate) fn begin(world: &World<'_>) -> Self {
        let script = "
import socket, sys, threading
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
count = 0
while not stop.is_set():
    s = socket.create_connection(('10.50.0.1', 80), timeout=10)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: t\\r\\nConnection: close\\r\\n\\r\\n')
    answer = b''
    while part := s.recv(4096):
        answer += part
    assert answer.startswith(b'HTTP/1.1 200') and answer.endswith(b'hello\\n'), answer
    count += 1
    if count == 1: print('begun', flush=True)
print(count)
";
        let mut child = world.topology.at_client(|| {
            let mut command = Command::new("python3");
            command.args(["-c", script]).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).spawn().unwrap()
        });
        // It has begun: on a busy machine the program takes its time to start.
        let mut line = [0; "begun\n".len()];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut line)
            .unwrap();
        Self(child)
    }

    /// The number of answered requests: all.
    pub(crate) fn end(mut self) -> u32 {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse().unwrap()
    }
}

#[test]
fn ten_upgrades_in_a_row_fail_no_request() {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    upgrading(|world| {
        let load = Load::begin(&world);
        let mut master = world.old.pid();
        for _ in 0..10 {
            let (next, _) = upgraded(&world, master);
            send(master, Signal::Quit);
            wait_for(|| !is_running(master));
            master = next;
        }
        let count = load.end();
        assert!(count > 100, "{count}");
        send(master, Signal::Terminate);
        wait_for(|| !is_running(master));
    });
}

#[test]
fn an_old_binary_that_is_told_to_quit_at_once_fails_no_request() {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    upgrading(|world| {
        let load = Load::begin(&world);
        let mut master = world.old.pid();
        for _ in 0..5 {
            wait_for(|| !world.site.path("pid.oldbin").exists() && world.served_by().is_some());
            send(master, Signal::User2);
            wait_for(|| world.site.path("pid.oldbin").exists());
            send(master, Signal::Quit);
            wait_for(|| !is_running(master));
            master = world.master().unwrap();
        }
        let count = load.end();
        assert!(count > 20, "{count}");
        send(master, Signal::Terminate);
        wait_for(|| !is_running(master));
    });
}
