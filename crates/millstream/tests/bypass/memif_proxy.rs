//! Proxies on both ends of shared memory: clients and servers over memif and over the kernel, in all pairs.

use crate::memif::stacks;
use crate::namespace::in_namespace;
use crate::proxied::{ORIGIN, check_pairs, check_probes, proxy};
use crate::server::{Server, Site};
use mill_sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A way for the kernel's clients to the other end.
const NEAR: &str = "server { listen 80; location / { proxy_pass http://10.60.0.2:8080; } }";

#[test]
fn requests_are_passed_between_memif_and_the_kernel_in_all_pairs() {
    in_namespace(|| {
        let (near_site, far_site) = (Site::new(), Site::new());
        let [near_stack, far_stack] = stacks(&near_site, 1500);
        let conf = near_site.configure("worker_processes 1;", &format!("{ORIGIN} {NEAR}"));
        let near = Server::configured(&near_site, &conf, &["--stack", &near_stack]);
        // Its worker connects as another user.
        let socket = near_site.path("memif.sock");
        fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).unwrap();
        // It passes requests on to the first one.
        let servers = [("memif", "10.60.0.1"), ("kernel", "127.0.0.1")];
        let conf = far_site.configure("worker_processes 1;", &proxy(8080, servers));
        let far = Server::configured(&far_site, &conf, &["--stack", &far_stack]);
        let large = fs::read(near_site.path("large.bin")).unwrap();
        // By port 80 requests come to the far end over memif, by 8080 over the kernel.
        let seen = [("memif", "10.60.0.2"), ("kernel", "127.0.0.1")];
        check_pairs(&["127.0.0.1:80", "127.0.0.1:8080"], seen, &large);
        check_probes("127.0.0.1:8080", "10.60.0.2");
        assert!(far.end(Signal::Terminate).success());
        assert!(near.end(Signal::Terminate).success());
    });
}
