//! Killed processes, taken ports, bad configurations.

use crate::client::{Client, get};
use crate::site::{Site, free_address, is_running, send, wait_for, wait_until_ended};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn a_killed_worker_process_is_replaced_and_its_sockets_live_on() {
    let site = Site::new();
    let address = free_address();
    site.configure("", &format!("server {{ listen {address}; }}"));
    let master = site.start();
    let mut killed = Vec::new();
    for _ in 0..3 {
        site.wait_until_served(address);
        let worker = site.worker(master, &killed);
        killed.push(worker);
        send(worker, Signal::Kill);
        // A client that connects in between waits for the next process.
        assert_eq!(get(address, "/").unwrap().status, 200);
    }
    site.wait_for_log("exited on signal 9");
}

#[test]
fn a_killed_masters_worker_process_ends_and_a_stale_pid_file_does_no_harm() {
    for reuseport in ["", "reuseport"] {
        let site = Site::new();
        let address = free_address();
        site.configure("", &format!("server {{ listen {address} {reuseport}; }}"));
        let master = site.start();
        let worker = site.worker(master, &[]);
        site.wait_until_served(address);
        send(master, Signal::Kill);
        wait_until_ended(master);
        assert_eq!(site.master(), Some(master), "the pid file is stale");
        let next = site.start();
        assert_ne!(next, master);
        assert_eq!(get(address, "/").unwrap().status, 200);
        wait_until_ended(worker);
        assert!(is_running(next));
    }
}

#[test]
fn an_orphaned_worker_process_answers_requests_in_progress() {
    let site = Site::new();
    let size = 32 * 1024 * 1024;
    fs::write(site.path("large"), vec![b'x'; size]).unwrap();
    let address = free_address();
    site.configure("", &format!("server {{ listen {address}; }}"));
    let master = site.start();
    let worker = site.worker(master, &[]);
    let mut client = Client::connect(address).unwrap();
    client
        .send(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    let (_, len) = client.head().unwrap();
    send(master, Signal::Kill);
    site.wait_for_log("the master process is gone");
    wait_for("the port to be closed", || {
        Client::connect(address).is_err().then_some(())
    });
    assert_eq!(client.content(len).unwrap().len(), size);
    drop(client);
    wait_until_ended(worker);
}

#[test]
fn a_bad_configuration_changes_nothing_and_is_logged() {
    let site = Site::new();
    let address = free_address();
    site.configure("", &format!("server {{ listen {address}; }}"));
    let master = site.start();
    let worker = site.worker(master, &[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    let bad = [
        (
            String::from("server { lisen 80; }"),
            "unknown directive \"lisen\"",
        ),
        (
            format!("server {{ listen {address}; listen {}; }}", taken.1),
            "failed (98: Address already in use), \"listen\" in ",
        ),
        (
            format!("server {{ listen {address}; access_log /nonexistent/log; }}"),
            "open() \"/nonexistent/log\" failed (2: No such file or directory)",
        ),
    ];
    for (http, why) in bad {
        site.configure("", &http);
        send(master, Signal::Hangup);
        site.wait_for_log(why);
        assert_eq!(get(address, "/").unwrap().status, 200);
        assert_eq!(site.worker(master, &[]), worker);
    }
    assert!(
        site.error_log().contains("(did you mean \"listen\"?)"),
        "{}",
        site.error_log()
    );
}

#[test]
fn a_second_server_on_the_same_port_is_refused_with_its_reason() {
    for reuseport in ["", "reuseport"] {
        let (first, second) = (Site::new(), Site::new());
        let address = free_address();
        let http = format!("server {{ listen {address} {reuseport}; }}");
        first.configure("", &http);
        second.configure("", &http);
        let master = first.start();
        let output = second.nginx(&[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let conf = second.path("nginx.conf");
        let (conf, text) = (conf.display(), fs::read_to_string(&conf).unwrap());
        let listen = text
            .lines()
            .position(|line| line.contains("listen"))
            .unwrap()
            + 1;
        // Logged once, although it was tried for two seconds.
        assert_eq!(
            stderr,
            format!(
                "nginx: [emerg] bind() to {address} failed (98: Address already in use), \"listen\" in {conf}:{listen}\n"
            )
        );
        assert!(is_running(master));
        assert_eq!(second.master(), None);
    }
}

#[test]
fn settings_that_a_running_process_cannot_take_are_named() {
    let site = Site::new();
    let address = free_address();
    let http = format!("server {{ listen {address}; }}");
    site.configure("worker_priority 0;", &http);
    let master = site.start();
    site.wait_until_served(address);
    site.configure("worker_priority 5; daemon off;", &http);
    send(master, Signal::Hangup);
    for setting in ["worker_priority", "daemon"] {
        site.wait_for_log(&format!(
            "[warn] {master}#{master}: \"{setting}\" has changed"
        ));
    }
    assert_eq!(get(address, "/").unwrap().status, 200);
}
