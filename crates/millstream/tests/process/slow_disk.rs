//! Files on a disk that is slow, or does not answer: the requests that need it wait, and no others.

/// The disk.
mod fuse;

use crate::client::{Answer, Client};
use crate::site::{Site, free_address};
use fuse::Disk;
use mill_sys::clock;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

#[test]
fn requests_are_answered_while_others_wait_for_a_disk() {
    for http in ["", "sendfile on;", "open_file_cache max=9;"] {
        with_disk(http, "", Duration::ZERO, |disk, address| {
            let mut waiting: Vec<Client> = Vec::new();
            disk.set_answering(false);
            for path in ["/disk/0", "/disk/1", "/disk/absent", "/disk/"] {
                let mut client = Client::connect(address).unwrap();
                client.send(&request(path)).unwrap();
                waiting.push(client);
            }
            // A client that disconnects before the disk answers.
            let mut impatient = Client::connect(address).unwrap();
            impatient.send(&request("/disk/2")).unwrap();
            drop(impatient);
            let mut other = Client::connect(address).unwrap();
            for _ in 0..10 {
                let answer = other.get("/index.html").unwrap();
                assert_eq!((answer.status, &*answer.content), (200, &b"hello\n"[..]));
            }
            disk.set_answering(true);
            let mut answers = waiting.iter_mut().map(|client| client.answer().unwrap());
            for byte in [b'0', b'1'] {
                let Answer { status, content } = answers.next().unwrap();
                assert_eq!((status, content.len()), (200, FILE_BYTES), "{http}");
                assert!(content.iter().all(|other| *other == byte), "{http}");
            }
            assert_eq!(answers.next().unwrap().status, 404);
            assert_eq!(answers.next().unwrap().status, 200);
        });
    }
}

/// A disk that stops answering in the midst of a file.
#[test]
fn requests_are_answered_while_a_file_that_is_sent_waits_for_a_disk() {
    for http in ["", "sendfile on;"] {
        with_disk(http, "", Duration::ZERO, |disk, address| {
            let mut waiting = Client::connect(address).unwrap();
            disk.set_reads_left(4);
            waiting.send(&request("/disk/0")).unwrap();
            let (status, len) = waiting.head().unwrap();
            assert_eq!((status, len), (200, FILE_BYTES));
            disk.wait_until_asked();
            let mut other = Client::connect(address).unwrap();
            assert_eq!(other.get("/index.html").unwrap().status, 200);
            disk.set_answering(true);
            let content = waiting.content(len).unwrap();
            assert!(content.iter().all(|byte| *byte == b'0'), "{http}");
        });
    }
}

/// Prints the figures of docs/measurements/slow_disk.md.
#[test]
fn latency_of_requests_beside_a_slow_disk_is_shown() {
    for http in ["", "sendfile on;"] {
        with_disk(http, "", Duration::from_millis(5), |_, address| {
            let slow = std::thread::spawn(move || {
                for number in 0..20 {
                    let mut client = Client::connect(address).unwrap();
                    let answer = client.get(&format!("/disk/{number}")).unwrap();
                    assert_eq!(answer.content.len(), FILE_BYTES);
                }
            });
            let mut other = Client::connect(address).unwrap();
            let mut latencies = Vec::new();
            while !slow.is_finished() {
                let begun = clock::monotonic();
                other.get("/index.html").unwrap();
                latencies.push(clock::monotonic() - begun);
            }
            slow.join().unwrap();
            latencies.sort();
            let at = |share: usize| latencies[(latencies.len() - 1) * share / 1000].as_micros();
            let (p50, p99, max) = (at(500), at(990), at(1000));
            let count = latencies.len();
            println!(
                "slow disk, \"{http}\": {count} others, p50 {p50} us, p99 {p99} us, max {max} us"
            );
        });
    }
}

/// Runs a server with one worker, the disk at `/disk/`, and these servers.
pub(crate) fn with_disk(
    http: &str,
    servers: &str,
    delay: Duration,
    test: impl FnOnce(&Disk, SocketAddr) + Send,
) {
    // A thread of its own has a mount namespace of its own.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let site = Site::new();
            fs::create_dir(site.path("disk")).unwrap();
            let Some(disk) = Disk::mount(Path::new(&site.path("disk")), FILE_BYTES, delay) else {
                return;
            };
            let address = free_address();
            let server = format!(
                "{http} autoindex_exact_size off; keepalive_requests 100000000;
                 server {{ listen {address}; location /disk/ {{ autoindex on; }} }} {servers}"
            );
            site.configure("worker_processes 1;", &server);
            site.start();
            site.wait_until_served(address);
            test(&disk, address);
        });
    });
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.0\r\n\r\n").into_bytes()
}

/// More than a socket takes at once, and than the kernel reads ahead.
const FILE_BYTES: usize = 3 << 20;
