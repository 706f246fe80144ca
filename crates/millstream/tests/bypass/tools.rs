//! Common clients: curl, wrk, ab, Python; each with both sizes of frames and both address families.

use crate::client::Client;
use crate::namespace::{has, output_of, text_of};
use crate::server::{Server, Site};
use crate::topology::{HOSTS, STACK, Topology, between, kernel_connections, serve};
use std::fs;

/// A server with a directory, and a tool at the client's side that must be installed. Both are tried with frames of one
/// buffer and of several.
fn with_server(tool: &str, test: impl Fn(&Topology, &Site) + Sync) {
    if !has(tool) {
        println!("not tested: there is no {tool}");
        return;
    }
    for mtu in [1500, 9000] {
        between(mtu, |topology| {
            let site = Site::new();
            let _server = Server::directory(&site.path(""), &["--stack", STACK]);
            topology.at_client(|| test(topology, &site));
        });
    }
}

#[test]
fn curl_gets_every_byte_of_twenty_megabytes() {
    with_server("curl", |_, site| {
        let large: Vec<u8> = (0..5_000_000_u32)
            .flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        fs::write(site.path("twenty.bin"), &large).unwrap();
        let fetched = site.path("fetched");
        let to = fetched.to_str().unwrap();
        for host in HOSTS {
            let url = format!("http://{host}/twenty.bin");
            text_of("curl", &["-sSfo", to, &url]);
            assert!(fs::read(&fetched).unwrap() == large, "{url}");
            let output = output_of("curl", &["-sSf", "-r", "1000-1099", &url]);
            assert_eq!(output.stdout, large[1000..1100], "{url}");
        }
    });
}

#[test]
fn curl_sends_a_body_that_is_read_to_its_end() {
    with_server("curl", |_, site| {
        let body = site.path("body");
        fs::write(&body, "x".repeat(900_000)).unwrap();
        let body = format!("@{}", body.display());
        for host in HOSTS {
            let url = format!("http://{host}/");
            let format = ["-sSo", "/dev/null", "-w", "%{http_code}"];
            let code = text_of(
                "curl",
                &[&format[..], &["--data-binary", &body, &url]].concat(),
            );
            assert_eq!(code, "405", "{url}");
        }
    });
}

#[test]
fn wrk_counts_no_errors() {
    with_server("wrk", |_, _| {
        for host in HOSTS {
            for close in ["X-Kept: yes", "Connection: close"] {
                let url = format!("http://{host}/");
                let text = text_of("wrk", &["-t1", "-c20", "-d1s", "-H", close, &url]);
                assert!(text.contains("Requests/sec"), "{text}");
                let has_errors = text.contains("Socket errors") || text.contains("Non-2xx");
                assert!(!has_errors, "{close}: {text}");
            }
        }
    });
}

#[test]
fn ab_completes_all_requests_with_and_without_keep_alive() {
    with_server("ab", |_, _| {
        for host in HOSTS {
            for keep in ["-k", "-q"] {
                let url = format!("http://{host}/");
                let text = text_of("ab", &["-q", keep, "-n", "2000", "-c", "20", &url]);
                assert!(text.contains("Complete requests:      2000"), "{text}");
                assert!(text.contains("Failed requests:        0"), "{text}");
            }
        }
    });
}

#[test]
fn python_keeps_its_connection() {
    with_server("python3", |_, site| {
        let script = "
import http.client, sys
expected = open(sys.argv[1], 'rb').read()
for host in sys.argv[2:]:
    connection = http.client.HTTPConnection(host, 80, timeout=10)
    for path, content in [('/large.bin', expected), ('/', b'hello\\n')] * 2:
        connection.request('GET', path)
        response = connection.getresponse()
        assert response.status == 200, response.status
        assert response.read() == content, path
    connection.request('POST', '/', body=b'x' * 100000)
    assert connection.getresponse().status == 405
print('ok')
";
        let large = site.path("large.bin");
        let mut arguments = vec!["-c", script, large.to_str().unwrap()];
        // Without the brackets of URLs.
        arguments.extend(HOSTS.map(|host| host.trim_matches(['[', ']'])));
        assert_eq!(text_of("python3", &arguments), "ok\n");
    });
}

#[test]
fn connections_are_none_of_the_kernels() {
    between(1500, |topology| {
        let site = Site::new();
        let _server = serve(&site);
        let addresses = HOSTS.map(|host| format!("{host}:80").parse().unwrap());
        let mut clients =
            addresses.map(|address| topology.at_client(|| Client::connect(address).unwrap()));
        for client in &mut clients {
            assert_eq!(client.get("/").unwrap().content, b"hello\n");
        }
        assert_eq!(kernel_connections(80), "", "of the server's kernel");
        let at_client = topology.at_client(|| text_of("ss", &["-Htn", "dport = :80"]));
        assert_eq!(
            at_client.matches("ESTAB").count(),
            HOSTS.len(),
            "{at_client}"
        );
    });
}

#[test]
fn frames_are_written_to_a_file_that_tcpdump_reads() {
    if !has("tcpdump") {
        println!("not tested: there is no tcpdump");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let file = site.path("frames.pcap");
        let file = file.to_str().unwrap();
        let arguments = ["--stack", STACK, "--pcap", file];
        let server = Server::directory(&site.path(""), &arguments);
        for host in HOSTS {
            let url = format!("http://{host}/large.bin");
            topology.at_client(|| text_of("curl", &["-sSfo", "/dev/null", &url]));
        }
        assert!(server.end(mill_sys::signal::Signal::Quit).success());
        let text = text_of("tcpdump", &["-nvvr", file]);
        assert!(text.contains("10.50.0.1.80 > 10.50.0.2."), "{text}");
        for bad in ["[bad", "malformed", "invalid", "truncated"] {
            assert_eq!(text.lines().find(|line| line.contains(bad)), None, "{bad}");
        }
    });
}
