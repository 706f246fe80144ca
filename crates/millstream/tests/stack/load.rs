//! Load over the stack, against nginx on kernel sockets.

use crate::namespace::{has, in_namespace, output_of, text_of};
use crate::nginx::Nginx;
use crate::server::{STACK, Site};
use mill_sys::interface;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

fn with_nginx(test: impl FnOnce(&Site) + Send) {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let _nginx = Nginx::start(&site, "server { listen 80; listen [::]:80; }");
        test(&site);
        assert!(interface::index("mill0").is_err(), "the device is gone");
    });
}

const TARGETS: [&str; 2] = ["http://10.77.0.1/", "http://[fd00::1]/"];

#[test]
fn ab_completes_all_requests_over_the_stack() {
    with_nginx(|_| {
        for target in TARGETS {
            for keep in ["-k", "-q"] {
                let arguments = [
                    "ab", "--stack", STACK, keep, "-n", "500", "-c", "10", target,
                ];
                let text = text_of(BINARY, &arguments);
                assert!(text.contains("Complete requests:      500"), "{text}");
                assert!(text.contains("Failed requests:        0"), "{text}");
            }
        }
    });
}

#[test]
fn wrk_counts_no_errors_over_the_stack() {
    with_nginx(|_| {
        for target in TARGETS {
            let target = format!("{target}large.bin");
            let arguments = ["wrk", "--stack", STACK, "-t1", "-c4", "-d1s", &target];
            let text = text_of(BINARY, &arguments);
            assert!(text.contains("Requests/sec"), "{text}");
            assert!(
                !text.contains("Socket errors") && !text.contains("Non-2xx"),
                "{text}"
            );
        }
    });
}

#[test]
fn two_threads_have_a_queue_of_the_device_each() {
    with_nginx(|_| {
        let target = TARGETS[0];
        let text = text_of(
            BINARY,
            &["wrk", "--stack", STACK, "-t2", "-c4", "-d1s", target],
        );
        assert!(text.contains("2 threads and 4 connections"), "{text}");
        assert!(!text.contains("Socket errors"), "{text}");
    });
}

#[test]
fn load_uses_the_one_thread_of_the_device_by_default() {
    with_nginx(|_| {
        let arguments = ["load", "--stack", STACK, "-c", "4", "-d", "1s", TARGETS[0]];
        let output = output_of(BINARY, &arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("4 connections, 1 thread,"), "{text}{why}");
        assert!(text.contains("+ 0 failed +"), "{text}{why}");
    });
}

#[test]
fn nginx_receives_the_content_sent_over_the_stack() {
    with_nginx(|site| {
        let body = site.path("large.bin");
        let body = body.to_str().unwrap();
        std::fs::write(body, vec![7; 900_000]).unwrap();
        let arguments = [
            "ab", "--stack", STACK, "-n", "20", "-c", "2", "-p", body, TARGETS[0],
        ];
        let text = text_of(BINARY, &arguments);
        // nginx reads the whole body, and answers 405.
        assert!(text.contains("Complete requests:      20"), "{text}");
        assert!(text.contains("Non-2xx responses:      20"), "{text}");
    });
}
