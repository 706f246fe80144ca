//! HAProxy, with both sides on the stack.

use super::{Peer, check_site, have};
use crate::client::Client;
use crate::namespace::text_of;
use crate::nginx::Nginx;
use crate::run::{Accelerated, BINARY, echo};
use crate::run_calls::PYTHON;
use crate::run_threads::BY_THREAD;
use crate::server::{Site, wait_for};
use crate::topology::{FAR_ADDRESS, STACK, between, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

/// Echoes each connection.
pub(crate) const ECHO: &str = "
import socket, threading
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
def talk(c):
    while d := c.recv(99999): c.sendall(d)
    c.close()
while True: threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
";

#[test]
fn haproxy_passes_requests_and_bytes_on_with_two_threads_over_the_stack_at_both_sides() {
    if !have(&["haproxy", "nginx", PYTHON, "ab", "h2load"]) {
        return;
    }
    between(1500, |topology| {
        let (site, front) = (Site::new(), Site::new());
        let servers = "server { listen 80; keepalive_requests 1000000; }";
        let _nginx = topology.at_client(|| Nginx::start(&site, servers));
        let _echo = Peer::start(topology, &[PYTHON, "-c", ECHO]);
        let far = format!("{FAR_ADDRESS}:7000").parse().unwrap();
        topology.at_client(|| wait_for(|| Client::connect(far).is_ok()));
        let conf = front.path("haproxy.cfg");
        let text = format!(
            "global\n    nbthread 2\n    maxconn 500\n    user www-data\n\
             defaults\n    timeout connect 20s\n    timeout client 60s\n    timeout server 60s\n\
             listen web\n    mode http\n    bind :8080\n    server far {FAR_ADDRESS}:80 check inter 1s\n\
             listen echo\n    mode tcp\n    bind :7000\n    server far {FAR_ADDRESS}:7000\n"
        );
        fs::write(&conf, text).unwrap();
        for stack in [STACK, BY_THREAD] {
            let words = ["haproxy", "-db", "-f", conf.to_str().unwrap()];
            let haproxy = Accelerated::on(stack, &words);
            check_site(topology, &site, 8080);
            let said: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
            topology.at_client(|| {
                std::thread::scope(|scope| {
                    for _ in 0..6 {
                        scope.spawn(|| echo(7000, &said));
                    }
                });
            });
            let to_origin = text_of("ss", &["-Htan", "dst = 10.50.0.2"]);
            assert_eq!(to_origin, "");
            assert_eq!(kernel_connections(8080), "");
            assert!(haproxy.end(Signal::User1).success());
        }
    });
}

/// As in Debian's configuration, with an empty folder as its root, in which there is no /proc.
#[test]
fn haproxy_that_changes_its_root_and_its_user_is_on_the_stack_at_both_sides() {
    if !have(&["haproxy", "nginx", "ab", "h2load"]) {
        return;
    }
    between(1500, |topology| {
        let (site, front) = (Site::new(), Site::new());
        let _nginx = topology
            .at_client(|| Nginx::start(&site, "server { listen 80; keepalive_requests 1000000; }"));
        let root = front.path("root");
        fs::create_dir(&root).unwrap();
        let conf = front.path("haproxy.cfg");
        for fork in ["", "    insecure-fork-wanted\n"] {
            let text = format!(
                "global\n    chroot {}\n    user www-data\n    group www-data\n    nbthread 2\n    maxconn 500\n{fork}\
                 defaults\n    timeout connect 20s\n    timeout client 60s\n    timeout server 60s\n\
                 listen web\n    mode http\n    bind :8080\n    server far {FAR_ADDRESS}:80 check inter 1s\n",
                root.display()
            );
            fs::write(&conf, text).unwrap();
            for words in [&["-db"][..], &["-W"]] {
                let words = [&["haproxy"], words, &["-f", conf.to_str().unwrap()]].concat();
                let haproxy = Accelerated::start(&words);
                check_site(topology, &site, 8080);
                assert_eq!(text_of("ss", &["-Htan", "dst = 10.50.0.2"]), "");
                assert_eq!(kernel_connections(8080), "");
                if !fork.is_empty() {
                    let shown = || text_of(BINARY, &["stackdump", "clusters"]);
                    wait_for(|| shown().contains("cluster haproxy: size=1 interface=mill0"));
                }
                assert!(haproxy.end(Signal::User1).success());
            }
        }
    });
}
