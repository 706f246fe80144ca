//! Clients of HTTP: large transfers of curl in both directions, HTTP/2 without TLS of h2load; nginx as its server.

use super::{have, wait_until_served};
use crate::namespace::text_of;
use crate::nginx::Nginx;
use crate::run::{Accelerated, on_stack};
use crate::server::{Server, Site, wait_for};
use crate::topology::{FAR_ADDRESS, HOSTS, between, is_steered, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn curl_sends_and_fetches_every_byte_several_at_a_time() {
    if !have(&["nginx", "curl"]) {
        return;
    }
    for mtu in [1500, 9000] {
        between(mtu, |topology| {
            let site = Site::new();
            let servers =
                "server { listen 80; listen [::]:80; client_max_body_size 0; dav_methods PUT; }";
            let nginx = topology.at_client(|| Nginx::start(&site, servers));
            let large = site.path("large.bin");
            for host in [FAR_ADDRESS, "[fd50::2]"] {
                let url = format!("http://{host}");
                let put = format!("{url}/put[1-4].bin");
                on_stack(&[
                    "curl",
                    "-sSfgT",
                    large.to_str().unwrap(),
                    &format!("{url}/put1.bin"),
                ]);
                on_stack(&["curl", "-sSfZT", large.to_str().unwrap(), &put]);
                let to = site.path("got#1.bin");
                on_stack(&["curl", "-sSfZo", to.to_str().unwrap(), &put]);
                let expected = fs::read(&large).unwrap();
                for number in 1..=4 {
                    for name in ["put", "got"] {
                        let path = site.path(&format!("{name}{number}.bin"));
                        assert!(fs::read(&path).unwrap() == expected, "{}", path.display());
                        fs::remove_file(&path).unwrap();
                    }
                }
            }
            assert_eq!(text_of("ss", &["-Htan", "dport = :80"]), "");
            drop(nginx);
            wait_for(|| !is_steered());
        });
    }
}

/// The words of h2load for small answers, and for large ones.
const LOADS: [(&[&str], &str); 2] = [
    (
        &["-n2000", "-c10", "-m10", "-t2"],
        "2000 succeeded, 0 failed",
    ),
    (&["-n16", "-c4", "-m2"], "16 succeeded, 0 failed"),
];

#[test]
fn h2load_asks_nginx_and_millstream_over_http_2_without_tls() {
    if !have(&["nginx", "h2load"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let servers = "server { listen 80; } server { listen 8080 http2; }";
        let check = |url: &str, load: &dyn Fn(&[&str]) -> String| {
            for ((words, expected), path) in LOADS.iter().zip(["", "large.bin"]) {
                let url = format!("{url}/{path}");
                let report = load(&[words, &[&*url][..]].concat());
                assert!(report.contains(expected), "{report}");
                assert!(report.contains("Application protocol: h2c"), "{report}");
            }
        };
        // At the stack's side nginx, then h2load.
        let conf = site.configure("worker_processes 1;", servers);
        let nginx = Accelerated::start(&["nginx", "-c", &conf, "-e", "stderr"]);
        let open = wait_until_served(topology, 8080);
        let url = format!("http://{}:8080", HOSTS[0]);
        check(&url, &|words| {
            topology.at_client(|| text_of("h2load", words))
        });
        assert_eq!(kernel_connections(8080), "");
        drop(open);
        assert!(nginx.end(Signal::Quit).success());

        let on_stack = |words: &[&str]| on_stack(&[&["h2load"], words].concat());
        let nginx = topology.at_client(|| Nginx::start(&site, servers));
        check(&format!("http://{FAR_ADDRESS}:8080"), &on_stack);
        drop(nginx);
        let conf = site.configure("worker_processes 1;", "server { listen 8080; http2 on; }");
        let server = topology.at_client(|| Server::configured(&site, &conf, &[]));
        check(&format!("http://{FAR_ADDRESS}:8080"), &on_stack);
        assert!(server.end(Signal::Quit).success());
        assert_eq!(text_of("ss", &["-Htan", "dport = :8080"]), "");
        wait_for(|| !is_steered());
    });
}
