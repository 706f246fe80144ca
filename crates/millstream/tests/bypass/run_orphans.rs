//! Connections that outlive their process under `millstream run`: as in the kernel, where other processes have them, or where peers have not
//! acknowledged all that was written.

use crate::client::Client;
use crate::run_joining::{Running, address, exchange, wait_until_served, without_python};
use crate::server::wait_for;
use crate::topology::{STACK, Topology, between, is_steered};
use mill_sys::clock;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;

/// A server that gives each connection to another process, in the way of its argument, which echoes. SIGTERM ends it, as a word over any connection does.
const SERVER: &str = "
import os, signal, socket, subprocess, sys, threading
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ECHO = 'import socket, sys\\nc = socket.socket(fileno=int(sys.argv[1]))\\nwhile d := c.recv(9999): c.sendall(d)'
def echo(c):
    while d := c.recv(9999): c.sendall(d)
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if sys.argv[1] == 'message' and os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    s.close(); near.close()
    while True:
        fds = socket.recv_fds(far, 1, 1)[1]
        if not fds: break
        fd = fds[0]
        threading.Thread(target=echo, args=(socket.socket(fileno=fd),)).start()
while True:
    c = s.accept()[0]
    if sys.argv[1] == 'fork':
        if os.fork() == 0:
            s.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            echo(c)
            os._exit(0)
    elif sys.argv[1] == 'spawn':
        os.set_inheritable(c.fileno(), True)
        file = [(os.POSIX_SPAWN_DUP2, c.fileno(), 9)]
        os.posix_spawn(sys.executable, [sys.executable, '-c', ECHO, '9'], os.environ, file_actions=file)
    else:
        socket.send_fds(near, [b'.'], [c.fileno()])
    c.close()
";

/// Connected once the server has answered over it.
fn talking(topology: &Topology) -> Client {
    topology.at_client(|| {
        let mut client = Client::connect(address(7000)).unwrap();
        exchange(&mut client, b"before");
        client
    })
}

/// Two connections go on when the process that has accepted them ends, beside a new one that listens, and the interface is free after them.
fn check(way: &str) {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let mut server = Running::start(SERVER, way, STACK);
        wait_until_served(topology, 7000);
        let mut clients = [talking(topology), talking(topology)];
        let asked = clock::monotonic();
        server.ask_to_end();
        server.0.wait().unwrap();
        let took = clock::monotonic() - asked;
        topology.at_client(|| exchange(&mut clients[0], b"after"));
        let next = Running::start(SERVER, way, STACK);
        wait_until_served(topology, 7000);
        let mut third = talking(topology);
        let many = [7; 300_000];
        topology.at_client(|| {
            for client in clients.iter_mut().chain([&mut third]) {
                exchange(client, b"beside another process");
                exchange(client, &many);
            }
        });
        drop(next);
        topology.at_client(|| {
            for client in &mut clients {
                exchange(client, b"alone again");
            }
        });
        drop((clients, third));
        println!("it ended within {took:?}");
        wait_for(|| !is_steered());
    });
}

#[test]
fn connections_of_forked_children_outlive_their_parent() {
    check("fork");
}

#[test]
fn connections_of_started_programs_outlive_the_process_that_started_them() {
    check("spawn");
}

#[test]
fn connections_that_went_by_a_message_outlive_their_sender() {
    check("message");
}

/// Writes two megabytes to one connection, and ends: by exit(3), or by a signal for which it has no handler.
const WRITER: &str = "
import os, signal, socket, sys
s = socket.create_server(('0.0.0.0', 7000))
while True:
    c = s.accept()[0]
    c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4000000)
    if c.recv(5) == b'write': break
c.sendall(bytes(range(251)) * 8000)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
if sys.argv[1] == 'signal': os.kill(os.getpid(), signal.SIGTERM)
";

/// Writes, and ends in this way.
fn check_writer(way: &str, ended_by: Option<Signal>) {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let mut writer = Running::start(WRITER, way, STACK);
        wait_until_served(topology, 7000);
        let mut client = topology.at_client(|| Client::connect(address(7000)).unwrap());
        client.send(b"write").unwrap();
        // It does not wait for the peer.
        let ended = writer.0.wait().unwrap();
        assert_eq!(ended.signal(), ended_by.map(Signal::number));
        assert_eq!(ended.success(), ended_by.is_none());
        let expected: Vec<u8> = (0..=250).cycle().take(251 * 8000).collect();
        let received = topology.at_client(|| client.content(expected.len()).unwrap());
        assert!(received == expected);
        drop(client);
        wait_for(|| !is_steered());
    });
}

#[test]
fn what_a_process_has_written_before_it_ended_reaches_a_peer_that_reads_late() {
    check_writer("exit", None);
}

#[test]
fn what_a_process_has_written_before_a_signal_ended_it_reaches_a_peer_that_reads_late() {
    check_writer("signal", Some(Signal::Terminate));
}

#[test]
fn peers_hear_of_the_end_of_the_process_that_goes_on_with_their_connections() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let mut server = Running::start(SERVER, "fork", STACK);
        wait_until_served(topology, 7000);
        let mut client = talking(topology);
        server.ask_to_end();
        server.0.wait().unwrap();
        topology.at_client(|| exchange(&mut client, b"after"));
        let mut orphans = None;
        wait_for(|| {
            orphans = orphans_here();
            orphans.is_some()
        });
        mill_sys::descriptor::wait_readable(&[], Some(crate::run_faults::NOTED)).unwrap();
        orphans.unwrap().kill(Signal::Kill.number()).unwrap();
        let heard = client.content(1).unwrap_err();
        assert_eq!(heard.kind(), ErrorKind::ConnectionReset);
        wait_for(|| !is_steered());
    });
}

/// The process that goes on, in this namespace.
fn orphans_here() -> Option<Pid> {
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let own = namespace("thread-self");
    let all = crate::namespace::output_of("pgrep", &["-x", "mill-orphans"]);
    let all = String::from_utf8_lossy(&all.stdout).into_owned();
    let found = all.lines().find(|number| namespace(number) == own);
    Pid::new(found?.parse().ok()?)
}
