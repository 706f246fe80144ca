//! USR2: replacing the binary.

use crate::client::get;
use crate::site::{Site, free_address, is_running, send, wait_for, wait_until_ended};
use crate::tls::{ECDSA, certify};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts a new binary beside the old one.
fn upgrade(site: &Site, old: Pid) -> Pid {
    send(old, Signal::User2);
    let new = wait_for("the new pid file", || {
        site.master().filter(|pid| *pid != old)
    });
    site.worker(new, &[]);
    new
}

#[test]
fn an_upgrade_under_load_fails_no_request() {
    let site = Site::new();
    let address = free_address();
    let listen = format!("server {{ listen {address} reuseport; }}");
    site.configure("worker_processes 2;", &listen);
    let old = site.start();
    site.wait_until_served(address);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                let answer = get(address, "/").map(|answer| answer.status);
                assert_eq!(answer.unwrap(), 200, "after {count} requests");
                count += 1;
            }
            count
        });
        let new = upgrade(&site, old);
        send(old, Signal::Quit);
        wait_until_ended(old);
        done.store(true, Ordering::Relaxed);
        assert!(load.join().unwrap() > 0);
        assert!(is_running(new));
        assert!(!site.path("pid.oldbin").exists());
    });
    assert_eq!(get(address, "/").unwrap().status, 200);
}

/// Whether OpenSSL's client begins with the session of a file and gets it, or else writes one there.
fn is_resumed(site: &Site, address: SocketAddr, option: &str) -> bool {
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-ign_eof",
            "-connect",
            &address.to_string(),
            option,
        ])
        .arg(site.path("session"))
        .stdin(Stdio::from(
            std::fs::File::open(site.path("request")).unwrap(),
        ))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("answer"), "{said}");
    said.contains("\nReused, ")
}

#[test]
fn sessions_of_the_old_binary_are_resumed_by_the_new_one() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    std::fs::write(site.path("request"), request).unwrap();
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; return 200 answer;
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key; }}"
        ),
    );
    let old = site.start();
    assert!(!is_resumed(&site, address, "-sess_out"));
    let new = upgrade(&site, old);
    send(old, Signal::Quit);
    wait_until_ended(old);
    assert!(is_resumed(&site, address, "-sess_in"));
    // And by the one behind that.
    upgrade(&site, new);
    send(new, Signal::Quit);
    wait_until_ended(new);
    assert!(is_resumed(&site, address, "-sess_in"));
}

#[test]
fn an_upgrade_can_be_taken_back() {
    let site = Site::new();
    let address = free_address();
    site.configure("", &format!("server {{ listen {address}; }}"));
    let old = site.start();
    let first_worker = site.worker(old, &[]);
    let new = upgrade(&site, old);
    assert!(site.path("pid.oldbin").exists());
    send(old, Signal::WindowChange);
    wait_until_ended(first_worker);
    assert_eq!(get(address, "/").unwrap().status, 200);
    send(old, Signal::Hangup);
    site.worker(old, &[first_worker]);
    send(new, Signal::Quit);
    wait_until_ended(new);
    wait_for("the old pid file", || {
        (site.master() == Some(old)).then_some(())
    });
    assert_eq!(get(address, "/").unwrap().status, 200);
}

#[test]
fn a_new_binary_that_fails_leaves_the_old_one_as_it_was() {
    let site = Site::new();
    let address = free_address();
    site.configure("", &format!("server {{ listen {address}; }}"));
    let old = site.start();
    std::fs::write(site.path("nginx.conf"), "bogus;").unwrap();
    send(old, Signal::User2);
    site.wait_for_log("exited with code 1");
    wait_for("the old pid file", || {
        (site.master() == Some(old)).then_some(())
    });
    assert_eq!(get(address, "/").unwrap().status, 200);
    std::fs::remove_file(site.path("nginx")).unwrap();
    send(old, Signal::User2);
    site.wait_for_log("execve() failed");
    assert_eq!(site.master(), Some(old));
    assert_eq!(get(address, "/").unwrap().status, 200);
}

#[test]
fn a_second_upgrade_waits_for_the_first() {
    let site = Site::new();
    let address = free_address();
    site.configure("", &format!("server {{ listen {address}; }}"));
    let old = site.start();
    let new = upgrade(&site, old);
    send(old, Signal::User2);
    site.wait_for_log("the changing binary signal is ignored");
    send(old, Signal::Quit);
    wait_until_ended(old);
    let third = upgrade(&site, new);
    send(new, Signal::Quit);
    wait_until_ended(new);
    assert_eq!(site.master(), Some(third));
    assert_eq!(get(address, "/").unwrap().status, 200);
}

#[test]
fn an_nginx_that_runs_is_replaced_by_this_binary_and_back() {
    let site = Site::new();
    let address = free_address();
    site.configure(
        "worker_processes 2;",
        &format!("server {{ listen {address} reuseport; }}"),
    );
    let nginx = site.path("nginx");
    std::fs::remove_file(&nginx).unwrap();
    std::fs::copy(NGINX, &nginx).expect("nginx is installed, as for the differential test");
    let first = site.start_other();
    let mut products = vec![site.product(address)];
    std::fs::remove_file(&nginx).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_millstream"), &nginx).unwrap();
    let second = upgrade(&site, first);
    send(first, Signal::Quit);
    wait_until_ended(first);
    products.push(site.product(address));
    std::fs::remove_file(&nginx).unwrap();
    std::fs::copy(NGINX, &nginx).unwrap();
    upgrade(&site, second);
    send(second, Signal::Quit);
    wait_until_ended(second);
    products.push(site.product(address));
    let names: Vec<_> = products
        .iter()
        .map(|product| product.split('/').next())
        .collect();
    assert_eq!(names, [Some("nginx"), Some("millstream"), Some("nginx")]);
}

/// Debian's path.
const NGINX: &str = "/usr/sbin/nginx";
