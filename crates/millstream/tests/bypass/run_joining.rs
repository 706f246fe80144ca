//! Several programs under `millstream run` on one interface: each has stacks beside those of the others, and comes and goes by itself.

use crate::client::Client;
use crate::namespace::{has, output_of};
use crate::run_calls::{FAR, PYTHON, started};
use crate::server::wait_for;
use crate::topology::{
    HOSTS, STACK, Topology, between, between_queues, is_steered, kernel_connections,
};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// A server that echoes, for as many connections as come. SIGTERM ends it.
const ECHO: &str = "
import signal, socket, sys, threading
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
s = socket.create_server(('0.0.0.0', int(sys.argv[1])), backlog=50)
def talk(c):
    while d := c.recv(9999): c.sendall(d)
    c.close()
while True: threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
";

/// One that opens a connection to the far end and asks for a word.
const ASKING: &str = "
import socket
f = socket.create_connection(('10.50.0.2', 5001))
f.sendall(b's5 w50 c\\n')
print(len(f.recv(5, socket.MSG_WAITALL)))
";

/// A program on the stack, ended whatever happens.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    fn echo(port: u16, stack: &str) -> Self {
        Self::start(ECHO, &port.to_string(), stack)
    }

    pub(crate) fn start(script: &str, argument: &str, stack: &str) -> Self {
        let child = Command::new(BINARY)
            .args([
                "run", "--stack", stack, "--", PYTHON, "-c", script, argument,
            ])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    pub(crate) fn ask_to_end(&mut self) {
        let process = Pid::new(i32::try_from(self.0.id()).unwrap()).unwrap();
        process.kill(Signal::Terminate.number()).unwrap();
    }

    /// Asks it to end, and gives what it has said.
    fn end(mut self) -> String {
        // Python loses a signal that comes just before it waits.
        wait_for(|| {
            self.ask_to_end();
            self.0.try_wait().unwrap().is_some()
        });
        self.said()
    }

    fn said(&mut self) -> String {
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

pub(crate) fn address(port: u16) -> SocketAddr {
    format!("{}:{port}", HOSTS[0]).parse().unwrap()
}

/// Until new connections are the stack's.
pub(crate) fn wait_until_served(topology: &Topology, port: u16) {
    wait_for(|| {
        let client = topology.at_client(|| Client::connect(address(port)));
        client.is_ok() && kernel_connections(port).is_empty()
    });
}

pub(crate) fn exchange(client: &mut Client, word: &[u8]) {
    client.send(word).unwrap();
    assert_eq!(client.content(word.len()).unwrap(), word);
}

fn echoing(port: u16) -> Client {
    let mut client = Client::connect(address(port)).unwrap();
    exchange(&mut client, b"first");
    client
}

pub(crate) fn without_python() -> bool {
    let is_missing = !has(PYTHON);
    if is_missing {
        println!("not tested: there is no python3");
    }
    is_missing
}

#[test]
fn two_servers_and_a_client_share_an_interface_and_each_goes_on_when_another_ends() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let first = Running::echo(7000, STACK);
        wait_until_served(topology, 7000);
        let options = format!("{STACK},polling=interrupt,send-buffer=1m");
        let second = Running::echo(7001, &options);
        wait_until_served(topology, 7001);
        let (mut to_first, mut to_second) = topology.at_client(|| (echoing(7000), echoing(7001)));
        let _far = started(topology, FAR);
        let asking = || {
            let asking = ["run", "--stack", STACK, "--", PYTHON, "-c", ASKING];
            let output = output_of(BINARY, &asking);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.stdout, b"5\n", "{said}");
            said
        };
        let said = asking();
        assert!(said.contains("(and those of"), "{said}");
        topology.at_client(|| {
            exchange(&mut to_first, b"beside");
            exchange(&mut to_second, b"beside");
        });
        let said = first.end();
        assert!(!said.contains("and those of"), "{said}");
        topology.at_client(|| {
            exchange(&mut to_second, b"alone");
            drop(echoing(7001));
        });
        let third = Running::echo(7000, STACK);
        wait_until_served(topology, 7000);
        topology.at_client(|| {
            exchange(&mut to_second, b"with another one");
            drop((echoing(7000), echoing(7001)));
        });
        let said = second.end();
        assert!(said.contains("(and those of"), "{said}");
        topology.at_client(|| drop(echoing(7000)));
        assert_eq!(kernel_connections(7000), "");
        drop(third);
        wait_for(|| !is_steered());
    });
}

#[test]
fn a_program_that_ends_and_begins_again_at_once_has_the_interface_each_time() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        for _ in 0..10 {
            let server = Running::echo(7000, STACK);
            wait_until_served(topology, 7000);
            let mut client = topology.at_client(|| echoing(7000));
            topology.at_client(|| exchange(&mut client, b"once more"));
            server.end();
        }
        wait_for(|| !is_steered());
    });
}

#[test]
fn a_program_with_other_options_of_the_device_is_refused_in_words_and_the_first_goes_on() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let server = Running::echo(7000, STACK);
        wait_until_served(topology, 7000);
        for (options, why) in [
            ("queue=0", "with other options of the device"),
            ("receive-frames=1024", "with other options of the device"),
            ("receive-frame=1024", "did you mean"),
        ] {
            let stack = format!("{STACK},{options}");
            let second = output_of(BINARY, &["run", "--stack", &stack, "--", "true"]);
            let said = String::from_utf8_lossy(&second.stderr);
            assert!(!second.status.success() && said.contains(why), "{said}");
        }
        topology.at_client(|| drop(echoing(7000)));
        drop(server);
        wait_for(|| !is_steered());
    });
}

/// Ports of three programs on one queue, of which the third has no part of the interface, and on two queues, at which connections of each arrive.
#[test]
fn all_connections_of_each_of_several_programs_are_the_stacks() {
    if without_python() {
        return;
    }
    for queues in [1, 2] {
        between_queues([queues, queues], |topology| {
            let ports = [7000, 7001, 7002];
            let servers = ports.map(|port| {
                let server = Running::echo(port, STACK);
                wait_until_served(topology, port);
                server
            });
            let clients: Vec<Client> = topology.at_client(|| {
                let each = ports.into_iter().cycle().take(60);
                each.map(echoing).collect()
            });
            for port in ports {
                assert_eq!(kernel_connections(port), "", "{queues} queues");
            }
            drop(clients);
            drop(servers);
            wait_for(|| !is_steered());
        });
    }
}

/// Two other programs are left, so that what has the queue has it with the ports of all three.
#[test]
fn the_port_of_a_program_that_has_ended_is_the_kernels() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let servers = [7000, 7001, 7002].map(|port| {
            let server = Running::echo(port, STACK);
            wait_until_served(topology, port);
            server
        });
        let [ended, left, other] = servers;
        drop(ended);
        let plain = Command::new(PYTHON)
            .args(["-c", ECHO, "7000"])
            .stdin(Stdio::null())
            .spawn();
        let plain = Running(plain.unwrap());
        wait_for(|| {
            let client = topology.at_client(|| Client::connect(address(7000)));
            client.is_ok() && !kernel_connections(7000).is_empty()
        });
        topology.at_client(|| {
            for _ in 0..20 {
                drop((echoing(7000), echoing(7001), echoing(7002)));
            }
        });
        drop((plain, left, other));
        wait_for(|| !is_steered());
    });
}

/// Takes the keeper's name as another user, says so, and gives whatever comes a word.
const IMPOSTOR: &str = "
import os, socket, sys
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind('\\0millstream-keeper/af_xdp:' + sys.argv[1])
s.listen()
print('ready', flush=True)
while True:
    c = s.accept()[0]
    try: socket.send_fds(c, [b'stacks'], [0])
    except OSError: pass
";

#[test]
fn another_users_process_with_the_keepers_name_is_not_taken_for_it() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        let interface = STACK.strip_prefix("af_xdp:").unwrap();
        let interface = interface.split(',').next().unwrap();
        let impostor = Command::new(PYTHON)
            .args(["-c", IMPOSTOR, interface])
            .stdout(Stdio::piped())
            .spawn();
        let mut impostor = Running(impostor.unwrap());
        let output = impostor.0.stdout.as_mut().unwrap();
        output.read_exact(&mut [0; 6]).unwrap();
        let server = Running::echo(7000, STACK);
        wait_until_served(topology, 7000);
        topology.at_client(|| drop(echoing(7000)));
        let said = server.end();
        assert!(!said.contains("and those of"), "{said}");
        wait_for(|| !is_steered());
    });
}

#[test]
fn programs_that_begin_at_the_same_moment_share_the_interface() {
    if without_python() {
        return;
    }
    between(1500, |topology| {
        for _ in 0..5 {
            let servers = [7000, 7001, 7002].map(|port| Running::echo(port, STACK));
            for port in [7000, 7001, 7002] {
                wait_until_served(topology, port);
            }
            drop(servers);
            wait_for(|| !is_steered());
        }
    });
}
