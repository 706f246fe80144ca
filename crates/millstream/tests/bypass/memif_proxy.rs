//! Proxies on both ends of shared memory: clients and servers over memif and over the kernel, in all pairs.

use crate::memif::stacks;
use crate::namespace::{in_namespace, output_of};
use crate::server::{Server, Site};
use mill_sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Files, and a way for the kernel's clients to the other end.
const NEAR: &str = "server { listen 9111; location = /from { return 200 $remote_addr; } }
    server { listen 80; location / { proxy_pass http://10.60.0.2:8080; } }";

/// The other end: it passes requests on to the first one.
const FAR: &str = "upstream memif { server 10.60.0.1:9111; keepalive 4; }
    upstream kernel { server 127.0.0.1:9111; keepalive 4; }
    server {
        listen 8080;
        proxy_http_version 1.1;
        proxy_set_header Connection '';
        location /memif/ { proxy_pass http://memif/; }
        location /kernel/ { proxy_pass http://kernel/; }
    }";

fn get(url: &str) -> Vec<u8> {
    let output = output_of("curl", &["-sSf", "-m", "20", url]);
    assert!(output.status.success(), "{url}: {output:?}");
    output.stdout
}

#[test]
fn requests_are_passed_between_memif_and_the_kernel_in_all_pairs() {
    in_namespace(|| {
        let (near_site, far_site) = (Site::new(), Site::new());
        let [near_stack, far_stack] = stacks(&near_site, 1500);
        let conf = near_site.configure("worker_processes 1;", NEAR);
        let near = Server::configured(&near_site, &conf, &["--stack", &near_stack]);
        // Its worker connects as another user.
        let socket = near_site.path("memif.sock");
        fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).unwrap();
        let conf = far_site.configure("worker_processes 1;", FAR);
        let far = Server::configured(&far_site, &conf, &["--stack", &far_stack]);
        let large = fs::read(near_site.path("large.bin")).unwrap();
        // By port 80 requests come to the far end over memif, by 8080 over the kernel.
        for port in [80, 8080] {
            for (location, seen) in [("memif", "10.60.0.2"), ("kernel", "127.0.0.1")] {
                let url = |file: &str| format!("http://127.0.0.1:{port}/{location}/{file}");
                assert_eq!(get(&url("from")), seen.as_bytes(), "{port} {location}");
                assert!(get(&url("large.bin")) == large, "{port} {location}");
            }
        }
        assert!(far.end(Signal::Terminate).success());
        assert!(near.end(Signal::Terminate).success());
    });
}
