//! Reloads and an upgrade, with eight clients that lose nothing.

use crate::client::{Client, get};
use crate::site::{Site, free_address, send, wait_for, wait_until_ended};
use mill_sys::signal::Signal;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Repeats requests on one connection. A server that drains closes idle connections, which is no lost request: then,
/// and only after an answer on the same connection, it reconnects.
fn ask_on_one_connection(address: SocketAddr, done: &AtomicBool, answers: &AtomicU32) {
    while !done.load(Ordering::Relaxed) {
        let mut client = Client::connect(address).unwrap();
        let first = client.get("/").unwrap();
        assert_eq!(
            (first.status, first.content.as_slice()),
            (200, &b"hello\n"[..])
        );
        while !done.load(Ordering::Relaxed) {
            let Ok(answer) = client.get("/") else { break };
            assert_eq!(answer.status, 200);
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Repeats requests, each on a new connection.
fn ask_on_new_connections(address: SocketAddr, done: &AtomicBool, answers: &AtomicU32) {
    while !done.load(Ordering::Relaxed) {
        assert_eq!(get(address, "/").unwrap().status, 200);
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `act` with eight clients busy at `address`.
fn under_load(address: SocketAddr, act: impl FnOnce(&AtomicU32)) {
    let (done, answers) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ask_on_one_connection(address, &done, &answers));
            scope.spawn(|| ask_on_new_connections(address, &done, &answers));
        }
        // Also when `act` panics, else the scope would wait for the clients without end.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(&answers)));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_hundred_reloads_and_an_upgrade_under_load_fail_no_request() {
    let site = Site::new();
    let (address, second, third) = (free_address(), free_address(), free_address());
    let configure = |round: u32| {
        let more = match round % 3 {
            0 => String::new(),
            1 => format!("listen {second};"),
            _ => format!("listen {second}; listen {third} reuseport;"),
        };
        let http = format!("server {{ listen {address} reuseport; {more} }}");
        site.configure("worker_processes 2;", &http);
    };
    configure(0);
    let master = site.start();
    site.wait_until_served(address);
    under_load(address, |answers| {
        for round in 1..=100 {
            configure(round);
            send(master, Signal::Hangup);
            site.wait_for_log(&format!("configuration {} is in force", round + 1));
            if round % 3 == 2 {
                assert_eq!(get(third, "/").unwrap().status, 200);
            }
        }
        send(master, Signal::User2);
        let new = wait_for("the new pid file", || {
            site.master().filter(|pid| *pid != master)
        });
        site.worker(new, &[]);
        send(master, Signal::Quit);
        wait_until_ended(master);
        let seen = answers.load(Ordering::Relaxed);
        wait_for("more answers", || {
            (answers.load(Ordering::Relaxed) > seen + 100).then_some(())
        });
    });
}

#[test]
fn reloads_that_change_the_number_of_threads_fail_no_request() {
    let site = Site::new();
    let address = free_address();
    let configure = |round: u32| {
        let main = format!("worker_processes {};", 1 + round % 4);
        site.configure(&main, &format!("server {{ listen {address} reuseport; }}"));
    };
    configure(0);
    let master = site.start();
    site.wait_until_served(address);
    under_load(address, |_| {
        for round in 1..=50 {
            configure(round);
            send(master, Signal::Hangup);
            site.wait_for_log(&format!("configuration {} is in force", round + 1));
        }
    });
}
