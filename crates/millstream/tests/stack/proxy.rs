//! A proxy with clients and servers on either side: kernel sockets and a stack of our own, all four pairs.

use crate::namespace::{in_namespace, output_of};
use crate::server::{STACK, Server, Site};
use mill_sys::signal::Signal;
use std::fs;

/// Tells where a request came from, and serves files.
const ORIGIN: &str = "server { listen 9111; location = /from { return 200 $remote_addr; } }";

const PROXY: &str = "upstream behind_the_stack { server 10.77.0.1:9111; keepalive 4; }
    upstream on_this_machine { server 127.0.0.1:9111; keepalive 4; }
    server {
        listen 80;
        proxy_http_version 1.1;
        proxy_set_header Connection '';
        location /stack/ { proxy_pass http://behind_the_stack/; }
        location /kernel/ { proxy_pass http://on_this_machine/; }
    }";

fn get(url: &str) -> Vec<u8> {
    let output = output_of("curl", &["-sSf", "-m", "20", url]);
    assert!(output.status.success(), "{url}: {output:?}");
    output.stdout
}

#[test]
fn servers_are_reached_over_the_stack_where_their_route_leads_there() {
    in_namespace(|| {
        let (behind, front) = (Site::new(), Site::new());
        let origin = behind.configure("worker_processes 1;", ORIGIN);
        let origin = Server::configured(&behind, &origin, &[]);
        let proxy = front.configure("worker_processes 1;", PROXY);
        let proxy = Server::configured(&front, &proxy, &["--stack", STACK]);
        let large = fs::read(behind.path("large.bin")).unwrap();
        for client in ["10.77.0.2", "127.0.0.1"] {
            for (location, seen) in [("stack", "10.77.0.2"), ("kernel", "127.0.0.1")] {
                let url = |file: &str| format!("http://{client}/{location}/{file}");
                assert_eq!(get(&url("from")), seen.as_bytes(), "{client} {location}");
                assert!(get(&url("large.bin")) == large, "{client} {location}");
            }
        }
        assert!(proxy.end(Signal::Quit).success());
        assert!(origin.end(Signal::Quit).success());
    });
}
