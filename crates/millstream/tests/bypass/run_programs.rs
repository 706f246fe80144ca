//! Common programs as they are installed, under `millstream run`: servers and clients with peers on kernel sockets at the
//! other side of the interface.

use crate::client::Client;
use crate::namespace::{has, text_of};
use crate::run::address;
use crate::server::{Site, wait_for};
use crate::topology::{HOSTS, Topology, kernel_connections};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::process::{Child, Command, Stdio};

/// Apache with mpm_event, lighttpd.
mod web_servers;

/// Python's servers, and asyncio as a client.
mod python;

/// Node.js.
mod node;

/// h2load and curl; nginx with HTTP/2.
mod http_clients;

/// iperf3.
mod iperf;

/// redis and memcached.
mod key_values;

/// Servers that fork.
mod forking;

/// HAProxy.
mod haproxy;
pub(crate) use haproxy::ECHO;

/// psql, and a server that forks.
mod postgres;

/// A program on kernel sockets at the clients' side, ended with the test.
pub(crate) struct Peer {
    child: Child,
    ending: Signal,
}

impl Peer {
    pub(crate) fn start(topology: &Topology, program: &[&str]) -> Self {
        Self::ended_by(Signal::Kill, topology, program)
    }

    /// One that leaves something behind if it is killed.
    fn ended_by(ending: Signal, topology: &Topology, program: &[&str]) -> Self {
        let child = topology.at_client(|| {
            let mut command = Command::new(program[0]);
            let command = command.args(&program[1..]).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        Self {
            child: child.unwrap(),
            ending,
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let own = i32::try_from(self.child.id()).ok().and_then(Pid::new);
        let _ = own.unwrap().kill(self.ending.number());
        let _ = self.child.wait();
    }
}

/// Whether all of these programs are installed; says if one is not.
pub(crate) fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !has(program));
    if let Some(program) = missing {
        println!("not tested: there is no {program}");
    }
    missing.is_none()
}

/// Waits until a server's connections are the stack's: those that come before it waits for them are the kernel's, which shows
/// them once it has taken the last frame of their handshakes.
pub(crate) fn wait_until_served(topology: &Topology, port: u16) -> Client {
    let mut served = Vec::new();
    wait_for(|| {
        let client = topology.at_client(|| Client::connect(address(port)));
        served.extend(client);
        if !kernel_connections(port).is_empty() {
            served.clear();
        }
        served.len() == 3
    });
    served.pop().unwrap()
}

/// Fetches the site from a server of HTTP on the stack: over a kept connection each byte, then over several at a time.
fn check_site(topology: &Topology, site: &Site, port: u16) {
    let large = fs::read(site.path("large.bin")).unwrap();
    let mut kept = wait_until_served(topology, port);
    topology.at_client(|| {
        for _ in 0..2 {
            assert_eq!(kept.get("/index.html").unwrap().content, b"hello\n");
            let answer = kept.get("/large.bin").unwrap();
            assert!(answer.status == 200 && answer.content == large);
        }
    });
    check_load(topology, port, "/index.html");
    assert_eq!(kept.get("/index.html").unwrap().status, 200);
    assert_eq!(kernel_connections(port), "");
}

/// Several connections at a time, kept ones and one a request.
fn check_load(topology: &Topology, port: u16, path: &str) {
    let url = format!("http://{}:{port}{path}", HOSTS[0]);
    let report = topology.at_client(|| text_of("h2load", &["--h1", "-n500", "-c10", &url]));
    assert!(report.contains("500 succeeded, 0 failed"), "{report}");
    let report = topology.at_client(|| text_of("ab", &["-q", "-n300", "-c10", &url]));
    assert!(report.contains("Complete requests:      300"), "{report}");
    assert!(report.contains("Failed requests:        0"), "{report}");
    assert!(!report.contains("Non-2xx"), "{report}");
}

/// Sends a large file to a server on the stack that answers with what it gets.
fn check_echo(topology: &Topology, site: &Site, url: &str) {
    let large = site.path("large.bin");
    let back = site.path("back");
    let data = format!("@{}", large.display());
    let to = back.to_str().unwrap();
    topology.at_client(|| text_of("curl", &["-sSfo", to, "--data-binary", &data, url]));
    assert!(fs::read(&back).unwrap() == fs::read(&large).unwrap());
}
