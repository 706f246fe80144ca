//! Load over AF_XDP, against nginx on kernel sockets: the generator's counts are compared with nginx's log.

use crate::namespace::{has, output_of, text_of};
use crate::nginx::Nginx;
use crate::server::{Site, wait_for};
use crate::topology::{between, ip, is_steered, kernel_connections};
use std::fs;

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// The stack of the load, on the interface that servers have in other tests; nginx is at the other end.
const STACK: &str = "af_xdp:mill0";

const TARGETS: [&str; 2] = ["http://10.50.0.2/", "http://[fd50::2]/"];

fn with_nginx(mtu: u16, test: impl FnOnce(&Site) + Send) {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between(mtu, |topology| {
        let site = Site::new();
        let log = site.path("access.log");
        let servers = format!(
            "log_format bytes '$remote_addr $body_bytes_sent';\n\
             server {{ listen 80; listen [::]:80; keepalive_requests 100000; access_log {} bytes; }}",
            log.display()
        );
        let _nginx = topology.at_client(|| Nginx::start(&site, &servers));
        // A log line may be written after the answer was received.
        wait_for(|| fs::metadata(&log).unwrap().len() > 0);
        fs::write(&log, "").unwrap();
        test(&site);
        assert!(!is_steered(), "the interface is the kernel's again");
        // Nothing is left of it: the kernel has the interface as before.
        ip("link set mill0 up");
    });
}

/// What nginx has sent, once it is at least this: answers, and bytes of their content.
fn logged(site: &Site, answers_min: u64) -> (u64, u64) {
    let read = || fs::read_to_string(site.path("access.log")).unwrap();
    wait_for(|| read().lines().count() as u64 >= answers_min);
    let log = read();
    let mut bytes = 0;
    for line in log.lines() {
        let (from, len) = line.split_once(' ').unwrap();
        assert!(["10.50.0.1", "fd50::1"].contains(&from), "{line}");
        bytes += len.parse::<u64>().unwrap();
    }
    fs::write(site.path("access.log"), "").unwrap();
    (log.lines().count() as u64, bytes)
}

/// The number after a word in a report.
fn figure(report: &str, word: &str) -> u64 {
    let (_, rest) = report
        .split_once(word)
        .unwrap_or_else(|| panic!("{word} in {report}"));
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

#[test]
fn ab_counts_what_nginx_counts() {
    for mtu in [1500, 9000] {
        with_nginx(mtu, |site| {
            for target in TARGETS {
                for (keep, path, count) in
                    [("-k", "", 2000), ("-q", "", 500), ("-k", "large.bin", 3)]
                {
                    let (count_text, target) = (count.to_string(), format!("{target}{path}"));
                    let arguments = [
                        "ab",
                        "--stack",
                        STACK,
                        keep,
                        "-n",
                        &count_text,
                        "-c",
                        "3",
                        &target,
                    ];
                    let text = text_of(BINARY, &arguments);
                    assert_eq!(figure(&text, "Complete requests:"), count, "{text}");
                    assert_eq!(figure(&text, "Failed requests:"), 0, "{text}");
                    let (answers, bytes) = logged(site, count);
                    assert_eq!(answers, count, "{target}");
                    assert_eq!(figure(&text, "HTML transferred:"), bytes, "{target}");
                }
            }
        });
    }
}

#[test]
fn wrk_counts_no_errors_and_no_more_than_nginx() {
    with_nginx(1500, |site| {
        for target in TARGETS {
            let arguments = ["wrk", "--stack", STACK, "-t1", "-c20", "-d1s", target];
            let text = text_of(BINARY, &arguments);
            let has_errors = text.contains("Socket errors") || text.contains("Non-2xx");
            assert!(!has_errors, "{text}");
            let line = text
                .lines()
                .find(|line| line.contains(" requests in "))
                .unwrap();
            let counted: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
            let (answers, _) = logged(site, counted);
            let unread = answers - counted;
            assert!(counted > 0 && unread <= 20, "{counted} of {answers}");
        }
    });
}

#[test]
fn load_opens_connections_by_ports_of_its_own() {
    with_nginx(1500, |site| {
        let arguments = ["load", "--stack", STACK, "-c", "4", "-d", "1s", TARGETS[0]];
        // Its verdict tells whether the machine was quiet enough for the rate to be valid, which does not matter here.
        let output = output_of(BINARY, &arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("+ 0 failed +"), "{text}");
        assert!(logged(site, 100).0 > 100, "{text}");
        assert_eq!(kernel_connections(80), "");
    });
}

#[test]
fn nginx_receives_the_content_sent_over_the_stack() {
    with_nginx(1500, |site| {
        let body = site.path("body");
        fs::write(&body, vec![7; 900_000]).unwrap();
        let body = body.to_str().unwrap();
        let arguments = [
            "ab", "--stack", STACK, "-n", "20", "-c", "2", "-p", body, TARGETS[0],
        ];
        let text = text_of(BINARY, &arguments);
        assert!(text.contains("Non-2xx responses:      20"), "{text}");
        assert_eq!(logged(site, 20).0, 20);
    });
}

/// A connection from such a port would never get an answer: the frames go to the kernel.
#[test]
fn connections_are_opened_from_no_port_that_the_kernel_uses() {
    with_nginx(1500, |_| {
        let taken = [20_000, 20_003, 20_004, 20_007]
            .map(|port| std::net::TcpListener::bind(("0.0.0.0", port)).unwrap());
        let stack = format!("{STACK},ports=20000-20009");
        let arguments = [
            "ab", "--stack", &stack, "-q", "-n", "60", "-c", "3", TARGETS[0],
        ];
        let text = text_of(BINARY, &arguments);
        assert!(text.contains("Complete requests:      60"), "{text}");
        assert!(text.contains("Failed requests:        0"), "{text}");
        drop(taken);
    });
}
