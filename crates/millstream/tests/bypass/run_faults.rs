//! What goes wrong around programs under `millstream run`: their keeper, the interface, descriptors, other programs.

use crate::client::Client;
use crate::namespace::{has, output_of, text_of};
use crate::run_calls::{FAR, PYTHON, started};
use crate::server::wait_for;
use crate::topology::{HOSTS, STACK, Topology, between, ip, is_steered, kernel_connections};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use mill_sys::{clock, descriptor};
use std::fs;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// A server that echoes, and that a child of it says to the far end what it is told to say: "child".
const ECHO: &str = "
import os, socket, threading
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
def talk(c):
    while d := c.recv(9999):
        if d == b'child':
            child = os.fork()
            if child == 0:
                f = socket.create_connection(('10.50.0.2', 5001))
                f.sendall(b's5 c\\n')
                while f.recv(9999): pass
                os._exit(0)
            os.waitpid(child, 0)
        c.sendall(d)
    c.close()
while True: threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
";

/// A program on the stack, ended whatever happens.
struct Running(Child);

impl Running {
    fn echo() -> Self {
        Self::start(ECHO)
    }

    fn start(script: &str) -> Self {
        let child = Command::new(BINARY)
            .args(["run", "--stack", STACK, "--", PYTHON, "-c", script])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    /// The keeper, which is no child of the program, in this namespace.
    fn keeper(&self) -> Option<Pid> {
        let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
        let own = namespace("thread-self");
        let all = output_of("pgrep", &["-x", "mill-keeper"]);
        let all = String::from_utf8_lossy(&all.stdout).into_owned();
        let keeper = all.lines().find(|number| namespace(number) == own);
        Pid::new(keeper?.parse().ok()?)
    }

    /// Ends it, and gives what it has said.
    fn end(mut self) -> String {
        let _ = self.0.kill();
        let mut said = String::new();
        let output = self.0.stderr.as_mut().unwrap();
        output.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn address() -> SocketAddr {
    format!("{}:7000", HOSTS[0]).parse().unwrap()
}

/// Until new connections are the stack's: those that come between listen(2) and the first accept(2) are the kernel's.
fn wait_until_served(topology: &Topology) {
    wait_for(|| {
        let client = topology.at_client(|| Client::connect(address()));
        client.is_ok() && kernel_connections(7000).is_empty()
    });
}

/// A connection over which the server has answered.
fn echoing(word: &[u8]) -> Client {
    let mut client = Client::connect(address()).unwrap();
    exchange(&mut client, word);
    client
}

fn exchange(client: &mut Client, word: &[u8]) {
    client.send(word).unwrap();
    assert_eq!(client.content(word.len()).unwrap(), word);
}

/// Longer than between two times that the library notes connections for the keeper.
pub(crate) const NOTED: Duration = Duration::from_millis(400);

/// What a killed process' peers see of their connections: a reset although they say nothing, long before any timeout. It takes a tenth of a second.
fn hear_resets(idle: Vec<Client>, since: Duration) {
    for mut client in idle {
        let heard = client.content(1).unwrap_err();
        assert_eq!(heard.kind(), ErrorKind::ConnectionReset);
    }
    let took = clock::monotonic() - since;
    println!("heard after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Kills a server with connections that are idle, or that have said something since the library has noted them.
fn check_killed(is_talking: bool) {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let server = Running::echo();
        wait_until_served(topology);
        let mut clients: Vec<Client> =
            topology.at_client(|| (0..20).map(|_| echoing(b"before")).collect());
        descriptor::wait_readable(&[], Some(NOTED)).unwrap();
        if is_talking {
            topology.at_client(|| {
                for client in &mut clients {
                    exchange(client, b"after");
                }
            });
        }
        let since = clock::monotonic();
        server.end();
        topology.at_client(|| hear_resets(clients, since));
        wait_for(|| !is_steered());
    });
}

#[test]
fn peers_of_a_killed_program_hear_of_it_though_they_say_nothing() {
    check_killed(false);
}

/// The ledger knows their numbers of a moment ago only: what they answer to the keeper's probe is reset.
#[test]
fn peers_that_have_just_said_something_hear_of_it_too() {
    check_killed(true);
}

#[test]
fn stacks_go_on_without_their_keeper_and_later_processes_say_why_they_have_none() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let server = Running::echo();
        wait_until_served(topology);
        let mut kept = topology.at_client(|| echoing(b"before"));
        server
            .keeper()
            .unwrap()
            .kill(Signal::Kill.number())
            .unwrap();
        wait_for(|| server.keeper().is_none());
        topology.at_client(|| {
            exchange(&mut kept, b"after");
            let mut other = echoing(b"another");
            exchange(&mut other, b"child");
        });
        assert_eq!(kernel_connections(7000), "");
        let said = server.end();
        let why = "stays on the kernel's network stack: the keeper of \"millstream run\" is gone";
        assert!(said.contains(why), "{said}");
        wait_for(|| !is_steered());
    });
}

#[test]
fn an_interface_that_goes_down_and_up_is_served_again() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let server = Running::echo();
        wait_until_served(topology);
        let mut kept = topology.at_client(|| echoing(b"before"));
        ip("link set mill0 down");
        ip("link set mill0 up");
        topology.at_client(|| wait_for(|| Client::connect(address()).is_ok()));
        topology.at_client(|| {
            exchange(&mut kept, b"after");
            drop(echoing(b"another"));
        });
        assert_eq!(kernel_connections(7000), "");
        drop(server);
        wait_for(|| !is_steered());
    });
}

/// A program without descriptors left: at socket(2) and accept(2), and for a thread that has to sleep.
const WITHOUT_DESCRIPTORS: &str = "
import errno, os, resource, select, socket, threading
def call(function):
    try: return function()
    except OSError as error: return errno.errorcode[error.errno]
def opened(words):
    s = socket.create_connection(('10.50.0.2', 5001))
    s.sendall(words + b'\\n')
    return s
s = socket.create_server(('10.50.0.1', 0), backlog=5)
p = select.poll()
p.register(s, select.POLLIN)
p.poll(0)
opened(b'k 10.50.0.1 %d s5 w900 c' % s.getsockname()[1]).close()
p.poll(3000)
c = opened(b'w300 s5 w900')
last = max(map(int, os.listdir('/proc/self/fd')))
resource.setrlimit(resource.RLIMIT_NOFILE, (last + 3, 5000))
kept = []
while isinstance(d := call(c.dup), socket.socket): kept.append(d)
print(d, call(socket.socket), call(s.accept), call(s.dup))
got = []
t = threading.Thread(target=lambda: got.append(c.recv(5)))
t.start()
t.join()
print(got)
kept.pop().close()
print(len(call(s.accept)[0].recv(5, socket.MSG_WAITALL)))
";

/// One that forks often, with children that use and leave what they inherit.
const FORKING: &str = "
import os, socket
s = socket.create_connection(('10.50.0.2', 5001))
s.sendall(b'o\\n')
codes = set()
for i in range(500):
    child = os.fork()
    if child == 0:
        if i % 2: s.close()
        os._exit(3)
    codes.add(os.waitpid(child, 0)[1] >> 8)
    if i % 50 == 0:
        s.sendall(b'abc')
        assert s.recv(3, socket.MSG_WAITALL) == b'abc'
print(codes, len(os.listdir('/proc/self/fd')) < 60)
";

#[test]
fn programs_without_descriptors_and_programs_that_fork_often_get_what_the_kernel_gives() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        for script in [WITHOUT_DESCRIPTORS, FORKING] {
            let of_kernel = text_of(PYTHON, &["-c", script]);
            let words = ["run", "--stack", STACK, "--", PYTHON, "-c", script];
            assert_eq!(text_of(BINARY, &words), of_kernel);
            wait_for(|| !is_steered());
        }
    });
}
