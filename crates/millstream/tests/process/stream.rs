//! `stream`: reloads and ends with sessions under way; TLS on either side and by name, with curl and OpenSSL as clients.

use crate::proxy_tls::certify;
use crate::site::{Site, free_address, is_running, send, wait_until_ended};
use mill_sys::signal::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// A server that sends everything back behind its own name, and ends when its client does.
fn echo_server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let _ = stream.write_all(name.as_bytes());
                let mut bytes = [0; 16 * 1024];
                while let Ok(len @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..len]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Sends and receives the same.
fn exchange(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
    receive(stream, text);
}

fn receive(stream: &mut TcpStream, expected: &str) {
    let mut got = vec![0; expected.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), expected);
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

fn passing_to(address: SocketAddr, server: SocketAddr) -> String {
    format!("stream {{ server {{ listen {address}; proxy_pass {server}; }} }}")
}

#[test]
fn sessions_go_on_through_reloads_and_quit_waits_for_them() {
    let (site, address) = (Site::new(), free_address());
    let (first, second) = (echo_server("first "), echo_server("second "));
    site.configure(&passing_to(address, first), "");
    let master = site.start();
    let mut before = connect(address);
    receive(&mut before, "first ");
    let worker = site.worker(master, &[]);
    site.configure(&passing_to(address, second), "");
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    let mut after = connect(address);
    receive(&mut after, "second ");
    exchange(&mut before, "still the first one");
    send(master, Signal::Quit);
    site.wait_for_log("gracefully shutting down");
    exchange(&mut before, "and still");
    exchange(&mut after, "here too");
    assert!(TcpStream::connect(address).is_err());
    drop(before);
    exchange(&mut after, "the last one");
    assert!(is_running(worker));
    drop(after);
    wait_until_ended(master);
    assert!(!is_running(worker));
}

#[test]
fn worker_shutdown_timeout_ends_sessions() {
    let (site, address) = (Site::new(), free_address());
    let main = format!(
        "worker_shutdown_timeout 1s; {}",
        passing_to(address, echo_server("hello "))
    );
    site.configure(&main, "");
    let master = site.start();
    let mut client = connect(address);
    receive(&mut client, "hello ");
    send(master, Signal::Quit);
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    assert!(rest.is_empty());
    wait_until_ended(master);
}

/// Runs curl for `https://NAME:PORT/PATH` at this address.
fn curl(site: &Site, name: &str, address: SocketAddr, path: &str, more: &[&str]) -> Output {
    let port = address.port();
    let mut command = Command::new("curl");
    command
        .args(["-sS", "--max-time", "20", "--cacert", "ca.pem"])
        .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
        .args(more)
        .arg(format!("https://{name}:{port}{path}"))
        .current_dir(site.path(""));
    command.output().unwrap()
}

fn content(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tls_ends_here_begins_here_or_passes_by() {
    let site = Site::new();
    certify(&site, &["a.example", "b.example", "client.example"]);
    let large: Vec<u8> = (0..=250_u8).cycle().take(3_000_000).collect();
    fs::write(site.path("large"), &large).unwrap();
    let [clear, a, b, ending, beginning, wrong, passing, strict, both] =
        std::array::from_fn(|_| free_address());
    let certificate =
        |name: &str| format!("ssl_certificate {name}.pem; ssl_certificate_key {name}.key;");
    let (cert_a, cert_b) = (certificate("a.example"), certificate("b.example"));
    let log = site.path("sessions.log").display().to_string();
    let stream = format!(
        "stream {{ log_format f '$server_port $status $ssl_preread_server_name $ssl_preread_protocol \
         $ssl_preread_alpn_protocols $ssl_protocol $ssl_server_name $ssl_client_s_dn $ssl_alpn_protocol'; access_log {log} f;
         proxy_ssl_trusted_certificate ca.pem; proxy_ssl_verify on; proxy_ssl_server_name on;
         map $ssl_preread_server_name $where {{ a.example {a}; b.example at_b; }} upstream at_b {{ server {b}; }}
         server {{ listen {ending} ssl; {cert_a} ssl_alpn http/1.1; proxy_pass {clear}; }}
         server {{ listen {beginning}; proxy_ssl on; proxy_ssl_name b.example; proxy_pass {b}; }}
         server {{ listen {wrong}; proxy_ssl on; proxy_ssl_name c.example; proxy_pass {b}; }}
         server {{ listen {passing}; ssl_preread on; proxy_pass $where; }}
         server {{ listen {strict} ssl; {cert_a} ssl_client_certificate ca.pem; ssl_verify_client on; proxy_pass {clear}; }}
         server {{ listen {both} ssl; {cert_a} proxy_ssl on; proxy_ssl_name b.example; proxy_pass {b}; }} }}"
    );
    site.configure(
        &stream,
        &format!(
            "server {{ listen {clear}; location = /who {{ return 200 clear; }} }}
             server {{ listen {a} ssl; {cert_a} location = /who {{ return 200 \"a $ssl_server_name\"; }} }}
             server {{ listen {b} ssl; {cert_b} location = /who {{ return 200 \"b $ssl_server_name\"; }} }}"
        ),
    );
    site.start();
    let ask = |name: &str, address, more: &[&str]| curl(&site, name, address, "/who", more);
    assert_eq!(content(&ask("a.example", ending, &[])), "clear");
    assert_eq!(content(&ask("a.example", passing, &[])), "a a.example");
    assert_eq!(
        content(&ask(
            "b.example",
            passing,
            &["--tlsv1.2", "--tls-max", "1.2"]
        )),
        "b b.example"
    );
    assert_eq!(content(&ask("a.example", both, &[])), "b b.example");
    let with_key = [
        "--cert",
        "client.example.pem",
        "--key",
        "client.example.key",
    ];
    assert_eq!(content(&ask("a.example", strict, &with_key)), "clear");
    assert!(!ask("a.example", strict, &[]).status.success());
    site.wait_for_log("client sent no required SSL certificate while SSL handshaking, client: 127.0.0.1, server: ");
    for address in [ending, passing, both] {
        let output = curl(&site, "a.example", address, "/large", &[]);
        assert!(output.stdout == large, "{address}");
    }
    let plain = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "20",
            &format!("http://{beginning}/who"),
        ])
        .output()
        .unwrap();
    assert_eq!(content(&plain), "b b.example");
    // The server's certificate is for another name.
    let mut refused = connect(wrong);
    assert_eq!(refused.read(&mut [0; 10]).unwrap(), 0);
    site.wait_for_log("upstream SSL certificate does not match \"");
    site.wait_for_log("while SSL handshaking to upstream, client: 127.0.0.1, server: ");
    // Clear text where a handshake is due, and no protocol in common.
    let mut clear_text = connect(ending);
    clear_text.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = clear_text.read_to_end(&mut Vec::new());
    site.wait_for_log("SSL_do_handshake() failed (SSL: ");
    let s_client = |alpn: &str| {
        let connect = format!("127.0.0.1:{}", ending.port());
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &connect, "-alpn", alpn])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(s_client("h2,http/1.1").contains("ALPN protocol: http/1.1"));
    assert!(!s_client("smtp").contains("ALPN protocol"));
    let lines = fs::read_to_string(&log).unwrap();
    for line in [
        format!("{} 200 - - - TLSv1.3 a.example - http/1.1\n", ending.port()),
        format!(
            "{} 200 a.example TLSv1.3 h2,http/1.1 - - - -\n",
            passing.port()
        ),
        format!(
            "{} 200 b.example TLSv1.2 h2,http/1.1 - - - -\n",
            passing.port()
        ),
        format!(
            "{} 200 - - - TLSv1.3 a.example CN=client.example -\n",
            strict.port()
        ),
        format!("{} 500 - - - TLSv1.3 a.example - -\n", strict.port()),
        format!("{} 502 - - - - - - -\n", wrong.port()),
    ] {
        assert!(lines.contains(&line), "{line}{lines}");
    }
}

#[test]
fn logs_of_sessions_are_opened_anew_and_counted() {
    let (site, address) = (Site::new(), free_address());
    let log = site.path("sessions.log");
    let shown = log.display();
    let server = echo_server("x");
    site.configure(
        &format!(
            "stream {{ log_format f '$protocol $status $bytes_received $bytes_sent $upstream_addr'; access_log {shown} f;
             server {{ listen {address}; proxy_pass {server}; }} }}"
        ),
        "",
    );
    let master = site.start();
    let session = || {
        let mut client = connect(address);
        receive(&mut client, "x");
        exchange(&mut client, "four");
    };
    let has_line = |text: &str| {
        crate::site::wait_for("the line of a session", || {
            let lines = fs::read_to_string(&log).unwrap_or_default();
            (lines == text).then_some(())
        });
    };
    let line = format!("TCP 200 4 5 {server}\n");
    session();
    has_line(&line);
    fs::rename(&log, site.path("old.log")).unwrap();
    send(master, Signal::User1);
    crate::site::wait_for("the new log", || log.exists().then_some(()));
    session();
    has_line(&line);
    let pid = site.path("pid");
    let status = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["status", "--json"])
        .arg(&pid)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&status.stdout);
    assert!(
        text.contains("\"sessions\": 2") || text.contains("\"sessions\":2"),
        "{text}"
    );
}
