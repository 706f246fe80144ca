//! HTTP/2, spoken with curl, nghttp and h2load.

/// Header blocks beside another implementation.
mod hpack;
/// Windows that several answers share.
mod windows;

use crate::site::{Site, free_address, send, wait_until_ended};
use crate::tls::{ECDSA, certify, counters, curl};
use mill_http::h2::connection::{Connection, Event};
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use mill_sys::signal::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

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
    let mut stream = TcpStream::connect(site.clear).unwrap();
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

#[test]
fn the_load_generator_sends_several_requests_at_once_on_each_connection() {
    let site = Site::new();
    let [clear, secured] = [(); 2].map(|()| free_address());
    certify(&site, "a.example", &ECDSA);
    let content: Vec<u8> = (0..=250_u8).cycle().take(300_000).collect();
    fs::write(site.path("large"), content).unwrap();
    site.configure(
        "",
        &format!(
            "http2 on; http2_max_concurrent_streams 8; keepalive_requests 5000;
             server {{ listen {clear}; listen {secured} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key;
             location = /protocol {{ return 200 \"$server_protocol $http2\"; }} }}"
        ),
    );
    site.start();
    let large = site.path("large").display().to_string();
    fs::write(site.path("h2"), "HTTP/2.0 h2").unwrap();
    fs::write(site.path("h2c"), "HTTP/2.0 h2c").unwrap();
    let h2 = site.path("h2").display().to_string();
    let h2c = site.path("h2c").display().to_string();
    for (options, requests, connections) in [
        (
            format!("-n 300 -c 3 --streams 5 --expect {large} http://{clear}/large"),
            300,
            3,
        ),
        (
            format!("-n 300 -c 3 --streams 5 --expect {large} https://{secured}/large"),
            300,
            3,
        ),
        (
            format!("-n 500 -c 2 --h2 --expect {h2} https://{secured}/protocol"),
            500,
            2,
        ),
        // More at once than the server allows: they take turns.
        (
            format!("-n 2000 -c 2 --streams 50 --expect {h2c} http://{clear}/protocol"),
            2000,
            2,
        ),
        (
            format!(
                "-n 200 -c 2 --streams 3 --rate 2000 --body text --expect {h2c} http://{clear}/protocol"
            ),
            200,
            2,
        ),
    ] {
        let counted = counters(&options);
        let found = ["answered", "started", "connected"].map(|name| counted[name].as_u64());
        assert_eq!(
            found,
            [Some(requests), Some(requests), Some(connections)],
            "{options}: {counted}"
        );
    }
    // The server ends connections after 5000 requests: new ones are opened, and nothing is lost.
    let counted = counters(&format!(
        "-n 20000 -c 2 --streams 4 http://{clear}/protocol"
    ));
    let found = ["answered", "connected"].map(|name| counted[name].as_u64().unwrap());
    assert!(found[0] == 20_000 && found[1] >= 4, "{counted}");
}

#[test]
fn a_request_whose_content_is_not_read_is_over_with_its_answer() {
    let (site, address) = (Site::new(), free_address());
    site.configure(
        "",
        &format!(
            "http2 on; server {{ listen {address}; location = /status {{ stub_status; }} location / {{ return 200 answered; }} }}"
        ),
    );
    site.start();
    let mut client = Connection::client(Settings::default(), Limits::default());
    let stream = client.open().unwrap();
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n";
    client.emit_request(stream, b"http", head, false);
    client.emit_data(stream, b"content", true, usize::MAX);
    let mut connection = TcpStream::connect(address).unwrap();
    let (mut unread, mut ended) = (Vec::new(), false);
    while !ended {
        connection.write_all(client.output()).unwrap();
        client.output().clear();
        let mut bytes = [0; 4096];
        let len = connection.read(&mut bytes).unwrap();
        assert!(len > 0, "the server has closed the connection");
        unread.extend_from_slice(&bytes[..len]);
        loop {
            let (consumed, event) = client.on_bytes(&unread, 0);
            unread.drain(..consumed);
            match event {
                Event::NeedMore(_) => break,
                Event::Data { end, .. } => ended = end,
                Event::Reset { .. } | Event::Ended { .. } => panic!("{event:?}"),
                _ => {}
            }
        }
    }
    // It would be writing as long as it waits for content.
    let status = curl_clear(&format!("http://{address}/status"));
    assert!(status.contains("Writing: 1 "), "{status}");
}

fn curl_clear(url: &str) -> String {
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "20", url])
        .output();
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}

/// A report without its figures.
fn form(report: &[u8]) -> String {
    let report = String::from_utf8_lossy(report);
    let mut form = String::new();
    for line in report.lines() {
        let words = line.split_ascii_whitespace().map(|word| {
            let is_figure = word.starts_with(|first: char| first.is_ascii_digit() || first == '(');
            match word
                .trim_end_matches(|last: char| last.is_ascii_alphabetic() || "/%,)".contains(last))
            {
                number if is_figure && number.contains('.') => "FIGURE".to_owned(),
                _ if is_figure && word.ends_with("us") => "FIGURE".to_owned(),
                _ => word.to_owned(),
            }
        });
        form += &words.collect::<Vec<_>>().join(" ");
        form.push('\n');
    }
    form
}

#[test]
fn h2load_reports_in_the_form_of_nghttp2s() {
    let (site, address) = (Site::new(), free_address());
    fs::write(site.path("a.txt"), "content").unwrap();
    site.configure(
        "worker_processes 1;",
        &format!("http2 on; server {{ listen {address}; }}"),
    );
    site.start();
    let url = format!("http://{address}/a.txt");
    let run = |program: &str, first: &[&str], options: &str| {
        let output = Command::new(program)
            .args(first)
            .args(options.split(' '))
            .arg(&url)
            .output()
            .unwrap();
        form(&output.stdout)
    };
    for options in ["-n 200 -c 4 -m 5 -t 2", "-n 40 -c 4 --h1"] {
        let theirs = run("h2load", &[], options);
        let ours = run(env!("CARGO_BIN_EXE_millstream"), &["h2load"], options);
        let without_traffic = |form: &str| -> String {
            let lines = form.lines().filter(|line| !line.starts_with("traffic"));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            without_traffic(&ours),
            without_traffic(&theirs),
            "{options}"
        );
    }
}

/// Debian's interpreter, which has httpx (`setup/ensure test`).
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn httpx_gets_what_it_asks_for_at_once() {
    let library = Command::new(PYTHON)
        .args(["-c", "import httpx, h2"])
        .output();
    if !library.is_ok_and(|output| output.status.success()) {
        return;
    }
    let site = Site::new();
    let [address, behind] = [(); 2].map(|()| free_address());
    certify(&site, "a.example", &ECDSA);
    fs::write(
        site.path("large"),
        (0..=250_u8).cycle().take(251 * 8000).collect::<Vec<u8>>(),
    )
    .unwrap();
    site.configure(
        "",
        &format!(
            "server {{ listen {behind}; location / {{ return 200 $content_length; }} }}
             server {{ listen {address} ssl; http2 on; ssl_certificate a.example.pem; ssl_certificate_key a.example.key;
             location = /values {{ return 200 \"$http2 $args\"; }}
             location = /length {{ proxy_pass http://{behind}; }} }}"
        ),
    );
    site.start();
    let output = Command::new("timeout")
        .args([
            "60",
            PYTHON,
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/http2/client.py"),
        ])
        .arg(format!("https://{address}"))
        .arg(site.path("a.example.pem"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "all is well\n", "{}", site.error_log());
}

#[test]
fn websockets_on_streams_pass_to_servers_of_http1() {
    let library = Command::new(PYTHON).args(["-c", "import h2"]).output();
    if !library.is_ok_and(|output| output.status.success()) {
        return;
    }
    let site = Site::new();
    let [address, behind] = [(); 2].map(|()| free_address());
    // As in nginx's own documentation of WebSockets.
    site.configure(
        "",
        &format!(
            "map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
             log_format tunnels '$request_uri $status $server_protocol $http_upgrade $bytes_sent';
             server {{ listen {address}; http2 on; access_log {log} tunnels;
             location = /values {{ return 200 usual; }}
             location / {{ }}
             location ~ ^/(echo|wrong|plain)$ {{ proxy_pass http://{behind}; proxy_http_version 1.1;
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }} }}",
            log = site.path("tunnels.log").display(),
        ),
    );
    let master = site.start();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/process/http2/websocket.py"
    );
    let port = |address: SocketAddr| address.port().to_string();
    let mut server = Command::new(PYTHON)
        .args([script, "serve", &port(behind)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 7];
    server
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut word)
        .unwrap();
    let output = Command::new("timeout")
        .args(["50", PYTHON, script, "ask", &port(address)])
        .output();
    server.kill().unwrap();
    server.wait().unwrap();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "all is well\n", "{}", site.error_log());
    send(master, Signal::Quit);
    wait_until_ended(master);
    let log = fs::read_to_string(site.path("tunnels.log")).unwrap();
    let echoed = log
        .lines()
        .filter(|line| line.starts_with("/echo 200 HTTP/2.0 websocket 2048"));
    assert_eq!(echoed.count(), 3, "{log}");
}
