//! Processes that are killed or stopped: in all cases the machine stays reachable.

use crate::client::Client;
use crate::namespace::{get, text_of};
use crate::others::{Echo, the_rest_is_undisturbed};
use crate::server::{Server, Site, wait_for};
use crate::topology::{HOSTS, STACK, Topology, between, is_steered, kernel_connections, serve};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::net::TcpListener;

/// A server of two processes.
fn with_processes(test: impl FnOnce(&Topology, &Site, Server) + Send) {
    between(1500, |topology| {
        let site = Site::new();
        let server = serve(&site);
        assert!(is_steered());
        test(topology, &site, server);
    });
}

fn is_served(topology: &Topology) -> bool {
    topology.at_client(|| {
        let mut hosts = HOSTS.iter();
        hosts.all(|host| get(&format!("http://{host}/")).as_deref() == Some("hello\n"))
    })
}

/// Sends a signal that the server does not handle.
fn send(process: Pid, signal: &str) {
    let command = format!("kill -{signal} {}", process.number());
    text_of("sh", &["-c", &command]);
}

#[test]
fn a_worker_process_that_is_killed_is_replaced_on_the_same_queue() {
    with_processes(|topology, site, server| {
        for count in 2..5 {
            let address = format!("{}:80", HOSTS[0]).parse().unwrap();
            let mut client = topology.at_client(|| Client::connect(address).unwrap());
            assert_eq!(client.get("/").unwrap().status, 200);
            server.worker().kill(Signal::Kill.number()).unwrap();
            let in_force = "configuration 1 is in force";
            wait_for(|| site.error_log().matches(in_force).count() == count);
            assert!(is_served(topology));
            // The connection ended with the process, and the new process resets it.
            assert!(client.get("/").is_err());
            assert_eq!(kernel_connections(80), "", "{count}");
        }
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_killed_process_leaves_the_interface_to_the_kernel() {
    for whole_group in [false, true] {
        with_processes(|topology, site, mut server| {
            let echo = Echo::start();
            let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
            assert!(is_served(topology));
            if whole_group {
                server.kill_all();
            } else {
                server.signal(Signal::Kill);
            }
            wait_for(|| !is_steered());
            the_rest_is_undisturbed(topology, &mut kept);
            let again = Server::directory(&site.path(""), &["--stack", STACK]);
            assert!(is_served(topology), "whole group: {whole_group}");
            assert!(again.end(Signal::Quit).success());
        });
    }
}

#[test]
fn every_way_to_end_leaves_the_interface_to_the_kernel() {
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Quit] {
        with_processes(|topology, _, server| {
            assert!(is_served(topology));
            assert!(server.end(signal).success(), "{signal:?}");
            assert!(!is_steered(), "{signal:?}");
            assert!(!is_served(topology), "{signal:?}");
            // Served by the kernel, as if there had been no stack.
            let kernels = TcpListener::bind("10.50.0.1:80").unwrap();
            let address = kernels.local_addr().unwrap();
            topology.at_client(|| std::net::TcpStream::connect(address).unwrap());
        });
    }
}

#[test]
fn a_stopped_worker_process_blocks_no_other_traffic() {
    with_processes(|topology, _, server| {
        let echo = Echo::start();
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        assert!(is_served(topology));
        let worker = server.worker();
        send(worker, "STOP");
        let address = format!("{}:80", HOSTS[0]).parse().unwrap();
        // More than the queue holds: no process takes its frames.
        let waiting = topology.at_client(|| {
            let socket = std::net::UdpSocket::bind("10.50.0.2:0").unwrap();
            for _ in 0..2000 {
                socket.send_to(&[0; 1000], "10.50.0.1:9").unwrap();
            }
            std::thread::spawn(move || Client::connect(address).unwrap().get("/").unwrap())
        });
        for _ in 0..3 {
            the_rest_is_undisturbed(topology, &mut kept);
        }
        send(worker, "CONT");
        assert_eq!(waiting.join().unwrap().content, b"hello\n");
        assert!(is_served(topology));
    });
}
