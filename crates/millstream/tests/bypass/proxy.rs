//! A proxy over AF_XDP: its clients at the other end of the interface, its servers there or on this machine.

use crate::namespace::output_of;
use crate::server::{Server, Site};
use crate::topology::{
    FAR_ADDRESS, HOSTS, STACK, Topology, between, between_queues, kernel_connections,
};
use mill_sys::signal::Signal;
use std::fs;

/// Serves files, and tells where a request came from.
const ORIGIN: &str = "server { listen 9111; location = /from { return 200 $remote_addr; } }";

fn proxy() -> String {
    format!(
        "upstream far {{ server {FAR_ADDRESS}:9111; keepalive 4; }}
         upstream near {{ server 127.0.0.1:9111; keepalive 4; }}
         server {{
             listen 80;
             proxy_http_version 1.1;
             proxy_set_header Connection '';
             location /far/ {{ proxy_pass http://far/; }}
             location /near/ {{ proxy_pass http://near/; }}
         }}"
    )
}

/// What curl gets at the client's side, for several URLs in one process and connection.
fn get(topology: &Topology, urls: &[String]) -> Vec<u8> {
    let urls = urls.iter().map(String::as_str);
    let words: Vec<&str> = ["-sSf", "-m", "30"].into_iter().chain(urls).collect();
    let output = topology.at_client(|| output_of("curl", &words));
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn servers_beyond_the_interface_are_reached_over_the_stack_and_others_by_the_kernel() {
    between(1500, |topology| {
        let (behind, beside, front) = (Site::new(), Site::new(), Site::new());
        let conf = behind.configure("worker_processes 1;", ORIGIN);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let conf = beside.configure("worker_processes 1;", ORIGIN);
        let near = Server::configured(&beside, &conf, &[]);
        let conf = front.configure("worker_processes 1;", &proxy());
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let large = fs::read(behind.path("large.bin")).unwrap();
        let url = |path: &str| format!("http://{}/{path}", HOSTS[0]);
        assert_eq!(get(topology, &[url("far/from")]), HOSTS[0].as_bytes());
        assert_eq!(get(topology, &[url("near/from")]), b"127.0.0.1");
        assert!(get(topology, &[url("far/large.bin")]) == large);
        assert!(get(topology, &[url("near/large.bin")]) == large);
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
        let conf = front.configure("worker_processes 2;", &proxy());
        let server = Server::configured(&front, &conf, &["--stack", STACK]);
        let url = format!("http://{}/far/index.html", HOSTS[0]);
        let expected = "hello\n".repeat(20);
        // Each curl has a connection of its own, which one of the queues receives.
        for _ in 0..12 {
            let got = get(topology, &vec![url.clone(); 20]);
            assert_eq!(String::from_utf8_lossy(&got), expected);
        }
        for server in [server, far] {
            assert!(server.end(Signal::Quit).success());
        }
    });
}
