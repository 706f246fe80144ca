//! `stream` over AF_XDP: clients at the other end of the interface, servers there or on this machine, TLS on either side.

use crate::namespace::output_of;
use crate::secured::certify;
use crate::server::{Server, Site};
use crate::topology::{FAR_ADDRESS, HOSTS, STACK, between, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn connections_are_passed_on_between_the_stack_and_the_kernel() {
    between(1500, |topology| {
        let (behind, beside, front) = (Site::new(), Site::new(), Site::new());
        let certificate = certify(&behind);
        let origin =
            format!("server {{ listen 9111; }} server {{ listen 9443 ssl; {certificate} }}");
        let conf = behind.configure("worker_processes 1;", &origin);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let conf = beside.configure("worker_processes 1;", "server { listen 127.0.0.1:9111; }");
        let near = Server::configured(&beside, &conf, &[]);
        let certificate = certify(&front);
        let passing = format!(
            "worker_processes 1; stream {{ server {{ listen 80; proxy_pass {FAR_ADDRESS}:9111; }}
             server {{ listen 81; proxy_pass 127.0.0.1:9111; }}
             server {{ listen 82; proxy_ssl on; proxy_pass {FAR_ADDRESS}:9443; }}
             server {{ listen 443 ssl; {certificate} proxy_pass {FAR_ADDRESS}:9111; }}
             server {{ listen 444; ssl_preread on; proxy_pass {FAR_ADDRESS}:9443; }} }}"
        );
        let conf = front.configure(&passing, "");
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let large = fs::read(behind.path("large.bin")).unwrap();
        for (scheme, port) in [
            ("http", 80),
            ("http", 81),
            ("http", 82),
            ("https", 443),
            ("https", 444),
        ] {
            let url = format!("{scheme}://{}:{port}/large.bin", HOSTS[0]);
            let words = ["-sSk", "--max-time", "20", &url];
            let got = topology.at_client(|| output_of("curl", &words).stdout);
            assert!(got == large, "{url}: {}", front.error_log());
            assert_eq!(kernel_connections(port), "");
        }
        let to_origin = output_of("ss", &["-Htn", "dst 10.50.0.0/24"]);
        assert_eq!(String::from_utf8_lossy(&to_origin.stdout), "");
        for server in [server, near, far] {
            assert!(server.end(Signal::Quit).success());
        }
    });
}
