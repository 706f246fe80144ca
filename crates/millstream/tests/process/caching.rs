//! A cache in front of a server: all workers', over a reload, and what `status --cache` tells of it.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_for};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A server that numbers its answers, and how many it has given.
fn start_origin() -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let given = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&given);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let content = format!("answer {number}");
            let len = content.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{content}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, given)
}

/// What the cache says of a request.
fn cache_status(address: SocketAddr, path: &str) -> String {
    let output = Command::new("curl")
        .args(["-s", "-i", "--max-time", "20"])
        .arg(format!("http://{address}{path}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix("Cache-Status: "));
    found.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// What `millstream status` says.
fn status(master: Pid, option: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["status", &master.to_string()])
        .args(option)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until the status has this: a request is counted a moment after its client has the answer.
fn wait_for_status(master: Pid, option: &[&str], text: &str) {
    let mut last = String::new();
    wait_for(text, || {
        last = status(master, option);
        last.contains(text).then_some(())
    });
}

#[test]
fn a_cache_is_all_workers_goes_on_after_a_reload_and_tells_its_hits() {
    let (origin, given) = start_origin();
    let site = Site::new();
    let front = free_address();
    let directory = site.path("cache").display().to_string();
    let configure = |more: &str| {
        site.configure(
            "worker_processes 2;",
            &format!(
                "proxy_cache_path {directory} keys_zone=site:1m memory=8m;
                 server {{ listen {front} reuseport; location = /index.html {{ }}
                           location / {{ proxy_pass http://{origin}; proxy_cache site; proxy_cache_valid 200 1h;
                                         cache_status edge; proxy_cache_purge $arg_purge;
                                         proxy_cache_key $uri; {more} }} }}"
            ),
        );
    };
    configure("");
    let master = site.start();
    site.wait_until_served(front);
    assert_eq!(cache_status(front, "/a"), "edge;fwd=uri-miss;stored");
    // A connection each: the kernel gives them to both workers.
    let ask = || {
        for _ in 0..40 {
            assert_eq!(get(front, "/a").unwrap().content, b"answer 1");
        }
    };
    ask();
    configure("add_header X-Reloaded yes;");
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    ask();
    let hit = cache_status(front, "/a");
    assert!(hit.starts_with("edge;hit;ttl="), "{hit}");
    assert_eq!(given.load(Ordering::SeqCst), 1);
    wait_for_status(master, &["--cache"], "answers     hit 81 (");
    let text = status(master, &["--cache"]);
    assert!(
        text.contains("  largest ") && text.contains("  /a\n"),
        "{text}"
    );
    wait_for_status(
        master,
        &[],
        "cache         site: 81 of 82 requests hit (99%), 1 objects in",
    );
    wait_for_status(master, &["--json"], "\"caches\"");
    assert_eq!(get(front, "/a?purge=1").unwrap().status, 204);
    assert_eq!(get(front, "/a").unwrap().content, b"answer 2");
    wait_for_status(master, &["--cache"], "1 purged");
}
