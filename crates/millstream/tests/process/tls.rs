//! TLS, spoken with curl and OpenSSL, whose certificates OpenSSL has made.

use crate::site::{Site, free_address, wait_for};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A certificate that signs itself and its key, which only root may read, as `NAME.pem` and `NAME.key`.
pub(crate) fn certify(site: &Site, name: &str, kind: &[&str]) {
    let key = site.path(format!("{name}.key"));
    let status = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "30", "-newkey"])
        .args(kind)
        .args(["-subj", &format!("/CN={name}")])
        .arg("-addext")
        .arg(format!("subjectAltName=DNS:{name}"))
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(site.path(format!("{name}.pem")))
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
}

pub(crate) const ECDSA: [&str; 3] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
const RSA: [&str; 1] = ["rsa:2048"];

const VALUES: &str = "location = /values { return 200 \"$scheme $https $ssl_protocol $ssl_cipher $ssl_server_name\"; }";

/// A site with one server, which has a certificate of each kind.
fn both_kinds() -> (Site, SocketAddr) {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    certify(&site, "rsa.example", &RSA);
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl;
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key;
             ssl_certificate rsa.example.pem; ssl_certificate_key rsa.example.key;
             {VALUES} location = /moved {{ return 301 /there; }} }}"
        ),
    );
    (site, address)
}

/// What curl says of `https://NAME:PORT/PATH`, with the certificate `NAME.pem` as the only one that it trusts.
pub(crate) fn curl(
    site: &Site,
    name: &str,
    address: SocketAddr,
    path: &str,
    options: &[&str],
) -> Vec<u8> {
    let port = address.port();
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "20", "--resolve"])
        .arg(format!("{name}:{port}:127.0.0.1"))
        .arg("--cacert")
        .arg(site.path(format!("{name}.pem")))
        .args(options)
        .arg(format!("https://{name}:{port}{path}"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{}", site.error_log());
    output.stdout
}

/// What a request over `openssl s_client` is answered with, and what OpenSSL says.
pub(crate) fn s_client(address: SocketAddr, options: &[&str], request: &str) -> (String, String) {
    let mut child = Command::new("openssl")
        .args(["s_client", "-quiet", "-ign_eof", "-connect"])
        .arg(address.to_string())
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A refused handshake closes the pipe first.
    let _ = (child.stdin.as_mut().unwrap()).write_all(request.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn certificates_are_shown_with_the_days_that_are_left() {
    let (site, _) = both_kinds();
    site.start();
    let process = site.master().unwrap().to_string();
    // The process that serves may not be there yet.
    let text = wait_for("the certificates", || {
        let text = millstream(&["status", &process, "--certificates"]);
        (!text.contains("no servers with a certificate")).then_some(text)
    });
    let rows: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    assert_eq!(rows.len(), 2, "{text}");
    for row in rows {
        let days = row.split(' ').next().unwrap();
        assert!(
            ["29", "30"].contains(&days) && row.contains(".example"),
            "{text}"
        );
    }
    let json = millstream(&["status", &process, "--certificates", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let all = document["parts"][0]["certificates"].as_array().unwrap();
    assert_eq!(all[0]["names"], serde_json::json!(["a.example"]));
}

#[test]
fn the_status_tells_if_the_kernel_could_seal_records() {
    let (site, _) = both_kinds();
    site.start();
    let process = site.master().unwrap().to_string();
    let text = wait_for("the status", || {
        let text = millstream(&["status", &process]);
        text.contains("listens at").then_some(text)
    });
    let layers = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").unwrap();
    let expected = match layers.split_whitespace().any(|layer| layer == "tls") {
        true => "TLS records   sealed by workers; the kernel could (kTLS)",
        false => "TLS records   sealed by workers; the kernel could not (no kTLS)",
    };
    assert!(text.contains(expected), "{text}");
}

const REQUEST: &str = "GET /values HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn every_version_cipher_and_group_of_openssl_gets_its_answer() {
    let (site, address) = both_kinds();
    site.start();
    for (options, expected) in [
        ("-tls1_2", "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384"),
        (
            "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256",
            "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (
            "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305",
            "TLSv1.2 ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            "-tls1_2 -cipher ECDHE-RSA-AES256-GCM-SHA384",
            "TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384",
        ),
        (
            "-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256",
            "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256",
        ),
        (
            "-tls1_2 -cipher ECDHE-RSA-CHACHA20-POLY1305",
            "TLSv1.2 ECDHE-RSA-CHACHA20-POLY1305",
        ),
        (
            "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256",
            "TLSv1.3 TLS_AES_128_GCM_SHA256",
        ),
        (
            "-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384",
            "TLSv1.3 TLS_AES_256_GCM_SHA384",
        ),
        (
            "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256",
            "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            "-tls1_3 -sigalgs RSA-PSS+SHA256",
            "TLSv1.3 TLS_AES_256_GCM_SHA384",
        ),
        ("-groups P-256", "TLSv1.3 TLS_AES_256_GCM_SHA384"),
        ("-groups P-384", "TLSv1.3 TLS_AES_256_GCM_SHA384"),
        ("-groups X25519", "TLSv1.3 TLS_AES_256_GCM_SHA384"),
    ] {
        let words: Vec<&str> = options.split(' ').collect();
        let (answer, said) = s_client(address, &words, REQUEST);
        let expected = format!("https on {expected} ");
        assert!(answer.ends_with(&expected), "{options}: {answer:?}\n{said}");
    }
    for options in ["-tls1_1", "-tls1_2 -cipher AES128-SHA", "-groups X448"] {
        let words: Vec<&str> = options.split(' ').collect();
        let (answer, said) = s_client(address, &words, REQUEST);
        assert_eq!(answer, "", "{options}");
        assert!(said.contains("alert"), "{options}: {said}");
    }
}

#[test]
fn large_answers_and_redirects_arrive_as_they_are() {
    let (site, address) = both_kinds();
    let content: Vec<u8> = (0..=250_u8).cycle().take(3_000_000).collect();
    fs::write(site.path("large"), &content).unwrap();
    site.start();
    for version in ["1.2", "1.3"] {
        let options = ["--tlsv1.2", "--tls-max", version];
        let got = curl(&site, "a.example", address, "/large", &options);
        assert!(got == content, "TLS {version}");
    }
    let moved = curl(&site, "a.example", address, "/moved", &["-i"]);
    let location = format!("Location: https://a.example:{}/there\r\n", address.port());
    let moved = String::from_utf8(moved).unwrap();
    assert!(moved.contains(&location), "{moved}");
}

#[test]
fn a_server_is_chosen_by_the_name_in_the_handshake() {
    let (site, address) = (Site::new(), free_address());
    let mut servers = String::new();
    for name in ["a.example", "b.example"] {
        certify(&site, name, &ECDSA);
        servers.push_str(&format!(
            "server {{ listen {address} ssl; server_name {name}; ssl_certificate {name}.pem;
             ssl_certificate_key {name}.key; location / {{ return 200 {name}; }} }}"
        ));
    }
    site.configure("", &servers);
    site.start();
    for name in ["a.example", "b.example"] {
        // curl trusts the one certificate only, so the other server's would be refused.
        let answer = curl(&site, name, address, "/", &[]);
        assert_eq!(answer, name.as_bytes());
    }
}

#[test]
fn a_reload_takes_a_renewed_certificate() {
    let (site, address) = both_kinds();
    site.start();
    let first = curl(&site, "a.example", address, "/index.html", &[]);
    assert_eq!(first, b"hello\n");
    certify(&site, "a.example", &ECDSA);
    let master = site.master().unwrap();
    crate::site::send(master, mill_sys::signal::Signal::Hangup);
    // The former certificate is not trusted any more.
    let is_renewed = || {
        let (_, said) = s_client(
            address,
            &[
                "-verify_return_error",
                "-CAfile",
                &shown(&site.path("a.example.pem")),
            ],
            REQUEST,
        );
        (!said.contains("verify error")).then_some(())
    };
    wait_for("the renewed certificate", is_renewed);
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn plain_http_on_the_port_is_told_so() {
    let (site, address) = both_kinds();
    site.start();
    let output = Command::new("curl")
        .args(["-s", "--max-time", "20", &format!("http://{address}/")])
        .output()
        .unwrap();
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(
        page.contains("400 The plain HTTP request was sent to HTTPS port"),
        "{page}"
    );
    site.wait_for_log("client sent plain HTTP request to HTTPS port");
}

#[test]
fn failed_handshakes_are_logged_and_counted() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    let certificate = "ssl_certificate a.example.pem; ssl_certificate_key a.example.key;";
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; {certificate} client_header_timeout 1s;
             location / {{ millstream_metrics; }} }}"
        ),
    );
    site.start();
    s_client(address, &["-tls1_1"], REQUEST);
    site.wait_for_log("SSL_do_handshake() failed (SSL: peer is incompatible");
    drop(TcpStream::connect(address).unwrap());
    site.wait_for_log("peer closed connection in SSL handshake while SSL handshaking, client: ");
    let _silent = TcpStream::connect(address).unwrap();
    site.wait_for_log("client timed out (110: Connection timed out) while SSL handshaking");
    let (metrics, _) = s_client(address, &[], REQUEST);
    for (counter, count) in [("handshakes", 1), ("handshakes_failed", 3)] {
        let expected = format!("millstream_tls_{counter}_total{{worker=\"0\"}} {count}\n");
        assert!(metrics.contains(&expected), "{expected}{metrics}");
    }
}

/// What a command of ours prints; its verdict on so short a run does not matter.
pub(crate) fn millstream(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The counters of a run of `load`.
pub(crate) fn counters(arguments: &str) -> serde_json::Value {
    let words = arguments.split_ascii_whitespace();
    let words: Vec<&str> = "load -t 1 --quiet --json -"
        .split(' ')
        .chain(words)
        .collect();
    let document: serde_json::Value = serde_json::from_str(&millstream(&words)).unwrap();
    document["results"]["tally"].clone()
}

#[test]
fn the_load_generator_measures_handshakes_of_each_kind() {
    let (site, address) = both_kinds();
    let content: Vec<u8> = (0..=250_u8).cycle().take(300_000).collect();
    fs::write(site.path("large"), content).unwrap();
    site.start();
    let url = format!("https://{address}/index.html");
    for (options, handshakes, resumed) in [
        ("-c 4", 4, 0),
        ("-c 4 --tls 1.2", 4, 0),
        ("-c 4 --no-keepalive", 40, 0),
        // The first handshake of each connection may come before a ticket.
        ("--no-keepalive --tls-resume -c 1", 40, 39),
        ("--no-keepalive --tls-resume -c 1 --tls 1.2", 40, 39),
    ] {
        let counted = counters(&format!("-n 40 {options} {url}"));
        let found = ["answered", "handshakes", "handshakes_resumed"];
        let found = found.map(|name| counted[name].as_u64().unwrap_or(u64::MAX));
        assert_eq!(found, [40, handshakes, resumed], "{options}: {counted}");
    }
    let expected = shown(&site.path("large"));
    let large = counters(&format!(
        "-n 20 -c 2 --expect {expected} https://{address}/large"
    ));
    assert_eq!(large["answered"].as_u64(), Some(20), "{large}");
    let report = millstream(&["wrk", "-c", "4", "-t", "1", "-d", "1", &url]);
    assert!(report.contains("requests in 1.0"), "{report}");
    assert!(!report.contains("Socket errors"), "{report}");
    // A server that speaks no TLS.
    let (plain, behind) = (Site::new(), free_address());
    plain.configure("", &format!("server {{ listen {behind}; }}"));
    plain.start();
    let failed = counters(&format!("-d 1 -c 1 https://{behind}/"));
    let failures = failed["failures"]["tls_handshake"].as_u64();
    assert!(failures > Some(0), "{failed}");
}

#[test]
fn certificates_that_cannot_be_used_are_refused_with_their_line() {
    let site = Site::new();
    let address = free_address();
    certify(&site, "a.example", &ECDSA);
    certify(&site, "b.example", &ECDSA);
    fs::write(site.path("empty.pem"), "").unwrap();
    for (lines, expected) in [
        (
            "",
            "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive",
        ),
        (
            "ssl_certificate a.example.pem;",
            "no \"ssl_certificate_key\" is defined for certificate",
        ),
        (
            "ssl_certificate none.pem; ssl_certificate_key a.example.key;",
            "cannot load certificate \"none.pem\": BIO_new_file() failed (2: No such file or directory)",
        ),
        (
            "ssl_certificate empty.pem; ssl_certificate_key a.example.key;",
            "there is no certificate in it",
        ),
        (
            "ssl_certificate a.example.pem; ssl_certificate_key a.example.pem;",
            "there is no private key in it",
        ),
        (
            "ssl_certificate a.example.pem; ssl_certificate_key b.example.key;",
            "key values mismatch",
        ),
        ("ssl_protocols TLSv1;", "\"TLSv1\" is not there"),
        ("ssl_protocols TLSv1.4;", "invalid value \"TLSv1.4\""),
    ] {
        site.configure("", &format!("server {{ listen {address} ssl;\n{lines} }}"));
        let output = site.nginx(&["-t"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{lines}: {stderr}");
        assert!(stderr.contains(expected), "{lines}: {stderr}");
        assert!(
            lines.is_empty() || stderr.contains("nginx.conf:"),
            "{lines}: {stderr}"
        );
    }
    // A dump shows the configuration and no key.
    let lines = "ssl_certificate a.example.pem; ssl_certificate_key a.example.key;";
    site.configure("", &format!("server {{ listen {address} ssl; {lines} }}"));
    let output = site.nginx(&["-T"]);
    let dump = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && dump.contains("ssl_certificate_key"),
        "{dump}"
    );
    assert!(!dump.contains("PRIVATE KEY"), "{dump}");
}

/// Mozilla's intermediate configuration for nginx, as people have it; the certificate, the key's password and the file with
/// keys of tickets are the test's.
const INTERMEDIATE: &str = "
    ssl_session_cache shared:MozSSL:10m;  # about 40000 sessions
    ssl_session_timeout 1d;
    ssl_session_tickets off;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ecdh_curve X25519:prime256v1:secp384r1;
    ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305;
    ssl_prefer_server_ciphers off;
    ssl_dhparam dhparam.pem;";

/// A connection that leaves its session in a file, and one that begins with it; what OpenSSL says of both.
fn resume(site: &Site, address: SocketAddr, version: &str) -> [String; 2] {
    let file = site.path("session").display().to_string();
    let _ = fs::remove_file(&file);
    ["-sess_out", "-sess_in"].map(|option| {
        let mut child = Command::new("openssl")
            .args([
                "s_client",
                "-ign_eof",
                "-connect",
                &address.to_string(),
                version,
                option,
                &file,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _ = (child.stdin.as_mut().unwrap()).write_all(REQUEST.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let kind = text
            .lines()
            .find(|line| line.starts_with("New,") || line.starts_with("Reused,"));
        kind.unwrap_or_default()
            .split(',')
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

#[test]
fn sessions_are_resumed_from_a_zone_by_ticket_keys_of_files_and_over_reloads() {
    let site = Site::new();
    certify(&site, "a.example", &ECDSA);
    let addresses: Vec<SocketAddr> = (0..4).map(|_| free_address()).collect();
    fs::write(site.path("new.key"), [7; 80]).unwrap();
    fs::write(site.path("old.key"), [8; 48]).unwrap();
    let modes = [
        INTERMEDIATE,
        "ssl_session_ticket_key new.key; ssl_session_ticket_key old.key;",
        "ssl_session_cache none; ssl_session_tickets off;",
        "",
    ];
    let mut servers = String::new();
    for (address, mode) in addresses.iter().zip(modes) {
        servers += &format!(
            "server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key; {mode} {VALUES} }}\n"
        );
    }
    site.configure("worker_processes 2;", &servers);
    site.start();
    for version in ["-tls1_2", "-tls1_3"] {
        for (mode, address) in addresses.iter().enumerate() {
            // Without tickets and zones OpenSSL has no session to write down.
            let expected = if mode == 2 { "" } else { "Reused" };
            let found = resume(&site, *address, version);
            assert_eq!(found, ["New", expected], "{version}, mode {mode}");
        }
    }
    // A server that has the file as its second key takes the tickets of one that has it as its first.
    let session = site.path("session").display().to_string();
    resume(&site, addresses[1], "-tls1_2");
    let swapped = servers.replace(
        "ssl_session_ticket_key new.key; ssl_session_ticket_key old.key;",
        "ssl_session_ticket_key old.key; ssl_session_ticket_key new.key;",
    );
    site.configure("worker_processes 2;", &swapped);
    assert!(site.nginx(&["-s", "reload"]).status.success());
    site.wait_for_log("configuration 2 is in force");
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &addresses[1].to_string(),
            "-tls1_2",
            "-sess_in",
            &session,
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Reused, TLSv1.2"));
}

#[test]
fn ciphers_groups_and_versions_are_those_of_the_configuration() {
    let site = Site::new();
    certify(&site, "a.example", &ECDSA);
    let addresses: Vec<SocketAddr> = (0..3).map(|_| free_address()).collect();
    let modes = [
        INTERMEDIATE,
        "ssl_ciphers ECDHE+CHACHA20:ECDHE+AES256; ssl_prefer_server_ciphers on; ssl_ecdh_curve secp384r1;
         ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;",
        "ssl_conf_command MinProtocol TLSv1.3; ssl_conf_command Options PrioritizeChaCha,ServerPreference;",
    ];
    let mut servers = String::new();
    for (address, mode) in addresses.iter().zip(modes) {
        servers += &format!(
            "server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key; {mode}
             location = /values {{ return 200 \"$ssl_protocol $ssl_cipher $ssl_curve $ssl_curves\"; }} }}\n"
        );
    }
    site.configure("", &servers);
    site.start();
    for (mode, options, expected) in [
        (
            0,
            "-tls1_2",
            "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 X25519 ",
        ),
        (
            0,
            "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 -curves P-384:P-256",
            "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256 secp384r1 secp384r1:prime256v1",
        ),
        (0, "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA", ""),
        (
            1,
            "-tls1_2",
            "TLSv1.2 ECDHE-ECDSA-CHACHA20-POLY1305 secp384r1 ",
        ),
        (1, "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256", ""),
        (
            1,
            "-tls1_3",
            "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256 secp384r1 ",
        ),
        (1, "-tls1_3 -curves X25519", ""),
        (1, "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256", ""),
        (2, "-tls1_2", ""),
        (
            2,
            "-tls1_3 -curves X448:X25519",
            "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 X448:X25519",
        ),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let (answer, said) = s_client(addresses[mode], &options, REQUEST);
        match expected {
            "" => assert!(!answer.contains("200 OK"), "{mode} {options:?}: {answer}"),
            _ => assert!(
                answer.contains(expected),
                "{mode} {options:?}: {answer}\n{said}"
            ),
        }
    }
}

#[test]
fn protocols_and_bounds_of_commands_both_hold_in_any_order_and_are_inherited_each_on_its_own() {
    let site = Site::new();
    certify(&site, "a.example", &ECDSA);
    let outer = "ssl_protocols TLSv1.3; ssl_conf_command MinProtocol TLSv1.3;
        ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;";
    let modes = [
        ("ssl_protocols TLSv1.2 TLSv1.3;", "", "TLSv1.3 TLS_CHACHA20"),
        // A command of its own: the outer ones are not inherited, the versions are.
        (
            "ssl_conf_command Options ServerPreference;",
            "",
            "TLSv1.3 TLS_AES_256",
        ),
        (
            "ssl_conf_command MinProtocol TLSv1.2;",
            "",
            "TLSv1.3 TLS_AES_256",
        ),
        (
            "ssl_conf_command MaxProtocol TLSv1.2; ssl_protocols TLSv1.2 TLSv1.3;",
            "TLSv1.2 ECDHE",
            "",
        ),
        (
            "ssl_protocols TLSv1.2 TLSv1.3; ssl_conf_command MaxProtocol TLSv1.2;",
            "TLSv1.2 ECDHE",
            "",
        ),
        (
            "ssl_protocols TLSv1.2 TLSv1.3; ssl_conf_command MinProtocol TLSv1.3;
             ssl_conf_command MinProtocol TLSv1.2;",
            "TLSv1.2 ECDHE",
            "TLSv1.3 TLS_AES_256",
        ),
    ];
    let addresses: Vec<SocketAddr> = modes.iter().map(|_| free_address()).collect();
    let mut servers = String::from(outer);
    for (address, (mode, _, _)) in addresses.iter().zip(modes) {
        servers += &format!(
            "server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key; {mode}
             location = /values {{ return 200 \"$ssl_protocol $ssl_cipher\"; }} }}\n"
        );
    }
    site.configure("", &servers);
    site.start();
    for (address, (mode, of_12, of_13)) in addresses.into_iter().zip(modes) {
        for (option, expected) in [("-tls1_2", of_12), ("-tls1_3", of_13)] {
            let (answer, said) = s_client(address, &[option], REQUEST);
            match expected {
                "" => assert!(!answer.contains("200 OK"), "{mode} {option}: {answer}"),
                _ => assert!(
                    answer.contains(expected),
                    "{mode} {option}: {answer}\n{said}"
                ),
            }
        }
    }
}

#[test]
fn an_encrypted_key_is_opened_by_a_line_of_the_password_file_and_a_staple_is_sent() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    let encrypted = Command::new("openssl")
        .args([
            "pkcs8",
            "-topk8",
            "-in",
            "a.example.key",
            "-out",
            "locked.key",
            "-passout",
            "pass:three words here",
        ])
        .current_dir(site.path(""))
        .status();
    assert!(encrypted.unwrap().success());
    // OpenSSL's form before PKCS #8.
    let line = "ec -aes256 -in a.example.key -out old.key -passout file:word";
    fs::write(site.path("word"), "three words here\n").unwrap();
    crate::proxy_tls::openssl(&site, line);
    fs::write(site.path("words"), "wrong\nthree words here\n").unwrap();
    // What is stapled is not looked at: a client is.
    fs::write(site.path("answer.der"), b"\x30\x03\x0a\x01\x01").unwrap();
    let server = |passwords: &str| {
        format!(
            "server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key locked.key; {passwords}
             ssl_stapling on; ssl_stapling_file answer.der; {VALUES} }}"
        )
    };
    site.configure("", &server("ssl_password_file words;"));
    site.start();
    let (answer, _) = s_client(address, &[], REQUEST);
    assert!(answer.contains("200 OK"), "{answer}");
    let output = Command::new("openssl")
        .args(["s_client", "-status", "-connect", &address.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("OCSP response") && !said.contains("no response sent"),
        "{said}"
    );
    let old = server("ssl_password_file words;").replace("locked.key", "old.key");
    site.configure("", &old);
    let taken = site.nginx(&["-t"]);
    let stderr = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.success(), "{stderr}");
    for closed in [server(""), old.replace("ssl_password_file words;", "")] {
        site.configure("", &closed);
        let refused = site.nginx(&["-t"]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            stderr.contains("the key is encrypted, and no line of ssl_password_file opens it"),
            "{stderr}"
        );
    }
}

#[test]
fn words_of_tls_that_mean_nothing_here_are_named_with_their_line() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    fs::write(site.path("short.key"), [1; 40]).unwrap();
    for (line, code, expected) in [
        (
            "ssl_ciphers RC4:DES;",
            1,
            "no cipher of \"RC4:DES\" is there",
        ),
        (
            "ssl_ciphers HIGH:DHE-RSA-AES128-SHA;",
            0,
            "\"DHE-RSA-AES128-SHA\" is not there",
        ),
        (
            "ssl_ecdh_curve secp521r1;",
            1,
            "no group of \"secp521r1\" is there",
        ),
        (
            "ssl_ecdh_curve secp521r1:X25519;",
            0,
            "the group \"secp521r1\" is not there",
        ),
        (
            "ssl_conf_command Ciphersuites TLS_AES_128_CCM_SHA256;",
            1,
            "the cipher \"TLS_AES_128_CCM_SHA256\" is not there",
        ),
        (
            "ssl_conf_command MaxProtocol TLSv1.1;",
            1,
            "\"TLSv1.1\" leaves no version of TLS",
        ),
        (
            "ssl_conf_command MaxProtocol TLSv1.2; ssl_protocols TLSv1.3;",
            1,
            "MinProtocol and MaxProtocol leave no version of TLS",
        ),
        (
            "ssl_conf_command Options UnsafeLegacyRenegotiation;",
            0,
            "the option \"UnsafeLegacyRenegotiation\" has no effect",
        ),
        (
            "ssl_session_cache shared:a;",
            1,
            "invalid session cache \"shared:a\"",
        ),
        (
            "ssl_session_cache shared:a:1k;",
            1,
            "session cache \"shared:a:1k\" is too small",
        ),
        (
            "ssl_session_ticket_key short.key;",
            1,
            "must be 48 or 80 bytes",
        ),
        ("ssl_verify_client yes;", 1, "invalid value \"yes\""),
        (
            "ssl_verify_client on;",
            1,
            "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client",
        ),
        (
            "ssl_verify_client on; ssl_client_certificate a.example.key;",
            1,
            "there is no certificate in it (PEM)",
        ),
        (
            "ssl_verify_client optional; ssl_client_certificate a.example.pem; ssl_crl a.example.pem;",
            1,
            "there is no CRL in it (PEM)",
        ),
        ("ssl_password_file nothing;", 1, "No such file or directory"),
        (
            "ssl_stapling_responder https://a;",
            1,
            "invalid URL prefix in OCSP responder \"https://a\"",
        ),
        ("ssl_stapling maybe;", 1, "it must be \"on\" or \"off\""),
    ] {
        let server = format!(
            "server {{ listen {address} ssl; ssl_certificate a.example.pem; ssl_certificate_key a.example.key;\n{line} }}"
        );
        site.configure("", &server);
        let output = site.nginx(&["-t"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        assert!(
            stderr.contains(expected) && stderr.contains("nginx.conf:"),
            "{line}: {stderr}"
        );
    }
}

/// How often the certificate changes; MILLSTREAM_RELOADS asks for more.
fn reloads() -> u64 {
    let given = std::env::var("MILLSTREAM_RELOADS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[test]
fn reloads_with_new_certificates_under_load_fail_neither_request_nor_handshake() {
    let (site, address) = (Site::new(), free_address());
    // Making keys takes longest: two that take turns, under a new certificate each time.
    certify(&site, "a.example", &ECDSA);
    certify(&site, "rsa.example", &RSA);
    let configure = |name: &str| {
        site.configure(
            "worker_processes 2;",
            &format!(
                "server {{ listen {address} ssl; http2 on; ssl_certificate {name}.pem; ssl_certificate_key {name}.key; }}"
            ),
        );
    };
    configure("a.example");
    site.start();
    let running = |(number, options): (usize, &str)| {
        Command::new(env!("CARGO_BIN_EXE_millstream"))
            .args([
                "load",
                "-t",
                "1",
                "--quiet",
                "--json",
                "-",
                "-d",
                "600s",
                "--warm-up",
                "0s",
            ])
            .args(options.split(' '))
            .arg(format!("https://{address}/index.html?{number}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let kinds = ["-c 4 --no-keepalive", "-c 4 --streams 5", "-c 4"];
    let loads: Vec<_> = kinds.into_iter().enumerate().map(running).collect();
    let answered = |number: usize| {
        let log = fs::read_to_string(site.path("access.log")).unwrap_or_default();
        log.matches(&format!("/index.html?{number} ")).count()
    };
    for number in 0..kinds.len() {
        wait_for("answers", || (answered(number) > 200).then_some(()));
    }
    for round in 1..=reloads() {
        configure(["a.example", "rsa.example"][usize::from(round % 2 == 1)]);
        assert!(site.nginx(&["-s", "reload"]).status.success());
        site.wait_for_log(&format!("configuration {} is in force", round + 1));
    }
    for mut load in loads {
        let pid = i32::try_from(load.id()).unwrap();
        crate::site::send(
            mill_sys::process::Pid::new(pid).unwrap(),
            mill_sys::signal::Signal::Interrupt,
        );
        let mut text = String::new();
        load.stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        load.wait().unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let tally = &document["results"]["tally"];
        let failures = tally["failures"].as_object().unwrap();
        assert!(
            failures.values().all(|count| count.as_u64() == Some(0)),
            "{tally}"
        );
        assert!(tally["answered"].as_u64() > Some(100), "{tally}");
    }
}
