//! Common clients: curl, wrk, ab, Python.

use crate::namespace::{has, in_namespace, output_of, text_of};
use crate::server::{STACK, Server, Site};
use std::fs;

/// A server with a directory, and a tool that must be installed.
fn with_server(tool: &str, arguments: &[&str], test: impl FnOnce(&Site) + Send) {
    if !has(tool) {
        println!("not tested: there is no {tool}");
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let mut all = vec!["--stack", STACK];
        all.extend_from_slice(arguments);
        let _server = Server::directory(&site.path(""), &all);
        test(&site);
    });
}

const HOSTS: [&str; 2] = ["10.77.0.2", "[fd00::2]"];

#[test]
fn curl_gets_every_byte() {
    with_server("curl", &[], |site| {
        let expected = fs::read(site.path("large.bin")).unwrap();
        let fetched = site.path("fetched");
        let fetched = fetched.to_str().unwrap();
        for host in HOSTS {
            let url = format!("http://{host}/large.bin");
            text_of("curl", &["-sSfo", fetched, &url]);
            assert!(fs::read(fetched).unwrap() == expected, "{url}");
            let output = output_of("curl", &["-sSf", "-r", "1000-1099", &url]);
            assert_eq!(output.stdout, expected[1000..1100], "{url}");
        }
    });
}

#[test]
fn loopback_stays_with_the_kernel() {
    with_server("curl", &[], |_| {
        assert_eq!(text_of("curl", &["-sSf", "http://127.0.0.1/"]), "hello\n");
        // The stack refuses an unserved port, as the kernel does.
        for host in ["10.77.0.2:81", "127.0.0.1:81"] {
            let output = output_of("curl", &["-s", &format!("http://{host}/")]);
            assert_eq!(output.status.code(), Some(7), "{host}");
        }
    });
}

#[test]
fn curl_posts_a_body_that_is_read_to_its_end() {
    with_server("curl", &[], |site| {
        fs::write(site.path("body"), "x".repeat(200_000)).unwrap();
        let post = |name: &str| {
            let body = format!("@{}", site.path(name).display());
            let shown = ["-sSo", "/dev/null", "-w", "%{http_code}"];
            let sent = ["--data-binary", &body, "http://10.77.0.2/"];
            text_of("curl", &[&shown[..], &sent].concat())
        };
        assert_eq!(post("large.bin"), "413", "1 MB is the limit, as in nginx");
        assert_eq!(post("body"), "405");
    });
}

#[test]
fn a_machine_answers_pings() {
    with_server("ping", &[], |_| {
        for host in ["10.77.0.2", "fd00::2"] {
            let text = text_of("ping", &["-nc", "2", "-i", "0.01", "-s", "3000", host]);
            assert!(text.contains("2 received"), "{text}");
        }
    });
}

#[test]
fn wrk_counts_no_errors() {
    with_server("wrk", &[], |_| {
        for host in HOSTS {
            let text = text_of("wrk", &["-t1", "-c10", "-d1s", &format!("http://{host}/")]);
            assert!(text.contains("Requests/sec"), "{text}");
            assert!(
                !text.contains("Socket errors") && !text.contains("Non-2xx"),
                "{text}"
            );
        }
    });
}

#[test]
fn ab_completes_all_requests_with_and_without_keep_alive() {
    with_server("ab", &[], |_| {
        for host in HOSTS {
            for keep in ["-k", "-q"] {
                let url = format!("http://{host}/");
                let text = text_of("ab", &["-q", keep, "-n", "1000", "-c", "20", &url]);
                assert!(text.contains("Complete requests:      1000"), "{text}");
                assert!(text.contains("Failed requests:        0"), "{text}");
            }
        }
    });
}

#[test]
fn python_keeps_its_connection() {
    with_server("python3", &[], |site| {
        let script = "
import http.client, sys
expected = open(sys.argv[1], 'rb').read()
for host in ['10.77.0.2', 'fd00::2']:
    connection = http.client.HTTPConnection(host, 80, timeout=10)
    for _ in range(3):
        connection.request('GET', '/large.bin')
        response = connection.getresponse()
        assert response.status == 200, response.status
        assert response.read() == expected
    connection.request('POST', '/', body=b'x' * 100000)
    assert connection.getresponse().status == 405
print('ok')
";
        let large = site.path("large.bin");
        let text = text_of("python3", &["-c", script, large.to_str().unwrap()]);
        assert_eq!(text, "ok\n");
    });
}

#[test]
fn frames_are_written_to_a_file_that_tcpdump_reads() {
    let path = std::env::temp_dir().join(format!("mill-tools-{}.pcap", std::process::id()));
    let file = path.to_str().unwrap();
    with_server("tcpdump", &["--pcap", file], |_| {
        for host in HOSTS {
            text_of(
                "curl",
                &["-sSfo", "/dev/null", &format!("http://{host}/large.bin")],
            );
        }
        let text = text_of("tcpdump", &["-nvvr", file]);
        assert!(text.contains("(correct)"), "{text}");
        for bad in [
            "incorrect",
            " bad ",
            "[bad",
            "malformed",
            "invalid",
            "truncated",
        ] {
            assert_eq!(text.lines().find(|line| line.contains(bad)), None, "{bad}");
        }
    });
    // Without the right to make namespaces there is none.
    let _ = fs::remove_file(path);
}
