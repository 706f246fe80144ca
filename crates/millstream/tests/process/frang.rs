//! Limits of clients over real sockets: HTTP/2, TLS, and what the status tells.

use crate::site::{Site, free_address, wait_for};
use crate::tls::{ECDSA, certify};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// Statuses of several requests of HTTP/2, over one connection as long as that is open.
fn statuses(address: SocketAddr, count: usize) -> Vec<String> {
    let mut curl = Command::new("curl");
    curl.args(["-sk", "--http2", "--max-time", "20", "-w", "%{http_code}\n"]);
    for _ in 0..count {
        curl.args(["-o", "/dev/null", &format!("https://{address}/index.html")]);
    }
    let output = curl.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(String::from).collect()
}

/// A server with HTTP/2 under TLS: curl 7.88 does not use a connection in clear twice.
fn server(site: &Site, address: SocketAddr) -> String {
    certify(site, "a.example", &ECDSA);
    format!(
        "http2 on; server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key; }}"
    )
}

#[test]
fn requests_of_http2_count_like_others_also_where_answers_are_kept() {
    let (site, address) = (Site::new(), free_address());
    let server = server(&site, address);
    // A minute: however slow the machine is.
    site.configure(
        "",
        &format!("open_file_cache max=9; frang {{ request_rate 6 60s; }} {server}"),
    );
    site.start();
    let found = statuses(address, 8);
    assert_eq!(
        found,
        ["200", "200", "200", "200", "200", "200", "403", "403"]
    );
    assert!(
        site.error_log()
            .contains("limiting client by \"request_rate\" of frang: 7, and 6 is the most")
    );
}

#[test]
fn a_client_of_http2_that_is_blocked_is_reset_and_listed() {
    let (site, address) = (Site::new(), free_address());
    let server = server(&site, address);
    let limits = "frang { request_rate 3 60s; ip_block 1h; whitelist ::1; }";
    site.configure("", &format!("{limits} {server}"));
    let master = site.start();
    let found = statuses(address, 5);
    assert_eq!(found, ["200", "200", "200", "000", "000"]);
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["status", &master.number().to_string(), "--blocks"])
        .output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap();
    let line = text.lines().find(|line| line.starts_with("127.0.0.1 "));
    assert!(
        line.is_some_and(|line| line.ends_with("request_rate")),
        "{text}"
    );
}

#[test]
fn handshakes_are_limited_and_those_that_are_broken_off_too() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    site.configure(
        "",
        &format!(
            "frang {{ tls_connection_rate 3; tls_incomplete_connection_rate 3; }}
             server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key; }}"
        ),
    );
    site.start();
    // Eight at once, until a second had more than three: the machine may be busy.
    let begin = || -> Child {
        let mut curl = Command::new("curl");
        curl.args(["-sk", "--max-time", "20", "-o", "/dev/null"]);
        curl.arg(format!("https://{address}/index.html"));
        curl.stdout(Stdio::null()).spawn().unwrap()
    };
    let seen = (0..30).any(|_| {
        let all: Vec<Child> = (0..8).map(|_| begin()).collect();
        for mut child in all {
            child.wait().unwrap();
        }
        site.error_log()
            .contains("\"tls_connection_rate\" of frang: 4, and 3 is the most")
    });
    assert!(seen, "{}", site.error_log());
    wait_for("broken handshakes to be too many", || {
        for _ in 0..6 {
            drop(TcpStream::connect(address));
        }
        let line = "\"tls_incomplete_connection_rate\" of frang: 4, and 3 is the most";
        site.error_log().contains(line).then_some(())
    });
}
