//! A server with TLS and HTTP/2, and common clients of it.

use crate::namespace::output_of;
use crate::server::Site;
use std::fs;

/// A certificate that signs itself, `own.pem`, and its key.
pub(crate) fn certify(site: &Site) -> String {
    let (key, certificate) = (site.path("own.key"), site.path("own.pem"));
    let line = format!(
        "req -x509 -nodes -days 30 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -subj /CN=a.example -keyout {} -out {}",
        key.display(),
        certificate.display()
    );
    let made = output_of("openssl", &line.split(' ').collect::<Vec<_>>());
    assert!(made.status.success());
    format!(
        "ssl_certificate {}; ssl_certificate_key {};",
        certificate.display(),
        key.display()
    )
}

/// What a client in the thread's namespace prints.
fn said(program: &str, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let output = output_of("timeout", &[&["60", program][..], &words].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {line}: {said}{complaint}"
    );
    said
}

/// A configuration with TLS and HTTP/2 at 443 and 80.
pub(crate) fn configure(site: &Site) -> String {
    let certificate = certify(site);
    let listening = format!(
        "http2 on; keepalive_requests 1000000; open_file_cache max=10;
         server {{ listen 80; listen 443 ssl; listen [::]:443 ssl; {certificate}
         location = /values {{ return 200 \"$ssl_protocol $server_protocol $remote_addr\"; }} }}"
    );
    site.configure("worker_processes 1;", &listening)
}

/// Has curl and h2load ask that server at these hosts, the first one of IPv4, from this address.
pub(crate) fn check(site: &Site, hosts: &[&str], from: &str) {
    let large = fs::read(site.path("large.bin")).unwrap();
    let first = hosts[0];
    for (options, expected) in [
        ("", "TLSv1.3 HTTP/2.0"),
        ("--http1.1 ", "TLSv1.3 HTTP/1.1"),
        ("--tls-max 1.2 ", "TLSv1.2 HTTP/2.0"),
    ] {
        let line = format!("-sSk --max-time 20 {options}https://{first}/values");
        assert_eq!(said("curl", &line), format!("{expected} {from}"));
        for host in hosts {
            let line = format!("-sSk --max-time 20 {options}https://{host}/large.bin");
            let words: Vec<&str> = line.split(' ').collect();
            assert!(output_of("curl", &words).stdout == large, "{line}");
        }
    }
    for url in ["https", "http"].map(|scheme| format!("{scheme}://{first}/index.html")) {
        let report = said("h2load", &format!("-n 3000 -c 4 -m 10 {url}"));
        let expected = "3000 succeeded, 0 failed, 0 errored, 0 timeout";
        assert!(report.contains(expected), "{report}");
    }
}
