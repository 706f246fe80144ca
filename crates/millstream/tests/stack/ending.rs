//! After any kind of end nothing is left behind.

use crate::namespace::{in_namespace, text_of};
use crate::server::{STACK, Server, Site, wait_for};
use mill_sys::interface;
use mill_sys::signal::Signal;

fn has_device() -> bool {
    interface::index("mill0").is_ok()
}

fn addresses() -> String {
    text_of("ip", &["-br", "address"])
}

#[test]
fn a_directorys_server_leaves_nothing_behind() {
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Quit] {
        in_namespace(|| {
            let before = addresses();
            let site = Site::new();
            let server = Server::directory(&site.path(""), &["--stack", STACK]);
            assert!(has_device());
            assert!(addresses().contains("10.77.0.1/24"));
            assert!(server.end(signal).success(), "{signal:?}");
            assert_eq!(addresses(), before, "{signal:?}");
        });
    }
}

#[test]
fn a_master_and_its_worker_process_leave_nothing_behind() {
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Quit] {
        in_namespace(|| {
            let before = addresses();
            let site = Site::new();
            let conf = site.configure("", "server { listen 80; }");
            let server = Server::configured(&site, &conf, &["--stack", STACK]);
            assert!(has_device());
            assert!(server.end(signal).success(), "{signal:?}");
            assert_eq!(addresses(), before, "{signal:?}");
        });
    }
}

#[test]
fn the_device_ends_with_a_killed_process() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("", "server { listen 80; }");
        let mut server = Server::configured(&site, &conf, &["--stack", STACK]);
        assert!(has_device());
        server.kill_all();
        wait_for(|| !has_device());
    });
}

#[test]
fn a_worker_process_without_its_master_ends_with_the_device() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("", "server { listen 80; }");
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        server.signal(Signal::Kill);
        wait_for(|| !has_device());
    });
}

#[test]
fn a_start_that_fails_leaves_no_device() {
    in_namespace(|| {
        let site = Site::new();
        let conf = site.configure("", "server { listen 192.0.2.7:80; }");
        let output = crate::namespace::output_of(
            env!("CARGO_BIN_EXE_millstream"),
            &["serve", "-c", &conf, "--stack", STACK],
        );
        assert!(!output.status.success());
        assert!(!has_device());
    });
}
