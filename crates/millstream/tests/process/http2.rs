//! HTTP/2, spoken with curl, nghttp and h2load.

use crate::site::{Site, free_address};
use crate::tls::{ECDSA, certify, curl};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

/// A site with HTTP/2 in clear and under TLS, and a server behind.
struct Http2Site {
    site: Site,
    clear: SocketAddr,
    tls: SocketAddr,
}

impl Http2Site {
    fn new() -> Self {
        let site = Site::new();
        let (clear, tls, behind) = (free_address(), free_address(), free_address());
        certify(&site, "a.example", &ECDSA);
        let content: Vec<u8> = (0..=250_u8).cycle().take(3_000_000).collect();
        fs::write(site.path("large"), content).unwrap();
        site.configure(
            "",
            &format!(
                "http2 on; open_file_cache max=100; client_max_body_size 10m; keepalive_requests 100000;
                 server {{ listen {clear}; listen {tls} ssl;
                 ssl_certificate a.example.pem; ssl_certificate_key a.example.key;
                 location = /values {{ return 200 \"$http2 $server_protocol $scheme $host $http_cookie\"; }}
                 location = /early {{ return 403; }}
                 location /whole/ {{ proxy_pass http://{behind}/; }}
                 location /streamed/ {{ proxy_pass http://{behind}/; proxy_request_buffering off;
                 proxy_http_version 1.1; }} }}
                 server {{ listen {behind};
                 location = /said {{ return 200 \"$content_length $http_x_coding\"; }}
                 location = /store {{ client_body_in_file_only on; client_body_temp_path {store};
                 proxy_set_header X-Coding $http_transfer_encoding; proxy_pass http://{behind}/said; }} }}",
                store = site.path("store").display(),
            ),
        );
        site.start();
        Self { site, clear, tls }
    }

    /// By prior knowledge, in clear.
    fn curl_clear(&self, path: &str, options: &[&str]) -> Vec<u8> {
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "20", "--http2-prior-knowledge"])
            .args(options)
            .arg(format!("http://{}{path}", self.clear))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let log = self.site.error_log();
        assert!(output.status.success(), "{stderr}\n{log}");
        output.stdout
    }

    fn curl_tls(&self, path: &str, options: &[&str]) -> Vec<u8> {
        curl(&self.site, "a.example", self.tls, path, options)
    }
}

#[test]
fn curl_gets_the_same_pages_by_both_versions_in_clear_and_under_tls() {
    let site = Http2Site::new();
    let cookies = ["-H", "Cookie: a=b; c=d"];
    assert_eq!(
        site.curl_clear("/values", &cookies),
        b"h2c HTTP/2.0 http 127.0.0.1 a=b; c=d"
    );
    assert_eq!(
        site.curl_tls("/values", &cookies),
        b"h2 HTTP/2.0 https a.example a=b; c=d"
    );
    assert_eq!(
        site.curl_tls("/values", &["--http1.1"]),
        b" HTTP/1.1 https a.example "
    );
    for _ in 0..3 {
        // The second one is a hot answer.
        assert_eq!(site.curl_clear("/index.html", &[]), b"hello\n");
        assert_eq!(site.curl_tls("/index.html", &[]), b"hello\n");
    }
    let large = fs::read(site.site.path("large")).unwrap();
    assert!(site.curl_clear("/large", &[]) == large);
    assert!(site.curl_tls("/large", &[]) == large);
    let part = site.curl_tls("/large", &["-r", "100-199"]);
    assert!(part == large[100..200]);
    let head = String::from_utf8(site.curl_tls("/index.html", &["-I"])).unwrap();
    assert!(
        head.starts_with("HTTP/2 200") && head.contains("content-length: 6\r\n"),
        "{head}"
    );
    assert!(!head.to_lowercase().contains("connection"), "{head}");
}

#[test]
fn uploads_reach_a_server_behind_whole() {
    let site = Http2Site::new();
    let file = format!("@{}", site.site.path("large").display());
    let send = ["--data-binary", &file];
    let unmeasured = ["-H", "Content-Length:", "--data-binary", &file];
    let large = fs::read(site.site.path("large")).unwrap();
    for (path, options, expected) in [
        ("/whole/store", &send[..], "3000000 "),
        ("/streamed/store", &send, "3000000 "),
        ("/whole/store", &unmeasured, "3000000 "),
        // Without a length it goes on in chunks.
        ("/streamed/store", &unmeasured, "3000000 chunked"),
    ] {
        let store = site.site.path("store");
        let by_tls = site.curl_tls(path, options);
        assert_eq!(
            String::from_utf8_lossy(&by_tls),
            expected,
            "{path} {options:?}"
        );
        assert_eq!(site.curl_clear(path, options), by_tls);
        let stored = fs::read_dir(store).unwrap();
        let stored = stored.map(|entry| {
            let path = entry.unwrap().path();
            let content = fs::read(&path).unwrap();
            fs::remove_file(path).unwrap();
            content
        });
        assert!(
            stored.collect::<Vec<_>>() == [&large[..], &large],
            "{path} {options:?}"
        );
    }
    // An answer that does not wait for the content.
    let early = site.curl_tls("/early", &["-i", "--data-binary", &file]);
    assert!(early.starts_with(b"HTTP/2 403"));
}

#[test]
fn h2load_gets_every_answer_of_many_streams() {
    let site = Http2Site::new();
    for (url, count) in [
        (format!("https://{}/index.html", site.tls), "20000"),
        (format!("http://{}/index.html", site.clear), "20000"),
        (format!("https://{}/large", site.tls), "40"),
    ] {
        let output = Command::new("timeout")
            .args(["60", "h2load", "-c", "8", "-m", "10", "-n", count, &url])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
        assert!(
            said.contains(&expected),
            "{url}: {said}\n{}",
            site.site.error_log()
        );
    }
}

#[test]
fn nghttp_has_urgent_streams_sent_first() {
    let site = Http2Site::new();
    let large = format!("http://{}/large", site.clear);
    let small = format!("http://{}/index.html", site.clear);
    let output = Command::new("timeout")
        .args(["20", "nghttp", "-nv", "-H", "priority: u=6", &large, &small])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let ends = said.matches("; END_STREAM").count();
    assert!(ends >= 2, "{said}");
}

#[test]
fn a_client_that_breaks_the_protocol_is_logged_and_told() {
    use std::io::{Read, Write};
    let site = Http2Site::new();
    let mut stream = std::net::TcpStream::connect(site.clear).unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    // SETTINGS, then DATA of a stream that was not begun.
    stream.write_all(b"\0\0\0\x04\0\0\0\0\0").unwrap();
    stream.write_all(b"\0\0\x01\0\0\0\0\0\x05a").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let goaway = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    assert!(answer.ends_with(goaway), "{answer:?}");
    site.site
        .wait_for_log("(PROTOCOL_ERROR) while processing HTTP/2 connection, client: 127.0.0.1");
}
