//! Sockets from one configuration to the next.

use crate::client::{Client, get};
use crate::site::{Site, free_address, send, wait_for, worker_threads};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Sends a request without waiting for its answer.
fn queue(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).unwrap();
    client
        .send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    client
}

/// Stops and continues a process; stopped, it accepts nothing.
fn pause(pid: Pid, stop: bool) {
    let name = if stop { "-STOP" } else { "-CONT" };
    let status = std::process::Command::new("kill")
        .args([name, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Under one configuration, connections wait at a stopped worker process; it goes on under the other.
fn check_no_loss(before: (&str, &str), after: (&str, &str)) {
    let site = Site::new();
    let address = free_address();
    let http = |options: &str| format!("server {{ listen {address} {options}; }}");
    site.configure(before.0, &http(before.1));
    let master = site.start();
    let worker = site.worker(master, &[]);
    site.wait_until_served(address);
    pause(worker, true);
    let mut clients: Vec<Client> = (0..100).map(|_| queue(address)).collect();
    site.configure(after.0, &http(after.1));
    // The master logs this before it has read the configuration; the worker process gets the order when it continues.
    send(master, Signal::Hangup);
    site.wait_for_log(" reconfiguring\n");
    clients.extend((0..100).map(|_| queue(address)));
    pause(worker, false);
    for (number, client) in clients.iter_mut().enumerate() {
        let status = client.answer().map(|answer| answer.status);
        assert_eq!(
            status.unwrap(),
            200,
            "connection {number} of {before:?} to {after:?}"
        );
    }
    assert_eq!(site.worker(master, &[]), worker);
}

#[test]
fn fewer_threads_lose_no_connection_that_waits() {
    check_no_loss(
        ("worker_processes 3;", "reuseport"),
        ("worker_processes 1;", "reuseport"),
    );
    check_no_loss(("worker_processes 3;", ""), ("worker_processes 1;", ""));
}

#[test]
fn more_threads_lose_no_connection_that_waits() {
    check_no_loss(
        ("worker_processes 1;", "reuseport"),
        ("worker_processes 3;", "reuseport"),
    );
}

#[test]
fn reuseport_comes_and_goes_without_loss() {
    check_no_loss(
        ("worker_processes 2;", ""),
        ("worker_processes 2;", "reuseport"),
    );
    check_no_loss(
        ("worker_processes 2;", "reuseport"),
        ("worker_processes 2;", ""),
    );
}

#[test]
fn another_backlog_is_taken_in_place() {
    check_no_loss(("", "backlog=200"), ("", "backlog=400"));
}

#[test]
fn the_number_of_threads_follows_the_configuration() {
    let site = Site::new();
    let address = free_address();
    let http = format!("server {{ listen {address} reuseport; }}");
    site.configure("worker_processes 1;", &http);
    let master = site.start();
    let worker = site.worker(master, &[]);
    for count in [3, 2, 5, 1] {
        site.configure(&format!("worker_processes {count};"), &http);
        send(master, Signal::Hangup);
        wait_for("as many threads", || {
            (worker_threads(worker) == count).then_some(())
        });
        for _ in 0..20 {
            assert_eq!(get(address, "/").unwrap().status, 200);
        }
    }
}

#[test]
fn a_unix_socket_is_served_and_its_file_removed_at_the_end() {
    let site = Site::new();
    let (address, path) = (free_address(), site.path("socket"));
    let both = format!(
        "server {{ listen {address}; listen unix:{}; }}",
        path.display()
    );
    site.configure("", &both);
    let master = site.start();
    let ask = || {
        let mut stream = std::os::unix::net::UnixStream::connect(&path)?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<String, std::io::Error>(text)
    };
    assert!(ask().unwrap().ends_with("hello\n"));
    site.configure("", &format!("server {{ listen {address}; }}"));
    send(master, Signal::Hangup);
    wait_for("the socket's file to be removed", || {
        (!path.exists()).then_some(())
    });
    site.configure("", &both);
    send(master, Signal::Hangup);
    wait_for("the socket's file", || path.exists().then_some(()));
    wait_for("an answer", || ask().ok());
    send(master, Signal::Quit);
    wait_for("the socket's file to be removed", || {
        (!path.exists()).then_some(())
    });
}
