//! Listeners that a process does not look at, under `millstream run`: what waits there is for other processes that have them, as in the kernel,
//! where all accept from one queue.

use crate::client::Client;
use crate::namespace::output_of;
use crate::run_joining::{Running, address, exchange, without_python};
use crate::server::wait_for;
use crate::topology::{STACK, Topology, between, between_queues, kernel_connections};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// Polls a listener until a connection waits, has another process accept three, in the way of its argument, and accepts once that has ended.
const STARTING: &str = "
import ctypes, os, select, socket, sys
def end_with_parent():
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
way = sys.argv[1]
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
other = socket.create_server(('0.0.0.0', 7001))
SERVE = '''
def serve(s, word, count):
    while count:
        c = s.accept()[0]
        if c.recv(99):
            c.sendall(word)
            count -= 1
        c.close()
'''
exec(SERVE)
select.select([s, other], [], [])
if way == 'becoming':
    os.set_inheritable(s.fileno(), True)
    then = 'import socket, sys' + SERVE + 's = socket.socket(fileno=int(sys.argv[1]))\\nserve(s, b\"other\", 3)\\nserve(s, b\"first\", 9)'
    # The first folder has none.
    folder, name = os.path.split(sys.executable)
    os.environ['PATH'] = '/sys:' + folder
    os.execvp(name, [name, '-c', then, str(s.fileno())])
child = os.fork()
if child == 0:
    end_with_parent()
    serve(s, b'other', 3)
    os._exit(0)
if way == 'waiting':
    os.waitpid(child, 0)
else:
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        select.select([other], [], [], 0.1)
serve(s, b'first', 9)
";

/// Until a process has a stack: it has polled the listener.
fn wait_until_polled(server: &Running) {
    let process = server.0.id().to_string();
    wait_for(|| {
        let shown = output_of(BINARY, &["stackdump", "stacks"]).stdout;
        let shown = String::from_utf8_lossy(&shown);
        shown.split_whitespace().any(|word| word == process)
    });
}

fn answered_by(topology: &Topology) -> Vec<u8> {
    topology.at_client(|| {
        let mut client = Client::connect(address(7000)).unwrap();
        client.send(b"which").unwrap();
        client.content(5).unwrap()
    })
}

fn check(way: &str) {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let server = Running::start(STARTING, way, STACK);
        wait_until_polled(&server);
        for expected in ["other", "other", "other", "first", "first"] {
            let answer = answered_by(topology);
            assert_eq!(String::from_utf8_lossy(&answer), expected);
        }
        assert_eq!(kernel_connections(7000), "");
    });
}

/// As inetd's `wait`.
#[test]
fn a_connection_that_its_process_has_seen_and_left_is_accepted_by_the_child_it_waits_for() {
    check("waiting");
}

/// As the masters of Postfix and Dovecot.
#[test]
fn a_connection_that_its_process_has_seen_and_left_is_accepted_by_a_child_while_it_polls_others() {
    check("polling");
}

/// As systemd-socket-activate.
#[test]
fn a_connection_that_its_process_has_seen_is_accepted_by_the_program_that_it_becomes() {
    check("becoming");
}

/// Polls a listener, and becomes another program that echoes.
const BECOMING: &str = "
import os, select, socket, sys
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
select.select([s], [], [])
os.set_inheritable(s.fileno(), True)
then = '''
import socket, sys
s = socket.socket(fileno=int(sys.argv[1]))
while True:
    c = s.accept()[0]
    if d := c.recv(99): c.sendall(d)
    c.close()
'''
os.execv(sys.executable, [sys.executable, '-c', then, str(s.fileno())])
";

#[test]
fn connections_that_begin_while_a_process_becomes_another_program_are_accepted_by_that() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let server = Running::start(BECOMING, "", STACK);
        wait_until_polled(&server);
        topology.at_client(|| {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..25 {
                            let mut client = Client::connect(address(7000)).unwrap();
                            exchange(&mut client, b"word");
                        }
                    });
                }
            });
        });
    });
}

/// Two processes that echo on as many connections as come; after the word `hold` one looks at nothing else until the next word.
const HOLDING: &str = "
import ctypes, os, select, socket
s = socket.create_server(('0.0.0.0', 7000), backlog=99)
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: the test ends the first process
open_ones = [s]
while True:
    for c in select.select(open_ones, [], [])[0]:
        if c is s:
            s.setblocking(False)
            try: open_ones.append(s.accept()[0])
            except BlockingIOError: pass
            continue
        d = c.recv(99)
        if d == b'hold': d = c.recv(99)
        if d: c.sendall(d)
        else:
            open_ones.remove(c)
            c.close()
";

#[test]
fn what_waits_at_a_process_that_does_something_else_is_accepted_by_another_one() {
    if without_python() {
        return;
    }
    between_queues([2, 2], |topology| {
        let server = Running::start(HOLDING, "", STACK);
        wait_until_polled(&server);
        topology.at_client(|| {
            let connected = || {
                let mut client = Client::connect(address(7000)).unwrap();
                exchange(&mut client, b"word");
                client
            };
            // Each process has several.
            let mut clients: Vec<Client> = (0..30).map(|_| connected()).collect();
            clients[0].send(b"hold").unwrap();
            let others: Vec<Client> = (0..30).map(|_| connected()).collect();
            exchange(&mut clients[0], b"go on");
            for client in &mut clients {
                exchange(client, b"all");
            }
            drop(others);
        });
    });
}
