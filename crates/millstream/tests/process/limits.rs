//! Limits of requests over real sockets: over worker threads, over a reload, and for streams of HTTP/2.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_for};
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;

/// How many of so many requests, sent by eight clients at a time, were served; all others were refused.
fn served(address: SocketAddr, path: &str, each: usize) -> usize {
    thread::scope(|scope| {
        let client = || {
            let statuses = (0..each).map(|_| get(address, path).unwrap().status);
            let served = statuses.filter(|status| {
                assert!(matches!(status, 200 | 503), "{status}");
                *status == 200
            });
            served.count()
        };
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(client)).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    })
}

#[test]
fn a_rate_holds_exactly_over_worker_threads_and_over_a_reload() {
    let site = Site::new();
    let front = free_address();
    let http = format!(
        "limit_req_zone $arg_key zone=cold:1m rate=1r/m; limit_req_zone $remote_addr zone=hot:1m rate=1r/m;
         server {{ listen {front} reuseport;
             location /index.html {{ limit_req zone=cold burst=49 nodelay; }}
             location /hot/ {{ alias {}; open_file_cache max=9; limit_req zone=hot burst=49 nodelay; }} }}",
        site.path("").display()
    );
    site.configure("worker_processes 2;", &http);
    let master = site.start();
    site.wait_until_served(front);
    assert_eq!(served(front, "/index.html?key=a", 50), 50);
    assert_eq!(served(front, "/hot/index.html", 50), 50);
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    assert_eq!(served(front, "/index.html?key=a", 5), 0);
    assert_eq!(served(front, "/hot/index.html", 5), 0);
    assert!(
        site.error_log()
            .contains("limiting requests, excess: 50.000 by zone \"hot\"")
    );
}

/// The statuses of so many streams at a time on one connection of HTTP/2.
fn statuses(address: SocketAddr, path: &str, count: usize) -> Vec<u16> {
    let output = Command::new("nghttp")
        .args(["-n", "-s", "-t", "20", "-m", &count.to_string()])
        .arg(format!("http://{address}{path}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // A line for each: number, three times, status, size, path.
    let lines = text.lines().filter(|line| line.ends_with(path));
    let status = |line: &str| line.split_whitespace().nth(4)?.parse().ok();
    lines.filter_map(status).collect()
}

fn count(statuses: &[u16], wanted: u16) -> usize {
    statuses.iter().filter(|status| **status == wanted).count()
}

#[test]
fn each_stream_of_http2_is_a_request() {
    let site = Site::new();
    let (front, behind) = (free_address(), TcpListener::bind("127.0.0.1:0").unwrap());
    let http = format!(
        "http2 on; limit_req_zone $remote_addr zone=rate:1m rate=1r/m; limit_conn_zone $remote_addr zone=many:1m;
         server {{ listen {front};
             location /index.html {{ }}
             location /rate/ {{ alias {}; open_file_cache max=9; limit_req zone=rate burst=3 nodelay; }}
             location /many/ {{ limit_conn many 2; proxy_pass http://{}; }} }}",
        site.path("").display(),
        behind.local_addr().unwrap()
    );
    site.configure("", &http);
    site.start();
    site.wait_until_served(front);
    // Some of them would have had hot answers.
    let rate = statuses(front, "/rate/index.html", 10);
    assert_eq!((count(&rate, 200), count(&rate, 503)), (4, 6), "{rate:?}");
    thread::scope(|scope| {
        let origin = scope.spawn(|| {
            let mut asked: Vec<_> = (0..2).map(|_| behind.accept().unwrap().0).collect();
            wait_for("the other streams to be refused", || {
                let log = site.error_log();
                (log.matches("limiting connections by zone \"many\"").count() == 4).then_some(())
            });
            for stream in &mut asked {
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream
                    .write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
                    .unwrap();
            }
        });
        let many = statuses(front, "/many/a", 6);
        origin.join().unwrap();
        assert_eq!((count(&many, 200), count(&many, 503)), (2, 4), "{many:?}");
    });
}
