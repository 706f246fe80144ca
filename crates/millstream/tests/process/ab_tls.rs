//! `millstream ab https://…` beside Debian's ab: the same server, the same options, the same lines.

use crate::client_certificates::{CLIENT, issue, root};
use crate::site::{Site, free_address};
use crate::tls::{ECDSA, certify};
use std::net::SocketAddr;
use std::process::{Command, Output};

const AB: &str = "/usr/bin/ab";

/// Three servers: with an RSA certificate, with an ECDSA one of which TLS 1.2 and P-384 alone are there, and one that asks
/// for certificates.
fn site() -> (Site, [SocketAddr; 3]) {
    let site = Site::new();
    let addresses = [free_address(), free_address(), free_address()];
    certify(&site, "localhost", &["rsa:2048"]);
    certify(&site, "ec.example", &ECDSA);
    root(&site, "authority");
    issue(&site, "client", "/CN=client", "authority", CLIENT, "30");
    let [rsa, ec, asking] = addresses;
    site.configure(
        "",
        &format!(
            "ssl_certificate localhost.pem; ssl_certificate_key localhost.key;
             server {{ listen {rsa} ssl; return 200 \"$ssl_server_name\\n\"; }}
             server {{ listen {ec} ssl; ssl_protocols TLSv1.2; ssl_ecdh_curve secp384r1;
                 ssl_certificate ec.example.pem; ssl_certificate_key ec.example.key; return 404; }}
             server {{ listen {asking} ssl; ssl_verify_client on; ssl_client_certificate authority.pem;
                 return 200 \"$ssl_client_s_dn\\n\"; }}"
        ),
    );
    site.start();
    (site, addresses)
}

/// The output of Debian's and of ours.
fn both(options: &[&str], url: &str) -> [Output; 2] {
    let mut ours = Command::new(env!("CARGO_BIN_EXE_millstream"));
    ours.arg("ab");
    [Command::new(AB), ours].map(|mut command| {
        let output = command.args(options).arg(url).output();
        output.unwrap_or_else(|error| panic!("{error}. ab is in the package apache2-utils"))
    })
}

/// The report without what depends on measured times.
fn determined(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let (subject, rest) = text.split_once("Time taken").unwrap_or((&text, ""));
    let (counts, _) = rest.split_once("Requests per second").unwrap_or((rest, ""));
    let counts = counts.split_once('\n').map_or("", |(_, counts)| counts);
    format!("{subject}{counts}")
}

/// Checks that both print the same; returns it.
#[track_caller]
fn check(options: &[&str], url: &str) -> String {
    let [theirs, ours] = both(options, url);
    assert!(
        ours.status.success(),
        "{}",
        String::from_utf8_lossy(&ours.stderr)
    );
    assert_eq!(determined(&ours), determined(&theirs));
    determined(&ours)
}

#[test]
fn reports_of_https_have_the_lines_of_debians_ab() {
    let (_site, [rsa, ec, _]) = site();
    let url = format!("https://localhost:{}/", rsa.port());
    let report = check(&["-n", "4", "-c", "2"], &url);
    let lines = "SSL/TLS Protocol:       TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256\n\
                 Server Temp Key:        X25519 253 bits\n\
                 TLS Server Name:        localhost\n\nDocument Path";
    assert!(report.contains(lines), "{report}");
    check(&["-n", "4", "-k"], &url);
    check(&["-n", "2", "-f", "TLS1.2"], &url);
    check(&["-n", "2", "-f", "tls1.3"], &url);
    // Without its name no server has it in the answer.
    let report = check(&["-n", "2", "-I"], &url);
    assert!(
        report.contains("Document Length:        1 bytes"),
        "{report}"
    );
    let suite = "ECDHE-RSA-AES128-GCM-SHA256";
    let report = check(&["-n", "2", "-f", "TLS1.2", "-Z", suite], &url);
    assert!(report.contains(&format!("TLSv1.2,{suite},2048,128\n")));
    check(&["-n", "2", "-w"], &url);
    let report = check(&["-n", "2"], &format!("https://{ec}/"));
    let lines = "SSL/TLS Protocol:       TLSv1.2,ECDHE-ECDSA-AES256-GCM-SHA384,256,256\n\
                 Server Temp Key:        ECDH secp384r1 384 bits\n\nDocument Path";
    assert!(report.contains(lines), "{report}");
}

#[test]
fn a_client_certificate_is_shown() {
    let (site, [.., asking]) = site();
    let url = format!("https://localhost:{}/", asking.port());
    let both = site.path("both.pem");
    let parts = ["client.pem", "client.key"].map(|name| std::fs::read(site.path(name)).unwrap());
    std::fs::write(&both, parts.concat()).unwrap();
    let both = both.to_str().unwrap();
    let report = check(&["-n", "2", "-E", both], &url);
    assert!(!report.contains("Non-2xx"), "{report}");
    let report = check(&["-n", "2"], &url);
    assert!(report.contains("Non-2xx responses:      2\n"), "{report}");
    for lacking in ["gone.pem", "localhost.pem"] {
        let path = site.path(lacking);
        let options = ["-E", path.to_str().unwrap()];
        let [theirs, ours] = self::both(&options, &url);
        let line = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().next().map(String::from)
        };
        assert_eq!(line(&ours), line(&theirs));
        assert_eq!(ours.status.code(), theirs.status.code());
    }
}

#[test]
fn what_cannot_be_agreed_on_is_told_as_debians_ab_tells_it() {
    let (_site, [rsa, ec, _]) = site();
    let url = format!("https://{ec}/");
    let [theirs, ours] = both(&["-n", "2", "-f", "TLS1.3"], &url);
    for output in [&theirs, &ours] {
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text.matches("SSL handshake failed (1).\n").count(), 2);
        assert!(output.status.success());
    }
    let failed = "   (Connect: 2, Receive: 0, Length: 0, Exceptions: 0)\n";
    assert!(determined(&ours).contains(failed));
    let url = format!("https://{rsa}/");
    let [theirs, ours] = both(&["-Z", "nonsense"], &url);
    for output in [&theirs, &ours] {
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.starts_with("error setting ciphersuite list [nonsense]\n"));
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"");
    }
}
