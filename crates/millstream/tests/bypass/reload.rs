//! Reloads under load: ports come and go, and no request fails.

use crate::client::Client;
use crate::namespace::{get, has, output_of};
use crate::others::Load;
use crate::server::{Server, Site, wait_for};
use crate::topology::{HOSTS, STACK, between, kernel_connections};
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const MAIN: &str = "worker_processes 1;";

#[test]
fn a_reload_adds_and_removes_ports_and_no_request_fails() {
    if !has("wrk") {
        println!("not tested: there is no wrk");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let always = "listen 80; listen [::]:80;";
        let conf = site.configure(MAIN, &format!("server {{ {always} listen 81; }}"));
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let worker = server.worker();
        let load = topology.at_client(|| Load::start(3));
        let fetch = |port: u16| {
            let url = format!("http://{}:{port}/", HOSTS[0]);
            topology.at_client(|| get(&url))
        };
        let is_refused = |port: u16| {
            let url = format!("http://{}:{port}/", HOSTS[0]);
            let output = topology.at_client(|| output_of("curl", &["-s", "-m2", &url]));
            output.status.code() == Some(CURL_COULD_NOT_CONNECT)
        };
        for (number, [added, removed]) in [[82, 81], [81, 82], [82, 81]].into_iter().enumerate() {
            assert!(fetch(removed).is_some() && is_refused(added));
            site.configure(MAIN, &format!("server {{ {always} listen {added}; }}"));
            server.signal(Signal::Hangup);
            let in_force = format!("configuration {} is in force", number + 2);
            wait_for(|| site.error_log().contains(&in_force));
            assert_eq!(fetch(added).as_deref(), Some("hello\n"), "{added}");
            wait_for(|| is_refused(removed));
        }
        assert_eq!(kernel_connections(80), "");
        assert_eq!(kernel_connections(82), "");
        let report = load.report();
        assert!(report.contains("Requests/sec"), "{report}");
        let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
        assert!(!has_errors, "{report}");
        assert_eq!(server.worker(), worker);
        assert!(server.end(Signal::Quit).success());
    });
}

/// Reloads one after the other, as fast as they come into force, each with other ports and another polling mode.
#[test]
fn a_hundred_reloads_fail_no_request() {
    if !has("wrk") {
        println!("not tested: there is no wrk");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let http = |number: usize| {
            let ports = [8001 + number % 3, 8001 + (number + 1) % 3];
            let [one, other] = ports.map(|port| format!("listen {port}; listen [::]:{port};"));
            format!("server {{ listen 80; listen [::]:80; {one} {other} }}")
        };
        let conf = site.configure(MAIN, &http(0));
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let worker = server.worker();
        let loads = topology.at_client(|| {
            let each = ["Connection: close", "Connection: keep-alive"];
            each.map(|connection| Load::with_header(connection, 120))
        });
        for number in 1..=100 {
            site.configure(MAIN, &http(number));
            server.signal(Signal::Hangup);
            let in_force = format!("configuration {} is in force", number + 1);
            wait_for(|| site.error_log().contains(&in_force));
            let url = format!("http://{}:{}/", HOSTS[number % 2], 8001 + number % 3);
            let answer = topology.at_client(|| get(&url));
            assert_eq!(answer.as_deref(), Some("hello\n"), "{number}");
        }
        for load in loads {
            let report = load.interrupt();
            assert!(report.contains("Requests/sec"), "{report}");
            let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
            assert!(!has_errors, "{report}");
        }
        assert_eq!(server.worker(), worker);
        assert_eq!(kernel_connections(80), "");
        assert!(server.end(Signal::Quit).success());
    });
}

#[test]
fn requests_in_progress_on_a_removed_port_are_finished() {
    between(1500, |topology| {
        let site = Site::new();
        let conf = site.configure(MAIN, "server { listen 80; listen 81; }");
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let at_81 = format!("{}:81", HOSTS[0]).parse().unwrap();
        let mut client = topology.at_client(|| Client::connect(at_81).unwrap());
        let request = b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n";
        client.send(request).unwrap();
        let (_, len) = client.head().unwrap();
        let first = client.content(100_000).unwrap();
        site.configure(MAIN, "server { listen 80; }");
        server.signal(Signal::Hangup);
        wait_for(|| site.error_log().contains("configuration 2 is in force"));
        // The kernel refuses new ones meanwhile.
        wait_for(|| topology.at_client(|| Client::connect(at_81).is_err()));
        let rest = client.content(len - first.len()).unwrap();
        let served = std::fs::read(site.path("large.bin")).unwrap();
        assert!(served == [first, rest].concat());
        drop(client);
        // The kernel's clients may use the port again.
        wait_for(|| {
            let Ok(listener) = TcpListener::bind("10.50.0.1:81") else {
                return false;
            };
            let mut near = topology.at_client(|| TcpStream::connect(at_81).unwrap());
            let (mut far, _) = listener.accept().unwrap();
            near.write_all(b"kernel").unwrap();
            far.read_exact(&mut [0; 6]).is_ok()
        });
        assert!(server.end(Signal::Quit).success());
    });
}

/// curl(1), exit codes: connection refused, or no answer.
const CURL_COULD_NOT_CONNECT: i32 = 7;
