//! `proxy_http_version 2`, with nginx and Millstream behind.

use crate::proxy_tls::Nginx;
use crate::site::{Site, free_address, wait_for};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

/// nginx behind: few requests a connection, few streams at once.
fn nginx(site: &Site, behind: SocketAddr, length: SocketAddr) -> Nginx {
    let folder = site.path("").display().to_string();
    let text = format!(
        "daemon off; master_process off; pid {folder}/behind.pid; error_log {folder}/behind.log; events {{ }}
         http {{ access_log off; client_max_body_size 0; client_body_temp_path {folder}/stored;
         server {{ listen {behind} http2; root {folder}/html; keepalive_requests 7; http2_max_concurrent_streams 3;
         location = /values {{ return 200 \"$server_protocol $http_host $http_x_a $http_te\"; }}
         location = /length {{ client_body_in_file_only on; proxy_pass http://{length}; }} }}
         server {{ listen {length}; location / {{ return 200 $content_length; }} }} }}"
    );
    fs::write(site.path("behind.conf"), text).unwrap();
    let nginx = Command::new("nginx")
        .arg("-c")
        .arg(site.path("behind.conf"))
        .stderr(Stdio::null())
        .spawn();
    let ended = Nginx(nginx.unwrap());
    wait_for("nginx", || TcpStream::connect(behind).ok());
    ended
}

fn curl(options: &[&str], url: &str) -> Vec<u8> {
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "30"])
        .args(options)
        .arg(url)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{url} {options:?}: {stderr}");
    output.stdout
}

#[test]
fn requests_and_contents_pass_both_ways() {
    let site = Site::new();
    let [front, behind, length] = [(); 3].map(|()| free_address());
    let content: Vec<u8> = (0..=250_u8).cycle().take(3_000_000).collect();
    fs::create_dir_all(site.path("html")).unwrap();
    fs::write(site.path("html/large"), &content).unwrap();
    let _nginx = nginx(&site, behind, length);
    site.configure(
        "",
        &format!(
            "client_max_body_size 0; server {{ listen {front}; http2 on; proxy_http_version 2;
             location / {{ proxy_pass http://{behind}; proxy_set_header x-a b; }}
             location /limited/ {{ proxy_pass http://{behind}/; proxy_request_buffering off; client_max_body_size 100k; }}
             location /at_once/ {{ proxy_pass http://{behind}/; proxy_request_buffering off; proxy_buffering off; }} }}"
        ),
    );
    site.start();
    let base = format!("http://{front}");
    let file = site.path("html/large").display().to_string();
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let values = curl(&[version], &format!("{base}/values"));
        assert_eq!(
            String::from_utf8_lossy(&values),
            format!("HTTP/2.0 {behind} b ")
        );
        let asked = curl(&[version, "-H", "TE: trailers"], &format!("{base}/values"));
        assert_eq!(
            String::from_utf8_lossy(&asked),
            format!("HTTP/2.0 {behind} b trailers")
        );
        for path in ["", "/at_once"] {
            assert!(
                curl(&[version], &format!("{base}{path}/large")) == content,
                "{version} {path}"
            );
            let sent = curl(&[version, "-T", &file], &format!("{base}{path}/length"));
            assert_eq!(
                String::from_utf8_lossy(&sent),
                "3000000",
                "{version} {path}"
            );
            let head = curl(&[version, "-I"], &format!("{base}{path}/large"));
            assert!(
                String::from_utf8_lossy(&head)
                    .to_ascii_lowercase()
                    .contains("content-length: 3000000")
            );
        }
    }
    // Content without a length that goes both ways at once is counted as well.
    let sent = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "20",
            "--http2-prior-knowledge",
            "-T",
            "-",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
        ])
        .arg(format!("{base}/limited/length"))
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&sent.stdout), "413");
    let chunked = curl(
        &["-H", "Transfer-Encoding: chunked", "-T", &file],
        &format!("{base}/at_once/length"),
    );
    assert_eq!(String::from_utf8_lossy(&chunked), "3000000");
}

#[test]
fn no_request_is_lost_where_connections_carry_few_and_few_at_once() {
    let site = Site::new();
    let [front, behind, length] = [(); 3].map(|()| free_address());
    let _nginx = nginx(&site, behind, length);
    site.configure(
        "worker_processes 1;",
        &format!(
            "server {{ listen {front}; location / {{ proxy_pass http://{behind}; proxy_http_version 2; }} }}"
        ),
    );
    site.start();
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["load", "-c", "20", "-n", "2000"])
        .arg(format!("http://{front}/values"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "2,000 started = 2,000 answered + 0 failed";
    assert!(text.contains(expected), "{text}\n{}", site.error_log());
    let log = site.error_log();
    assert!(!log.contains("[error]"), "{log}");
}

#[test]
fn a_server_that_leaves_within_an_answer_cuts_it_and_a_gone_one_is_a_bad_gateway() {
    let site = Site::new();
    let [front, behind, length] = [(); 3].map(|()| free_address());
    let nginx = nginx(&site, behind, length);
    fs::create_dir_all(site.path("html")).unwrap();
    fs::write(site.path("html/large"), vec![7; 30_000_000]).unwrap();
    site.configure(
        "",
        &format!(
            "server {{ listen {front}; location / {{ proxy_pass http://{behind}; proxy_http_version 2; proxy_buffering off; }} }}"
        ),
    );
    site.start();
    let mut slow = Command::new("curl")
        .args(["-sS", "--max-time", "20", "--limit-rate", "200k", "-o"])
        .arg(site.path("got"))
        .arg(format!("http://{front}/large"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = || {
        fs::metadata(site.path("got"))
            .ok()
            .filter(|file| file.len() > 0)
    };
    wait_for("a part of the answer", begun);
    drop(nginx);
    let status = slow.wait().unwrap();
    assert_eq!(
        status.code(),
        Some(18),
        "the answer is cut, and curl is told so"
    );
    let gone = curl(
        &["-w", "%{http_code}", "-o", "/dev/null"],
        &format!("http://{front}/values"),
    );
    assert_eq!(String::from_utf8_lossy(&gone), "502");
}
