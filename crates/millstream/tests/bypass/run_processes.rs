//! How processes of a program begin and end.

use crate::client::Client;
use crate::namespace::{alone, has, output_of, text_of};
use crate::run::{Accelerated, BINARY, address};
use crate::run_calls::{FAR, PYTHON, started};
use crate::run_programs::wait_until_served;
use crate::server::wait_for;
use crate::topology::{STACK, between, is_steered, kernel_connections};
use mill_sys::clock;
use std::io::ErrorKind;
use std::time::Duration;

/// Ways in which a child of vfork(2) goes on, a line for each.
const VFORKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bypass/calls/vforks.py");

#[test]
fn a_parent_of_vfork_waits_until_its_child_runs_a_program_or_has_ended() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let words = ["run", "--stack", STACK, "--", PYTHON, VFORKS];
        let output = output_of(BINARY, &words);
        let [said, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        // What the child has said, its status, whether the parent's descriptors are as before, and its connection.
        let ways = [
            "runs a program, run, 768",
            "ends, end, 1024",
            "runs no program, run, 1024",
            "is killed, kill, 9",
            "closes all, closed, 1024",
            "has a child, left, 1024",
        ];
        let lines = ["by name", "by number"]
            .into_iter()
            .flat_map(|name| ways.map(|way| format!("{name}, {way}, True, 3, 3b294\n")));
        // Each time a signal has come meanwhile, whose handler ran after that.
        let expected: String = lines.chain([String::from("12\n")]).collect();
        assert_eq!(said, expected, "{errors}");
    });
}

/// Of a descriptor below zero.
const EBADF: u32 = 9;

/// Starts a program that connects, each time with other actions for what it does not need.
const CLOSING: &str = "
import ctypes, os, sys
c = ctypes.CDLL(None)
say = b'import socket; s = socket.create_connection((\"10.50.0.2\", 5001)); s.sendall(bytes([111, 10])); s.sendall(b\"abc\"); print(s.recv(9))'
def strings(*them):
    return (ctypes.c_char_p * (len(them) + 1))(*them, None)
def spawned(add):
    pid, actions = ctypes.c_int(), ctypes.create_string_buffer(512)
    c.posix_spawn_file_actions_init(actions)
    add(actions)
    words = strings(os.fsencode(sys.executable), b'-c', say)
    environment = strings(*[name + b'=' + value for name, value in os.environb.items()])
    failed = c.posix_spawn(ctypes.byref(pid), words[0], actions, None, words, environment)
    c.posix_spawn_file_actions_destroy(actions)
    print(failed, os.waitpid(pid.value, 0)[1], flush=True)
def each(actions):
    for fd in range(3, 700):
        assert c.posix_spawn_file_actions_addclose(actions, fd) == 0
spawned(each)
for first in 3, 490, 700:
    spawned(lambda actions: print(c.posix_spawn_file_actions_addclosefrom_np(actions, first), flush=True))
print(c.posix_spawn_file_actions_addclosefrom_np(ctypes.create_string_buffer(512), -1))
";

#[test]
fn a_program_that_is_started_with_all_else_closed_is_on_the_stack() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let words = ["run", "--stack", STACK, "--", PYTHON, "-c", CLOSING];
        let output = output_of(BINARY, &words);
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = format!("b'abc'\n0 0\n{}{}\n", "0\nb'abc'\n0 0\n".repeat(3), EBADF);
        assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{errors}");
        let opened = text_of("nstat", &["-asz", "TcpActiveOpens"]);
        let words = opened.split_whitespace().collect::<Vec<_>>();
        let is_none = |pair: &[&str]| pair == ["TcpActiveOpens", "0"];
        assert!(words.windows(2).any(is_none), "{opened}");
    });
}

/// Sets that watch sets, once there is no /proc: the inner one has no socket of the stack before it is watched.
const NESTING: &str = "
import os, select, socket, tempfile
def opened():
    s = socket.create_connection(('10.50.0.2', 5001))
    s.sendall(b'o\\n')
    return s
before = opened()
root = tempfile.mkdtemp()
os.chroot(root)
for s in before, opened():
    outer, inner = select.epoll(), select.epoll()
    outer.register(inner, select.EPOLLIN)
    inner.register(s, select.EPOLLIN)
    r, w = os.pipe()
    inner.register(r, select.EPOLLIN)
    s.sendall(b'abc')
    print(os.path.exists('/proc'), len(outer.poll(5)), len(inner.poll(5)), s.recv(9))
";

#[test]
fn sets_nest_in_a_program_that_has_changed_its_root() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let words = ["run", "--stack", STACK, "--", PYTHON, "-c", NESTING];
        let output = output_of(BINARY, &words);
        let errors = String::from_utf8_lossy(&output.stderr);
        let line = "False 1 1 b'abc'\n";
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            line.repeat(2),
            "{errors}"
        );
    });
}

/// Accepts once it is told to, without /proc.
const ROOTLESS: &str = "
import os, select, socket, sys, tempfile
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
sys.stdin.read(1)
os.chroot(tempfile.mkdtemp())
own = [s]
while True:
    for c in select.select(own, [], [])[0]:
        if c is s: own.append(s.accept()[0]); continue
        d = c.recv(9999)
        if d: c.sendall(d)
        else: own.remove(c); c.close()
";

/// Which connections are the kernel's may have to be read in /proc.
#[test]
fn connections_of_the_kernel_go_on_in_a_program_that_has_changed_its_root() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let mut server = Accelerated::piped(&[PYTHON, "-c", ROOTLESS]);
        let mut earlier = None;
        wait_for(|| {
            earlier = topology.at_client(|| Client::connect(address(7000)).ok());
            earlier.is_some()
        });
        server.say(b"x");
        let mut earlier = earlier.unwrap();
        let said = |client: &mut Client| {
            client.send(b"hello").unwrap();
            assert_eq!(client.content(5).unwrap(), b"hello");
        };
        said(&mut earlier);
        // From the next one on they are the stack's.
        let mut later = topology.at_client(|| Client::connect(address(7000)).unwrap());
        for _ in 0..100 {
            said(&mut later);
            said(&mut earlier);
        }
        assert_eq!(kernel_connections(7000).lines().count(), 1);
        drop(server);
        wait_for(|| !is_steered());
    });
}

/// Echoes what several clients say, until one says how the process is to end.
const ENDING: &str = "
import os, select, socket
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
own = [s]
while True:
    for c in select.select(own, [], [])[0]:
        if c is s: own.append(s.accept()[0]); continue
        d = c.recv(9999)
        if d == b'exit': raise SystemExit
        if d == b'_exit': os._exit(0)
        if d == b'exec': os.execv('/bin/sleep', ['sleep', '600'])
        if d: c.sendall(d)
        else: own.remove(c); c.close()
";

/// Peers' connections end with those of the process, whether it ends or becomes another program.
#[test]
fn peers_hear_within_a_second_that_a_program_ends_or_becomes_another_one() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let (ended, reset) = (ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset);
    for (way, kind) in [("exit", ended), ("_exit", ended), ("exec", reset)] {
        alone(|| {
            between(1500, |topology| {
                let server = Accelerated::start(&[PYTHON, "-c", ENDING]);
                drop(wait_until_served(topology, 7000));
                topology.at_client(|| {
                    let connect = || Client::connect(address(7000)).unwrap();
                    // One of them has said nothing, and all have been there for a moment only.
                    let mut clients = [connect(), connect(), connect()];
                    for client in &mut clients[1..] {
                        client.send(b"hello").unwrap();
                        assert_eq!(client.content(5).unwrap(), b"hello");
                    }
                    clients[2].send(way.as_bytes()).unwrap();
                    let since = clock::monotonic();
                    let mut ends = clients
                        .iter_mut()
                        .map(|client| client.content(1).unwrap_err());
                    assert!(ends.all(|end| end.kind() == kind), "{way}");
                    let took = clock::monotonic() - since;
                    println!("{way}: heard after {took:?}");
                    assert!(took < Duration::from_secs(1), "{way}: {took:?}");
                });
                assert_eq!(kernel_connections(7000), "");
                drop(server);
                wait_for(|| !is_steered());
            })
        });
    }
}
