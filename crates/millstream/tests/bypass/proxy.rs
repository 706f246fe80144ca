//! A proxy over AF_XDP: its clients at the other end of the interface, its servers there or on this machine.

use crate::namespace::output_of;
use crate::proxied::{ORIGIN, check_pairs, check_probes, get, proxy};
use crate::server::{Server, Site};
use crate::topology::{
    FAR, FAR_ADDRESS, HOSTS, STACK, between, between_queues, kernel_connections, resets_of_kernel,
};
use mill_sys::signal::Signal;
use std::fs;

const SERVERS: [(&str, &str); 2] = [("far", FAR_ADDRESS), ("near", "127.0.0.1")];

#[test]
fn servers_beyond_the_interface_are_reached_over_the_stack_and_others_by_the_kernel() {
    between(1500, |topology| {
        let (behind, beside, front) = (Site::new(), Site::new(), Site::new());
        let conf = behind.configure("worker_processes 1;", ORIGIN);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let conf = beside.configure("worker_processes 1;", ORIGIN);
        let near = Server::configured(&beside, &conf, &[]);
        let conf = front.configure("worker_processes 1;", &proxy(80, SERVERS));
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let large = fs::read(behind.path("large.bin")).unwrap();
        topology.at_client(|| {
            check_pairs(
                &[HOSTS[0]],
                [("far", HOSTS[0]), ("near", "127.0.0.1")],
                &large,
            );
            check_probes(HOSTS[0], HOSTS[0]);
        });
        // The kernel has no connection to the far server.
        let to_origin = output_of("ss", &["-Htn", "dport = :9111 and dst 10.50.0.0/24"]);
        assert_eq!(String::from_utf8_lossy(&to_origin.stdout), "");
        assert_eq!(kernel_connections(80), "");
        for server in [server, near, far] {
            assert!(server.end(Signal::Quit).success());
        }
    });
}

#[test]
fn answers_of_servers_come_back_to_the_worker_that_asked_on_any_number_of_queues() {
    between_queues([2, 2], |topology| {
        let (behind, front) = (Site::new(), Site::new());
        let conf = behind.configure("worker_processes 1;", ORIGIN);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let conf = front.configure("worker_processes 2;", &proxy(80, SERVERS));
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let url = format!("http://{}/far/index.html", HOSTS[0]);
        let expected = "hello\n".repeat(20);
        // Each curl has a connection of its own, which one of the queues receives.
        for _ in 0..12 {
            let got = topology.at_client(|| get(&vec![url.clone(); 20]));
            assert_eq!(String::from_utf8_lossy(&got), expected);
        }
        // An answer that comes to the queue of a worker which has opened no connection yet is none of the kernel's, which would reset it.
        assert_eq!(resets_of_kernel(), 0);
        for server in [server, far] {
            assert!(server.end(Signal::Quit).success());
        }
    });
}

/// The load has one socket at its end of the interface, over which it is client and server.
#[test]
fn one_load_is_on_both_sides_of_a_proxy() {
    between(1500, |topology| {
        let front = Site::new();
        let servers = format!(
            "upstream far {{ server {FAR_ADDRESS}:9111; keepalive 8; }}
             server {{ listen 80; location / {{ proxy_pass http://far; }} }}"
        );
        let conf = front.configure("worker_processes 1;", &servers);
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let stack = format!("af_xdp:{FAR}");
        let target = format!("http://{}/", HOSTS[0]);
        let arguments = [
            "load",
            "--stack",
            &stack,
            "--origin",
            "9111,1000",
            "-c4",
            "-n2000",
            "--json",
            "-",
            &target,
        ];
        let output = topology.at_client(|| output_of(env!("CARGO_BIN_EXE_millstream"), &arguments));
        let text = String::from_utf8_lossy(&output.stdout);
        let counts = ["\"answered\": 2000,", "\"content_bytes\": 2000000,"];
        assert!(counts.iter().all(|count| text.contains(count)), "{text}");
        assert_eq!(kernel_connections(80) + &kernel_connections(9111), "");
        assert!(server.end(Signal::Quit).success());
    });
}
