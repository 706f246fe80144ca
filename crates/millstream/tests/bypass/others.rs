//! Other traffic on the same interface: it goes to the kernel, whatever the stack is doing.

use crate::client::Client;
use crate::namespace::{get, has, text_of};
use crate::server::{Server, Site};
use crate::topology::{HOSTS, STACK, Topology, between, kernel_connections, serve};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server on kernel sockets that sends back what it receives, standing in for ssh.
pub(crate) struct Echo {
    port: u16,
}

impl Echo {
    /// Serves as long as there are clients, in the thread's namespace.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(len @ 1..) = stream.read(&mut bytes) {
                        if stream.write_all(&bytes[..len]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { port }
    }

    /// A connection to it; the caller is in the clients' namespace.
    pub(crate) fn connect(&self, host: &str) -> TcpStream {
        let address: SocketAddr = format!("{host}:{}", self.port).parse().unwrap();
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }
}

/// Sends something and reads it back.
pub(crate) fn converse(stream: &mut TcpStream) {
    let said: Vec<u8> = (0..3000_u16).flat_map(u16::to_le_bytes).collect();
    stream.write_all(&said).unwrap();
    let mut received = vec![0; said.len()];
    stream.read_exact(&mut received).unwrap();
    assert!(received == said);
}

/// Sends ICMP echo requests by a raw socket, as ping(8) does: each has to be answered.
pub(crate) fn ping() {
    if !has("python3") {
        println!("no echo requests: there is no python3");
        return;
    }
    let script = "
import socket, struct
def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
for family, protocol, host, kind, reply in [
        (socket.AF_INET, socket.IPPROTO_ICMP, '10.50.0.1', 8, 0),
        (socket.AF_INET6, socket.IPPROTO_ICMPV6, 'fd50::1', 128, 129)]:
    s = socket.socket(family, socket.SOCK_RAW, protocol)
    s.settimeout(3)
    for number in range(20):
        rest = struct.pack('!HH', 4711, number) + b'm' * 600
        head = struct.pack('!BBH', kind, 0, 0)
        # For IPv6 the kernel writes the checksum.
        if family == socket.AF_INET:
            head = struct.pack('!BBH', kind, 0, checksum(head + rest))
        s.sendto(head + rest, (host, 0))
        while True:
            got = s.recv(65536)
            got = got[20:] if family == socket.AF_INET else got
            if got[0] == reply and got[4:] == rest:
                break
print('ok')
";
    assert_eq!(text_of("python3", &["-c", script]), "ok\n");
}

/// Load on the stack until this is dropped; the caller is in the clients' namespace.
pub(crate) struct Load(Child);

impl Load {
    pub(crate) fn start(seconds: u32) -> Self {
        Self::with_header("Connection: keep-alive", seconds)
    }

    pub(crate) fn with_header(header: &str, seconds: u32) -> Self {
        let seconds = format!("-d{seconds}s");
        let url = format!("http://{}/", HOSTS[0]);
        let mut command = Command::new("wrk");
        command.args(["-t1", "-c20", &seconds, "-H", header, &url]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        Self(child.unwrap())
    }

    /// Its output after an early end.
    pub(crate) fn interrupt(self) -> String {
        let number = i32::try_from(self.0.id()).unwrap();
        let process = Pid::new(number).unwrap();
        process.kill(Signal::Interrupt.number()).unwrap();
        self.report()
    }

    /// Its output at its end.
    pub(crate) fn report(mut self) -> String {
        let mut text = String::new();
        let out = self.0.stdout.as_mut().unwrap();
        out.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that only one port of the machine is taken from the kernel.
pub(crate) fn the_rest_is_undisturbed(topology: &Topology, kept: &mut [TcpStream]) {
    let fresh = Echo::start();
    topology.at_client(|| {
        kept.iter_mut().for_each(converse);
        for host in HOSTS {
            converse(&mut fresh.connect(host));
        }
        ping();
    });
}

#[test]
fn other_ports_and_echo_requests_are_the_kernels_during_load() {
    if !has("wrk") {
        println!("not tested: there is no wrk");
        return;
    }
    between(1500, |topology| {
        let echo = Echo::start();
        // Opened before the stack was started.
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        let site = Site::new();
        let server = serve(&site);
        let load = topology.at_client(|| Load::start(2));
        for _ in 0..3 {
            the_rest_is_undisturbed(topology, &mut kept);
        }
        assert_eq!(kernel_connections(80), "");
        let report = load.report();
        assert!(report.contains("Requests/sec"), "{report}");
        assert!(!report.contains("Socket errors"), "{report}");
        drop(server);
        the_rest_is_undisturbed(topology, &mut kept);
    });
}

#[test]
fn unserved_ports_are_refused_by_the_kernel() {
    between(1500, |topology| {
        let site = Site::new();
        let _server = Server::directory(&site.path(""), &["--stack", STACK]);
        topology.at_client(|| {
            for host in HOSTS {
                let address: SocketAddr = format!("{host}:81").parse().unwrap();
                let refused = TcpStream::connect_timeout(&address, TIMEOUT).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{host}");
            }
        });
    });
}

#[test]
fn datagrams_to_the_served_port_are_the_kernels() {
    between(1500, |topology| {
        let site = Site::new();
        let _server = Server::directory(&site.path(""), &["--stack", STACK]);
        let kernels = UdpSocket::bind("10.50.0.1:80").unwrap();
        kernels.set_read_timeout(Some(TIMEOUT)).unwrap();
        topology.at_client(|| {
            let socket = UdpSocket::bind("10.50.0.2:0").unwrap();
            socket.send_to(b"hello", "10.50.0.1:80").unwrap();
        });
        let mut bytes = [0; 16];
        assert_eq!(kernels.recv(&mut bytes).unwrap(), 5);
    });
}

#[test]
fn connections_that_the_kernel_had_go_on_there() {
    between(1500, |topology| {
        let listener = TcpListener::bind("10.50.0.1:80").unwrap();
        let mut old = topology.at_client(|| TcpStream::connect("10.50.0.1:80").unwrap());
        let (mut accepted, _) = listener.accept().unwrap();
        drop(listener);
        let site = Site::new();
        let _server = Server::directory(&site.path(""), &["--stack", STACK]);
        let address = "10.50.0.1:80".parse().unwrap();
        let mut new = topology.at_client(|| Client::connect(address).unwrap());
        assert_eq!(new.get("/").unwrap().content, b"hello\n");
        old.write_all(b"still").unwrap();
        accepted.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut bytes = [0; 5];
        accepted.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"still");
        assert_eq!(new.get("/").unwrap().content, b"hello\n");
    });
}

#[test]
fn the_servers_own_machine_reaches_it_by_the_kernel() {
    between(1500, |_| {
        let site = Site::new();
        let _server = Server::directory(&site.path(""), &["--stack", STACK]);
        for host in ["127.0.0.1", "[::1]", HOSTS[0], HOSTS[1]] {
            let url = format!("http://{host}/");
            assert_eq!(get(&url).as_deref(), Some("hello\n"), "{host}");
        }
    });
}

/// A longer wait is a failure.
const TIMEOUT: Duration = Duration::from_secs(5);
