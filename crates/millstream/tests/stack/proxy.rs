//! A proxy with clients and servers on either side: kernel sockets and a stack of our own, all four pairs.

use crate::namespace::in_namespace;
use crate::proxied::{ORIGIN, check_pairs, check_probes, proxy};
use crate::server::{STACK, Server, Site};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn servers_are_reached_over_the_stack_where_their_route_leads_there() {
    in_namespace(|| {
        let (behind, front) = (Site::new(), Site::new());
        let origin = behind.configure("worker_processes 1;", ORIGIN);
        let origin = Server::configured(&behind, &origin, &[]);
        let servers = [("stack", "10.77.0.1"), ("kernel", "127.0.0.1")];
        let proxy = front.configure("worker_processes 1;", &proxy(80, servers));
        let proxy = Server::configured(&front, &proxy, &["--stack", STACK]);
        let large = fs::read(behind.path("large.bin")).unwrap();
        let seen = [("stack", "10.77.0.2"), ("kernel", "127.0.0.1")];
        check_pairs(&["10.77.0.2", "127.0.0.1"], seen, &large);
        check_probes("127.0.0.1", "10.77.0.2");
        assert!(proxy.end(Signal::Quit).success());
        assert!(origin.end(Signal::Quit).success());
    });
}
