//! `grpc_pass`, with gRPC's own library (grpcio) on both sides.

use crate::proxy_tls::{Nginx as Ended, openssl};
use crate::site::{Site, free_address, wait_for};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

/// Debian's interpreter, which has the library (`setup/ensure test`).
const PYTHON: &str = "/usr/bin/python3";
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/grpc/peer.py");

/// Whether the library is there.
fn has_library() -> bool {
    let output = Command::new(PYTHON).args(["-c", "import grpc"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn serve(site: &Site, address: SocketAddr, secrets: &[&str]) -> Ended {
    let server = Command::new(PYTHON)
        .args([PEER, "serve", &address.port().to_string()])
        .args(secrets)
        .current_dir(site.path(""))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ended = Ended(server);
    wait_for("the gRPC server", || TcpStream::connect(address).ok());
    ended
}

/// What the client says of all its calls.
fn ask(site: &Site, address: SocketAddr, authority: &[&str]) -> String {
    let output = Command::new("timeout")
        .args(["100", PYTHON, PEER, "ask", &address.to_string()])
        .args(authority)
        .current_dir(site.path(""))
        .output()
        .unwrap();
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    stdout + &stderr
}

fn certify(site: &Site) {
    fs::write(site.path("names"), "subjectAltName=DNS:a.example\n").unwrap();
    let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256";
    openssl(
        site,
        &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 30 -subj /CN=ca"),
    );
    openssl(
        site,
        &format!("req {key} -keyout a.key -out a.csr -subj /CN=a.example"),
    );
    openssl(
        site,
        "x509 -req -in a.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out a.pem -days 30 -extfile names",
    );
}

#[test]
fn calls_of_every_kind_pass_in_clear_and_under_tls() {
    if !has_library() {
        return;
    }
    let site = Site::new();
    certify(&site);
    let [plain, secured, front, front_tls] = [(); 4].map(|()| free_address());
    let _behind = [
        serve(&site, plain, &[]),
        serve(&site, secured, &["a.pem", "a.key"]),
    ];
    let limits = "client_max_body_size 0; http2_max_concurrent_streams 1000;";
    site.configure(
        "",
        &format!(
            "upstream group {{ server {plain}; }}
             server {{ listen {front}; http2 on; {limits} location / {{ grpc_pass group; }} }}
             server {{ listen {front_tls} ssl; http2 on; {limits} server_name a.example; ssl_certificate a.pem; ssl_certificate_key a.key;
             location / {{ grpc_pass grpcs://{secured}; grpc_ssl_verify on; grpc_ssl_trusted_certificate ca.pem;
             grpc_ssl_name a.example; grpc_ssl_server_name on; }} }}"
        ),
    );
    site.start();
    assert_eq!(ask(&site, plain, &[]), "all is well\n", "without a proxy");
    assert_eq!(
        ask(&site, front, &[]),
        "all is well\n",
        "{}",
        site.error_log()
    );
    assert_eq!(
        ask(&site, front_tls, &["ca.pem"]),
        "all is well\n",
        "{}",
        site.error_log()
    );
}
