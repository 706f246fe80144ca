//! TLS and HTTP/2 over AF_XDP: from clients of the kernel and of our own stack, and to a server beyond the interface.

use crate::namespace::output_of;
use crate::secured::{self, certify};
use crate::server::{Server, Site};
use crate::topology::{FAR, FAR_ADDRESS, HOSTS, STACK, between, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn tls_and_http2_are_served_over_the_stack() {
    between(1500, |topology| {
        let site = Site::new();
        let conf = secured::configure(&site);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        topology.at_client(|| secured::check(&site, &HOSTS, FAR_ADDRESS));
        assert_eq!(kernel_connections(443) + &kernel_connections(80), "");
        // Our own client, on a stack of its own.
        let arguments = format!(
            "load --stack af_xdp:{FAR} -c4 -n2000 --json - https://{}/index.html",
            HOSTS[0]
        );
        let words: Vec<&str> = arguments.split(' ').collect();
        let output = topology.at_client(|| output_of(env!("CARGO_BIN_EXE_millstream"), &words));
        let text = String::from_utf8_lossy(&output.stdout);
        let counts = ["\"answered\": 2000,", "\"handshakes\": 4,"];
        assert!(counts.iter().all(|count| text.contains(count)), "{text}");
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_server_beyond_the_interface_is_reached_over_tls() {
    between(1500, |topology| {
        let (behind, front) = (Site::new(), Site::new());
        let certificate = certify(&behind);
        let origin = format!("server {{ listen 9443 ssl; {certificate} }}");
        let conf = behind.configure("worker_processes 1;", &origin);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let passing = format!(
            "upstream far {{ server {FAR_ADDRESS}:9443; keepalive 4; }}
             server {{ listen 80; location / {{ proxy_pass https://far; proxy_http_version 1.1; }} }}"
        );
        let conf = front.configure("worker_processes 1;", &passing);
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let large = fs::read(behind.path("large.bin")).unwrap();
        let url = format!("http://{}/large.bin", HOSTS[0]);
        for _ in 0..3 {
            let words = ["-sS", "--max-time", "20", &url];
            let got = topology.at_client(|| output_of("curl", &words).stdout);
            assert!(got == large, "{}", front.error_log());
        }
        let to_origin = output_of("ss", &["-Htn", "dport = :9443 and dst 10.50.0.0/24"]);
        assert_eq!(String::from_utf8_lossy(&to_origin.stdout), "");
        for server in [server, far] {
            assert!(server.end(Signal::Quit).success());
        }
    });
}
