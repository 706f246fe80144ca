//! Certificates from an authority: Pebble, which refuses many nonces, with its own name server.

use crate::proxy_tls::openssl;
use crate::site::{Site, free_address, send, wait_for, wait_until_ended};
use mill_sys::signal::Signal;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

/// The authority, until it is dropped.
struct Pebble {
    processes: Vec<Child>,
    address: SocketAddr,
    management: SocketAddr,
}

impl Pebble {
    /// Certificates are valid for as many seconds. `None`: Pebble is not installed.
    fn start(site: &Site, ports: Ports, valid_for: u32) -> Option<Self> {
        let (address, management, names) = (free_address(), free_address(), free_address());
        authority_certificate(site);
        let (http, tls) = (ports.http.port(), ports.tls.port());
        let directory = site.path("");
        let directory = directory.display();
        let (key, is_bound) = (
            "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W",
            ports.is_bound,
        );
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "{address}", "managementListenAddress": "{management}",
            "certificate": "{directory}/leaf.pem", "privateKey": "{directory}/leaf.key",
            "httpPort": {http}, "tlsPort": {tls}, "externalAccountBindingRequired": {is_bound},
            "externalAccountMACKeys": {{"kid-1": "{key}"}}, "certificateValidityPeriod": {valid_for},
            "profiles": {{"default": {{"description": "", "validityPeriod": {valid_for}}}}}}}}}"#
        );
        fs::write(site.path("pebble.json"), config).unwrap();
        let name_server = Command::new("pebble-challtestsrv")
            .args([
                "-defaultIPv4",
                "127.0.0.1",
                "-defaultIPv6",
                "",
                "-http01",
                "",
                "-https01",
                "",
            ])
            .args(["-tlsalpn01", "", "-dns01", &names.to_string()])
            .args(["-management", &free_address().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(name_server) = name_server else {
            println!("not tested: there is no pebble");
            return None;
        };
        let said = fs::File::create(site.path("pebble.log")).unwrap();
        let mut pebble = Self {
            processes: vec![name_server],
            address,
            management,
        };
        let authority = Command::new("pebble")
            .arg("-config")
            .arg(site.path("pebble.json"))
            .args(["-dnsserver", &names.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "40")
            .stdout(said)
            .spawn()
            .unwrap();
        pebble.processes.push(authority);
        let root = wait_for("the authority", || pebble.root());
        fs::write(site.path("root.pem"), root).unwrap();
        Some(pebble)
    }

    fn root(&self) -> Option<Vec<u8>> {
        let output = Command::new("curl")
            .args(["-sSk", &format!("https://{}/roots/0", self.management)])
            .output()
            .unwrap();
        output.status.success().then_some(output.stdout)
    }

    fn issuer(&self, inside: &str) -> String {
        let address = self.address;
        format!(
            "acme_issuer pebble {{ uri https://{address}/dir; ssl_trusted_certificate ca.pem; {inside} }}"
        )
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Where the authority looks for proofs, and whether accounts are bound to others.
#[derive(Clone, Copy)]
struct Ports {
    http: SocketAddr,
    tls: SocketAddr,
    is_bound: bool,
}

impl Ports {
    fn new(is_bound: bool) -> Self {
        Self {
            http: free_address(),
            tls: free_address(),
            is_bound,
        }
    }
}

/// `ca.pem`, and `leaf.pem` with `leaf.key` for 127.0.0.1.
fn authority_certificate(site: &Site) {
    let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256";
    let run = |line: &str| openssl(site, line);
    run(&format!(
        "req -x509 {key} -keyout ca.key -out ca.pem -days 30 -subj /CN=ca"
    ));
    run(&format!(
        "req {key} -keyout leaf.key -out leaf.csr -subj /CN=leaf"
    ));
    fs::write(site.path("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    run(
        "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 30 -extfile names",
    );
}

/// The content for a name over TLS with a certificate of the authority; `None`: there is no answer.
fn get(site: &Site, name: &str, address: SocketAddr) -> Option<String> {
    let port = address.port();
    let output = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "10",
            "--resolve",
            &format!("{name}:{port}:127.0.0.1"),
        ])
        .arg("--cacert")
        .arg(site.path("root.pem"))
        .arg(format!("https://{name}:{port}/"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// What OpenSSL says of the certificate for a name.
fn certificate(name: &str, address: SocketAddr, what: &str) -> Option<String> {
    let line = format!(
        "openssl s_client -connect {address} -servername {name} </dev/null 2>/dev/null | openssl x509 -noout {what} 2>/dev/null"
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (!text.is_empty()).then_some(text)
}

const SHOWN: &str = "ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;";

#[test]
fn a_certificate_is_proved_by_http_01_kept_over_a_restart_and_replaced_in_time() {
    let (site, ports) = (Site::new(), Ports::new(false));
    let Some(pebble) = Pebble::start(&site, ports, 24) else {
        return;
    };
    let (http, tls) = (ports.http, ports.tls);
    let state = site.path("state");
    let issuer = pebble.issuer(&format!(
        "accept_terms_of_service; contact a@example.com; state_path {};",
        state.display()
    ));
    site.configure(
        "worker_processes 2;",
        &format!(
            "{issuer} server {{ listen {tls} ssl; server_name .a.example; acme_certificate pebble; {SHOWN}
             location / {{ return 200 hello; }} }}
             server {{ listen {http}; return 301 https://$host$request_uri; }}"
        ),
    );
    let master = site.start();
    let answer = wait_for("the first certificate", || get(&site, "a.example", tls));
    assert_eq!(answer, "hello");
    let names = certificate("www.a.example", tls, "-ext subjectAltName").unwrap();
    assert!(
        names.contains("DNS:www.a.example, DNS:a.example"),
        "{names}"
    );
    let first = certificate("a.example", tls, "-serial").unwrap();
    site.wait_for_log("is issued; the next one is ordered in");
    let mut files: Vec<(String, u32)> = fs::read_dir(site.path("state"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, entry.metadata().unwrap().permissions().mode() & 0o777)
        })
        .collect();
    files.sort();
    let kinds = files
        .iter()
        .map(|(name, mode)| (name.rsplit_once('.').unwrap().1, *mode));
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(
        kinds,
        [("key", 0o600), ("crt", 0o600), ("key", 0o600)],
        "{files:?}"
    );
    let status = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["status", &master.to_string(), "--certificates"])
        .output()
        .unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("www.a.example"), "{status}");

    send(master, Signal::Quit);
    wait_until_ended(master);
    site.start();
    assert_eq!(certificate("a.example", tls, "-serial").unwrap(), first);
    assert_eq!(site.error_log().matches("ordering certificate").count(), 1);
    let second = wait_for("the next certificate", || {
        certificate("a.example", tls, "-serial").filter(|serial| *serial != first)
    });
    assert_ne!(first, second);
    assert_eq!(site.error_log().matches("ordering certificate").count(), 2);
}

#[test]
fn names_are_proved_by_tls_alpn_01_for_an_account_that_is_bound_to_another() {
    let (site, ports) = (Site::new(), Ports::new(true));
    let Some(pebble) = Pebble::start(&site, ports, 3600) else {
        return;
    };
    let tls = ports.tls;
    let server = format!(
        "server {{ listen {tls} ssl; server_name b.example 127.0.0.1; acme_certificate pebble key=ecdsa:384; {SHOWN}
         return 200 hello; }}"
    );
    // An authority that is not there.
    let nowhere = free_address();
    site.configure(
        "worker_processes 2;",
        &format!("acme_issuer pebble {{ uri https://{nowhere}/dir; ssl_trusted_certificate ca.pem; state_path off; }} {server}"),
    );
    let master = site.start();
    assert_eq!(get(&site, "b.example", tls), None);
    site.wait_for_log("cannot load certificate \"$acme_certificate\": the certificate has not been issued yet while SSL handshaking");
    site.wait_for_log("is not issued: connect()");
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let settings = format!(
        "challenge tls-alpn-01; account_key rsa:2048; external_account_key kid-1 data:{key};
         accept_terms_of_service; state_path off;"
    );
    site.configure(
        "worker_processes 2;",
        &format!("{} {server}", pebble.issuer(&settings)),
    );
    send(master, Signal::Hangup);
    let answer = wait_for("the certificate", || get(&site, "b.example", tls));
    assert_eq!(answer, "hello");
    let names = certificate("b.example", tls, "-ext subjectAltName").unwrap();
    assert!(
        names.contains("DNS:b.example, IP Address:127.0.0.1"),
        "{names}"
    );
    assert!(
        certificate("b.example", tls, "-text")
            .unwrap()
            .contains("P-384")
    );
    // A reload keeps what was issued.
    let serial = certificate("b.example", tls, "-serial");
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 3 is in force");
    assert_eq!(certificate("b.example", tls, "-serial"), serial);
    assert_eq!(site.error_log().matches("is issued; the next").count(), 1);
}
