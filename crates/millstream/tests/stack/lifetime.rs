//! Reloads, restarts, upgrades.

use crate::namespace::{get, in_namespace, text_of};
use crate::server::{STACK, Server, Site, wait_for, wait_until_at_rest};
use mill_sys::signal::Signal;

const SERVER: &str = "server { listen 80; }";

#[test]
fn a_reload_keeps_the_stack_and_changes_its_listeners() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("worker_processes 1;", SERVER);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let old = "http://10.77.0.2/";
        let new = ["http://10.77.0.2:81/", "http://[fd00::2]:82/"];
        assert_eq!(get(old).as_deref(), Some("hello\n"));
        assert!(new.iter().all(|url| get(url).is_none()));
        let worker = server.worker();
        // The stack's own address, which the kernel does not have; and a wildcard, which both serve.
        site.configure(
            "worker_processes 1;",
            "server { listen 10.77.0.2:81; listen [::]:82; }",
        );
        server.signal(Signal::Hangup);
        wait_for(|| site.error_log().contains("configuration 2 is in force"));
        for url in new {
            assert_eq!(get(url).as_deref(), Some("hello\n"), "{url}");
        }
        assert_eq!(get("http://[::1]:82/").as_deref(), Some("hello\n"));
        assert_eq!(get(old), None);
        assert_eq!(server.worker(), worker);
        site.configure("worker_processes 1;", SERVER);
        server.signal(Signal::Hangup);
        wait_for(|| site.error_log().contains("configuration 3 is in force"));
        assert_eq!(get(old).as_deref(), Some("hello\n"));
        assert!(new.iter().all(|url| get(url).is_none()));
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn a_worker_process_that_is_killed_is_replaced_on_the_same_device() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("worker_processes 1;", SERVER);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let address = text_of("ip", &["-o", "link", "show", "mill0"]);
        server.worker().kill(Signal::Kill.number()).unwrap();
        wait_for(|| {
            site.error_log()
                .matches("configuration 1 is in force")
                .count()
                == 2
        });
        assert_eq!(get("http://10.77.0.2/").as_deref(), Some("hello\n"));
        assert_eq!(text_of("ip", &["-o", "link", "show", "mill0"]), address);
    });
}

#[test]
fn the_binary_is_not_changed_while_frames_are_captured() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("worker_processes 1;", SERVER);
        let capture = site.path("frames.pcap");
        let capture = capture.to_str().unwrap();
        let server = Server::configured(&site, &conf, &["--stack", STACK, "--pcap", capture]);
        server.signal(Signal::User2);
        wait_for(|| site.error_log().contains("[crit]"));
        let log = site.error_log();
        assert!(
            log.contains(
                "the binary is not changed: the network stack can't be handed over, since its frames are being written to a file"
            ),
            "{log}"
        );
        assert_eq!(get("http://10.77.0.2/").as_deref(), Some("hello\n"));
    });
}

#[test]
fn all_worker_threads_serve_the_device_and_the_kernels_sockets() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("worker_processes 3;", "server { listen 80 reuseport; }");
        let _server = Server::configured(&site, &conf, &["--stack", STACK]);
        let log = site.error_log();
        assert!(!log.contains("[warn]"), "{log}");
        for _ in 0..10 {
            assert_eq!(get("http://10.77.0.2/").as_deref(), Some("hello\n"));
            assert_eq!(get("http://127.0.0.1/").as_deref(), Some("hello\n"));
        }
    });
}

#[test]
fn a_deleted_device_is_reported_once_and_kernel_sockets_go_on() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("worker_processes 1;", SERVER);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let worker = server.worker();
        text_of("ip", &["link", "delete", "mill0"]);
        let missed = "the device \"mill0\" was deleted";
        wait_for(|| site.error_log().contains(missed));
        assert_eq!(get("http://127.0.0.1/").as_deref(), Some("hello\n"));
        // The dead descriptor is not polled again and again.
        wait_until_at_rest(worker);
        assert_eq!(site.error_log().matches(missed).count(), 1);
    });
}

#[test]
fn the_host_address_can_be_listened_on() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("worker_processes 1;", "server { listen 10.77.0.1:80; }");
        let _server = Server::configured(&site, &conf, &["--stack", STACK]);
        assert_eq!(get("http://10.77.0.1/").as_deref(), Some("hello\n"));
        assert_eq!(get("http://10.77.0.2/"), None);
    });
}
