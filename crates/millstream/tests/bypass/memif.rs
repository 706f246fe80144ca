//! Server and load over shared memory, without a kernel between them.

use crate::namespace::{in_namespace, output_of, text_of};
use crate::server::{Server, Site, wait_for};
use crate::upgrade::is_running;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::process::Output;
use std::{fs, thread};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// The server's stack, which makes the socket, and the load's, for frames of so many bytes.
pub(crate) fn stacks(site: &Site, mtu: u32) -> [String; 2] {
    let socket = site.path("memif.sock");
    let socket = socket.display();
    [
        format!("memif:{socket},role=master,address=10.60.0.1/24,address=fd60::1/64,mtu={mtu}"),
        format!("memif:{socket},role=slave,address=10.60.0.2/24,address=fd60::2/64,mtu={mtu}"),
    ]
}

const TARGETS: [&str; 2] = ["http://10.60.0.1/", "http://[fd60::1]/"];

/// Small and large frames.
const MTUS: [u32; 3] = [1500, 9000, 65_521];

/// A server of two processes on one end, for each of these; `test` has the other end.
fn with_server(mtus: &[u32], test: impl Fn(&Site, &Server, &str) + Sync) {
    for mtu in mtus {
        in_namespace(|| {
            let site = Site::new();
            let [ours, theirs] = stacks(&site, *mtu);
            let listening = "server { listen 80; listen [::]:80; }";
            let conf = site.configure("worker_processes 1;", listening);
            let server = Server::configured(&site, &conf, &["--stack", &ours]);
            test(&site, &server, &theirs);
            // The server would wait for clients that have disappeared.
            assert!(server.end(Signal::Terminate).success());
        });
    }
}

fn ab(stack: &str, more: &[&str]) -> String {
    text_of(BINARY, &[&["ab", "--stack", stack], more].concat())
}

#[test]
fn requests_are_answered_with_and_without_keep_alive() {
    with_server(&MTUS, |_, _, stack| {
        for target in TARGETS {
            for keep in ["-k", "-q"] {
                let text = ab(stack, &[keep, "-n", "2000", "-c", "20", target]);
                assert!(text.contains("Complete requests:      2000"), "{text}");
                assert!(text.contains("Failed requests:        0"), "{text}");
            }
        }
    });
}

#[test]
fn large_answers_come_whole() {
    with_server(&MTUS, |site, _, stack| {
        let len = fs::metadata(site.path("large.bin")).unwrap().len();
        for target in TARGETS {
            let target = format!("{target}large.bin");
            // One after the other: ab counts an answer of another length than the first as failed.
            let text = ab(stack, &["-k", "-n", "4", "-c", "2", &target]);
            assert!(text.contains("Failed requests:        0"), "{text}");
            let transferred = format!("HTML transferred:       {} bytes", 4 * len);
            assert!(text.contains(&transferred), "{text}");
        }
    });
}

/// The peer's connection goes to the new process and back, and none of the clients' is lost.
#[test]
fn the_binary_is_changed_and_no_request_fails() {
    with_server(&MTUS[..1], |site, server, stack| {
        let load = thread::scope(|scope| {
            let load = scope.spawn(|| ab(stack, &["-n", "20000", "-c", "20", TARGETS[0]]));
            let master = || fs::read_to_string(site.path("pid")).unwrap_or_default();
            let old = master();
            server.signal(Signal::User2);
            wait_for(|| !master().is_empty() && master() != old);
            wait_for(|| site.error_log().matches("is in force").count() == 2);
            // The old binary's turn comes again when the new one ends, with handshakes under way.
            let new: i32 = master().trim().parse().unwrap();
            let new = Pid::new(new).unwrap();
            new.kill(Signal::Quit.number()).unwrap();
            wait_for(|| !is_running(new));
            load.join().unwrap()
        });
        assert!(load.contains("Complete requests:      20000"), "{load}");
        assert!(load.contains("Failed requests:        0"), "{load}");
    });
}

#[test]
fn load_that_is_killed_or_ends_makes_room_for_the_next() {
    with_server(&MTUS[..1], |_, _, stack| {
        for _ in 0..2 {
            let killed = [
                "-s", "KILL", "0.3", BINARY, "wrk", "--stack", stack, "-t1", "-c20", "-d10s",
                TARGETS[0],
            ];
            let Output { status, .. } = output_of("timeout", &killed);
            assert!(!status.success());
            let text = ab(stack, &["-k", "-n", "500", "-c", "10", TARGETS[0]]);
            assert!(text.contains("Failed requests:        0"), "{text}");
        }
    });
}

#[test]
fn a_worker_process_that_is_killed_is_replaced_at_the_same_socket() {
    with_server(&MTUS[..1], |site, server, stack| {
        let text = ab(stack, &["-n", "10", TARGETS[0]]);
        assert!(text.contains("Failed requests:        0"), "{text}");
        server.worker().kill(Signal::Kill.number()).unwrap();
        let in_force = "configuration 1 is in force";
        wait_for(|| site.error_log().matches(in_force).count() == 2);
        let text = ab(stack, &["-k", "-n", "500", "-c", "10", TARGETS[0]]);
        assert!(text.contains("Failed requests:        0"), "{text}");
    });
}
