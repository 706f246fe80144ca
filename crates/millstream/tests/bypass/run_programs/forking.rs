//! Servers whose parent accepts and forks a child for each connection: Python's `ForkingTCPServer`, and socat as an inetd.

use super::have;
use crate::run::{Accelerated, address};
use crate::run_calls::PYTHON;
use crate::run_faults::NOTED;
use crate::server::wait_for;
use crate::topology::{Topology, between, kernel_connections};
use mill_sys::descriptor;
use mill_sys::signal::Signal;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

/// Tells each client the client's port, then echoes.
const SERVER: &str = "
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b'%5d' % self.request.getpeername()[1])
        while data := self.request.recv(65536):
            self.request.sendall(data)
class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True
    request_queue_size = 50
Server(('0.0.0.0', 7000), Echo).serve_forever()
";

fn connect(topology: &Topology) -> io::Result<TcpStream> {
    let stream = topology.at_client(|| TcpStream::connect(address(7000)))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// A server, once each connection is the stack's.
fn serving(topology: &Topology, program: &[&str]) -> Accelerated {
    let server = Accelerated::start(program);
    wait_for(|| connect(topology).is_ok() && kernel_connections(7000).is_empty());
    server
}

/// What the server says of itself at first.
fn hear_port(client: &mut TcpStream) {
    let mut port = [0; 5];
    client.read_exact(&mut port).unwrap();
    let own = client.local_addr().unwrap().port();
    assert_eq!(port, format!("{own:5}").as_bytes());
}

/// Says `count` bytes and then no more, and hears them, and then no more.
fn check_echo(client: &mut TcpStream, count: u32) {
    let said: Vec<u8> = (0..count).flat_map(u32::to_le_bytes).collect();
    let mut writer = client.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&said).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        assert!(heard == said, "{} of {}", heard.len(), said.len());
    });
}

#[test]
fn pythons_forking_server_serves_each_connection_by_a_child() {
    if !have(&[PYTHON]) {
        return;
    }
    between(1500, |topology| {
        let server = serving(topology, &[PYTHON, "-c", SERVER]);
        let check = |count| {
            let mut client = connect(topology).unwrap();
            hear_port(&mut client);
            check_echo(&mut client, count);
        };
        for count in [0, 1, 30_000, 1_000_000] {
            check(count);
        }
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| check(100_000));
            }
        });
        assert_eq!(kernel_connections(7000), "");
        server.end(Signal::Terminate);
    });
}

#[test]
fn a_connection_ends_with_the_child_that_serves_it_and_with_its_parent() {
    if !have(&[PYTHON]) {
        return;
    }
    between(1500, |topology| {
        let server = serving(topology, &[PYTHON, "-c", SERVER]);
        let mut first = connect(topology).unwrap();
        hear_port(&mut first);
        server
            .children()
            .pop()
            .unwrap()
            .kill(Signal::Kill.number())
            .unwrap();
        assert_eq!(first.read(&mut [0]).unwrap(), 0);
        let mut second = connect(topology).unwrap();
        hear_port(&mut second);
        descriptor::wait_readable(&[], Some(NOTED)).unwrap();
        server.end(Signal::Kill);
        let heard = second.read(&mut [0]);
        assert_eq!(heard.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn socat_gives_each_connection_to_a_program_of_its_own() {
    if !have(&["socat"]) {
        return;
    }
    between(1500, |topology| {
        let listen = "TCP4-LISTEN:7000,fork,reuseaddr";
        let server = serving(topology, &["socat", listen, "EXEC:cat"]);
        for count in [0, 1, 30_000, 1_000_000] {
            check_echo(&mut connect(topology).unwrap(), count);
        }
        // The program has the connection itself, without socat between.
        server.end(Signal::Terminate);
        let server = serving(topology, &["socat", listen, "EXEC:cat,nofork"]);
        server.end(Signal::Terminate);
    });
}
