//! Answers of OCSP, fetched from OpenSSL's responder and shown to its client.

use crate::proxy_tls::openssl;
use crate::site::{Site, free_address, send, wait_for};
use crate::tls::{ECDSA, certify};
use mill_sys::signal::Signal;
use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// OpenSSL's responder, until it is dropped. It knows `good.example` and `revoked.example`.
struct Responder(Child);

impl Responder {
    fn start(site: &Site, address: SocketAddr) -> Self {
        let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256";
        let ca = "req -x509 -keyout ca.key -out ca.pem -days 30 -subj /CN=ca";
        openssl(site, &format!("{ca} {key}"));
        let mut index = String::new();
        for (name, serial, state) in [
            ("good.example", "0A", "V\t351231235959Z\t"),
            ("revoked.example", "0B", "R\t351231235959Z\t250101000000Z"),
        ] {
            openssl(
                site,
                &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"),
            );
            let extensions = format!(
                "subjectAltName=DNS:{name}\nauthorityInfoAccess=OCSP;URI:http://{address}\n"
            );
            fs::write(site.path("extensions"), extensions).unwrap();
            let signed = format!("-CA ca.pem -CAkey ca.key -set_serial 0x{serial}");
            openssl(
                site,
                &format!(
                    "x509 -req -in {name}.csr {signed} -out {name}.pem -days 30 -extfile extensions"
                ),
            );
            index += &format!("{state}\t{serial}\tunknown\t/CN={name}\n");
        }
        fs::write(site.path("index"), index).unwrap();
        let said = fs::File::create(site.path("responder.log")).unwrap();
        let child = Command::new("openssl")
            .args([
                "ocsp", "-index", "index", "-rsigner", "ca.pem", "-rkey", "ca.key",
            ])
            .args([
                "-CA",
                "ca.pem",
                "-ndays",
                "1",
                "-port",
                &address.port().to_string(),
            ])
            .current_dir(site.path(""))
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        let responder = Self(child);
        // A connection without a request would block it.
        wait_for("the responder", || {
            let said = fs::read_to_string(site.path("responder.log")).unwrap();
            said.contains("waiting for OCSP").then_some(())
        });
        responder
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What OpenSSL's client says of the answer that it is shown.
fn shown(name: &str, address: SocketAddr) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-status", "-servername", name])
        .args(["-connect", &address.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn answers_of_ocsp_are_fetched_and_shown_and_outlive_a_reload() {
    let (site, address, at) = (Site::new(), free_address(), free_address());
    let responder = Responder::start(&site, at);
    certify(&site, "own.example", &ECDSA);
    let server = |name: &str, more: &str| {
        format!(
            "server {{ listen {address} ssl; server_name {name}; ssl_certificate {name}.pem;
             ssl_certificate_key {name}.key; ssl_stapling on; {more} }}"
        )
    };
    // The issuer is found among the trusted certificates.
    let trusted = "ssl_trusted_certificate ca.pem;";
    site.configure(
        "worker_processes 2;",
        &[
            server(
                "good.example",
                &format!("{trusted} ssl_stapling_verify on;"),
            ),
            server(
                "revoked.example",
                &format!("{trusted} ssl_stapling_responder http://{at}/ocsp;"),
            ),
            server("own.example", ""),
        ]
        .concat(),
    );
    let master = site.start();
    let is_good = || shown("good.example", address).contains("Cert Status: good");
    wait_for("an answer", || is_good().then_some(()));
    site.wait_for_log(&format!(
        "certificate status \"revoked\" in the OCSP response while requesting certificate status, responder: http://{at}/ocsp, certificate: \""
    ));
    site.wait_for_log("\"ssl_stapling\" ignored, issuer certificate not found \"");
    for name in ["revoked.example", "own.example"] {
        let said = shown(name, address);
        assert!(
            said.contains("OCSP response: no response sent"),
            "{name}: {said}"
        );
    }
    drop(responder);
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    assert!(is_good());
}

/// What a client with this certificate gets.
fn get(site: &Site, client: &str, address: SocketAddr, options: &[&str]) -> String {
    let output = Command::new("curl")
        .args([
            "-sSk",
            "--max-time",
            "20",
            "--cert",
            &format!("{client}.pem"),
        ])
        .args(["--key", &format!("{client}.key"), "-w", " %{http_code}"])
        .args(options)
        .arg(format!("https://{address}/"))
        .current_dir(site.path(""))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{}", site.error_log());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn clients_are_let_in_only_if_their_issuer_says_that_the_certificate_is_good() {
    let (site, address, at) = (Site::new(), free_address(), free_address());
    let uncached = free_address();
    let responder = Responder::start(&site, at);
    let server = |address: SocketAddr, more: &str| {
        format!(
            "server {{ listen {address} ssl; http2 on; ssl_certificate good.example.pem;
             ssl_certificate_key good.example.key; ssl_verify_client on; ssl_client_certificate ca.pem;
             {more} error_page 495 = /refused; location / {{ return 200 $ssl_client_verify; }} }}"
        )
    };
    let cached = "ssl_ocsp on; ssl_ocsp_cache shared:ocsp:1m;";
    site.configure(
        "",
        &[server(address, cached), server(uncached, "ssl_ocsp leaf;")].concat(),
    );
    let master = site.start();
    for options in [&["--http1.1"], &["--http2"]] {
        assert_eq!(get(&site, "good.example", address, options), "SUCCESS 200");
        let refused = get(&site, "revoked.example", address, options);
        assert_eq!(refused, "FAILED:certificate revoked 200");
    }
    assert_eq!(get(&site, "good.example", uncached, &[]), "SUCCESS 200");
    site.wait_for_log("client SSL certificate verify error: certificate revoked while reading client request headers");
    drop(responder);
    // The cache outlives a reload.
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    assert_eq!(get(&site, "good.example", address, &[]), "SUCCESS 200");
    let unknown = get(&site, "good.example", uncached, &[]);
    assert_eq!(unknown, "FAILED:certificate status request failed 200");
    site.wait_for_log("connect() to");
    site.configure(
        "",
        &server(address, "ssl_ocsp on; ssl_verify_client optional_no_ca;")
            .replace("ssl_verify_client on;", ""),
    );
    let output = site.nginx(&["-t"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr
            .contains("\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\" in "),
        "{stderr}"
    );
}

/// What a session with this certificate is told.
fn said_to(site: &Site, client: &str, address: SocketAddr) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address.to_string()])
        .args(["-cert", &format!("{client}.pem")])
        .args(["-key", &format!("{client}.key")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .current_dir(site.path(""))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn sessions_of_stream_are_let_in_only_if_the_issuer_says_that_the_certificate_is_good() {
    let (site, address, at) = (Site::new(), free_address(), free_address());
    let responder = Responder::start(&site, at);
    let server = format!(
        "stream {{ server {{ listen {address} ssl; ssl_certificate good.example.pem;
         ssl_certificate_key good.example.key; ssl_verify_client on; ssl_client_certificate ca.pem;
         ssl_ocsp on; return \"$ssl_client_verify\"; }} }}"
    );
    site.configure(&server, "");
    site.start();
    assert_eq!(said_to(&site, "good.example", address), "SUCCESS");
    assert_eq!(said_to(&site, "revoked.example", address), "");
    site.wait_for_log(
        "client SSL certificate verify error: certificate revoked while SSL handshaking",
    );
    drop(responder);
    assert_eq!(said_to(&site, "good.example", address), "");
    site.wait_for_log(
        "client SSL certificate verify error: certificate status request failed while SSL handshaking",
    );
}
