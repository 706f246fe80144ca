//! How a memif's two ends connect and disconnect, and the messages to users.

use crate::namespace::{alone, in_namespace, output_of, text_of};
use crate::server::{Server, Site, wait_for};
use mill_sys::clock;
use mill_sys::signal::Signal;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

const TARGET: &str = "http://10.61.0.1/";

/// One end of the socket of a site.
fn end_of(site: &Site, name: &str, role: &str, host: u8, more: &str) -> String {
    let socket = site.path(name);
    let socket = socket.display();
    format!("memif:{socket},role={role},address=10.61.0.{host}/24{more}")
}

/// A server on one end; `test` has the other. Alone, since the time is measured that it takes.
fn with_server(more: &str, test: impl Fn(&Site, Server, &str) + Send + Sync) {
    alone(|| {
        in_namespace(|| {
            let site = Site::new();
            let conf = site.configure("worker_processes 1;", "server { listen 80; }");
            let ours = end_of(&site, "memif.sock", "master", 1, more);
            let server = Server::configured(&site, &conf, &["--stack", &ours]);
            test(&site, server, &end_of(&site, "memif.sock", "slave", 2, ""));
        })
    });
}

fn took(act: impl FnOnce()) -> Duration {
    let began = clock::monotonic();
    act();
    clock::monotonic() - began
}

fn stderr_of(arguments: &[&str]) -> String {
    String::from_utf8_lossy(&output_of(BINARY, arguments).stderr).into_owned()
}

/// An ARP request sent before there is a peer would only be repeated after a second.
#[test]
fn the_first_request_does_not_wait() {
    with_server("", |_, _, stack| {
        let arguments = ["ab", "--stack", stack, "-n", "1", "-c", "1", TARGET];
        let all = took(|| {
            for _ in 0..3 {
                text_of(BINARY, &arguments);
            }
        });
        // Each starts a process, and may wait for its connection's last segments.
        assert!(all < Duration::from_millis(2700), "{all:?}");
    });
}

/// The server would wait for half-closed connections for more than a minute.
#[test]
fn a_server_whose_load_is_gone_ends_at_once() {
    for kind in ["-k", "-q"] {
        with_server("", |site, server, stack| {
            let words = [
                "ab", "--stack", stack, kind, "-n", "500", "-c", "50", TARGET,
            ];
            text_of(BINARY, &words);
            // And with a client that sends nothing any more.
            let killed = [
                "-s", "KILL", "0.5", BINARY, "wrk", "--stack", stack, "-t1", "-c20", "-d10s",
                TARGET,
            ];
            output_of("timeout", &killed);
            wait_for(|| site.error_log().matches("the peer is gone").count() == 2);
            let all = took(|| assert!(server.end(Signal::Quit).success()));
            assert!(all < Duration::from_secs(2), "{all:?}");
        });
    }
}

#[test]
fn an_interrupt_is_followed_by_a_report() {
    with_server("", |_, _, stack| {
        for spin in ["interrupt", "spin"] {
            let stack = format!("{stack},polling={spin}");
            let interrupted = [
                "-s", "INT", "2", BINARY, "wrk", "--stack", &stack, "-t1", "-c20", "-d20s", TARGET,
            ];
            let output = output_of("timeout", &interrupted);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("Requests/sec:"), "{text}");
            assert!(!text.contains("Requests/sec:      0.00"), "{text}");
        }
    });
}

#[test]
fn help_and_typing_errors_make_no_device() {
    in_namespace(|| {
        let site = Site::new();
        let stack = end_of(&site, "none.sock", "master", 1, "");
        for words in [
            &["wrk", "--help"][..],
            &["wrk", "--nonsense"],
            &["load", "--help"],
            &["load", "--nonsense", TARGET],
            &["ab", "-h"],
            &["load", "--processes", "2", "-n", "1", TARGET],
        ] {
            output_of(BINARY, &[&["--stack", &stack], words].concat());
            output_of(BINARY, &[words, &["--stack", &stack]].concat());
            assert!(!site.path("none.sock").exists(), "{words:?}");
        }
    });
}

#[test]
fn several_processes_can_not_have_one_device() {
    in_namespace(|| {
        let site = Site::new();
        let stack = end_of(&site, "none.sock", "slave", 2, "");
        let said = stderr_of(&[
            "load",
            "--processes",
            "2",
            "-n",
            "1",
            "--stack",
            &stack,
            TARGET,
        ]);
        let expected = "millstream load: a memif can be in one process only: with \"--stack\" load is made by one\n";
        assert_eq!(said, expected);
    });
}

#[test]
fn the_reason_why_the_ends_do_not_connect_is_reported() {
    with_server(",secret=sesame", |site, server, stack| {
        let ask = |stack: &str| {
            let words = ["load", "-q", "-n1", "-c1", "--timeout", "300ms", TARGET];
            stderr_of(&[&words[..], &["--stack", stack]].concat())
        };
        let check = |stack: &str, expected: &str| {
            let said = ask(stack);
            assert!(said.contains(expected), "{said}");
        };
        check(stack, "no connection to the peer: the peer says: ");
        check(
            &format!("{stack},secret=other"),
            "no connection to the peer: ",
        );
        let nowhere = end_of(site, "nobody.sock", "slave", 2, "");
        check(
            &nowhere,
            "nobody.sock: no process listens at this socket yet, waiting\n",
        );
        let knowing = format!("{stack},secret=sesame");
        let check_silence = |stack: &str| {
            let said = ask(stack);
            assert!(!said.contains("peer") && !said.contains("socket"), "{said}");
        };
        check_silence(&knowing);
        let other_rings = format!("{knowing},rings=4,ring-size=64,buffer=4k");
        check_silence(&other_rings);
        assert!(server.end(Signal::Quit).success());
        let log = site.error_log();
        for expected in ["no connection to the peer: ", "the peer is gone: "] {
            assert!(log.contains(expected), "{expected}: {log}");
        }
        assert!(!log.contains("sesame"), "{log}");
    });
}
