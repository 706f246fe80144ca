//! `health_check type=grpc`, with gRPC's own library (grpcio) as the servers; and probes over HTTP/2.

use crate::client::get;
use crate::proxy_tls::{Nginx as Ended, certify};
use crate::site::{Site, free_address, wait_for};
use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

/// Debian's interpreter, which has the libraries (`setup/ensure test`).
const PYTHON: &str = "/usr/bin/python3";
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/grpc/health.py");

fn has_libraries() -> bool {
    let words = ["-c", "import grpc, google.protobuf"];
    let output = Command::new(PYTHON).args(words).output();
    output.is_ok_and(|output| output.status.success())
}

/// A server whose states and callers are in the files `NAME.states` and `NAME.peers` of the site.
fn serve(site: &Site, name: &str, secrets: &[&str]) -> (SocketAddr, Ended) {
    let address = free_address();
    let server = Command::new(PYTHON)
        .args([SERVER, &address.port().to_string()])
        .args([format!("{name}.states"), format!("{name}.peers")])
        .args(secrets)
        .current_dir(site.path(""))
        .stderr(Stdio::null())
        .spawn();
    let ended = Ended(server.unwrap());
    wait_for("the gRPC server", || TcpStream::connect(address).ok());
    (address, ended)
}

/// Has a server say this from now on.
fn set_states(site: &Site, name: &str, states: &str) {
    // Read whole or not at all.
    fs::write(site.path("new.states"), states).unwrap();
    fs::rename(site.path("new.states"), site.path(format!("{name}.states"))).unwrap();
}

/// The states of a group's servers, as the API tells them.
fn states(front: SocketAddr, group: &str) -> Vec<String> {
    let answer = get(front, &format!("/api/9/http/upstreams/{group}")).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&answer.content).unwrap();
    let peers = document["peers"].as_array().unwrap().iter();
    peers
        .map(|peer| peer["state"].as_str().unwrap().to_owned())
        .collect()
}

fn wait_for_states(site: &Site, front: SocketAddr, group: &str, expected: &[&str]) {
    let mut found = Vec::new();
    for _ in 0..4000 {
        found = states(front, group);
        if found == expected {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    panic!("{group}: {found:?}, not {expected:?}\n{}", site.error_log());
}

#[test]
fn servers_that_say_they_serve_get_requests() {
    if !has_libraries() {
        return;
    }
    let (site, front) = (Site::new(), free_address());
    certify(&site, &["b.example"]);
    for name in ["first", "second", "secured"] {
        set_states(&site, name, "- SERVING\nmill.Test SERVING\n");
    }
    let (first, _one) = serve(&site, "first", &[]);
    let (second, _two) = serve(&site, "second", &[]);
    let secrets = ["b.example.pem", "b.example.key"];
    let (secured, _three) = serve(&site, "secured", &secrets);
    let (without, _four) = serve(&site, "without", &[]);
    let groups = [
        ("whole", "type=grpc", vec![first, second]),
        ("service", "type=grpc grpc_service=mill.Test", vec![first]),
        (
            "kept",
            "keepalive_time=1h type=grpc grpc_service=mill.Kept",
            vec![second],
        ),
        ("unknown", "type=grpc grpc_service=mill.None", vec![first]),
        (
            "unknown_is_well",
            "type=grpc grpc_service=mill.None grpc_status=5",
            vec![first],
        ),
        ("lacking", "type=grpc", vec![without]),
        ("lacking_is_well", "type=grpc grpc_status=12", vec![without]),
        ("secured", "type=grpc", vec![secured]),
    ];
    let mut text = String::new();
    let mut locations = String::new();
    for (name, parameters, servers) in &groups {
        let servers = servers.iter().map(|server| format!("server {server};"));
        text += &format!(
            "upstream {name} {{ zone {name} 64k; {} }}\n",
            servers.collect::<String>()
        );
        let scheme = if *name == "secured" { "grpcs" } else { "grpc" };
        locations += &format!(
            "location /{name} {{ grpc_pass {scheme}://{name}; health_check mandatory interval=50ms {parameters}; }}\n"
        );
    }
    site.configure(
        "",
        &format!(
            "{text} server {{ listen {front}; grpc_ssl_verify on; grpc_ssl_trusted_certificate ca.pem; grpc_ssl_name b.example;
             location /api {{ api; }} {locations} }}"
        ),
    );
    site.start();
    let check = |group: &str, expected: &[&str]| wait_for_states(&site, front, group, expected);
    check("whole", &["up", "up"]);
    for well in ["service", "unknown_is_well", "lacking_is_well", "secured"] {
        check(well, &["up"]);
    }
    for ill in ["unknown", "lacking", "kept"] {
        check(ill, &["unhealthy"]);
    }
    let log = |text: &str| site.wait_for_log(text);
    log(&format!(
        "peer is healthy while checking gRPC health, health check \"\" of peer {first} in upstream \"whole\""
    ));
    log(&format!(
        "peer is unhealthy while checking gRPC status, health check \"\" of peer {without} in upstream \"lacking\""
    ));
    log("peer is healthy while checking gRPC status, health check");
    // Many probes of one connection; the others have one each.
    let probes_before = callers(&site, "second").0;
    set_states(&site, "second", "- NOT_SERVING\nmill.Kept SERVING\n");
    check("whole", &["up", "unhealthy"]);
    check("kept", &["up"]);
    log(&format!(
        "peer is unhealthy while checking gRPC health, health check \"\" of peer {second} in upstream \"whole\""
    ));
    wait_for("more probes", || {
        (callers(&site, "second").0 > probes_before + 20).then_some(())
    });
    let (probes, connections) = callers(&site, "second");
    // Two checks take turns: about every second probe has a connection of its own.
    assert!(
        connections < probes * 3 / 4 && connections > probes / 4,
        "{connections} for {probes}"
    );
    set_states(&site, "second", "- SERVING\n");
    check("whole", &["up", "up"]);
    set_states(&site, "first", "- UNKNOWN\nmill.Test SERVICE_UNKNOWN\n");
    check("whole", &["unhealthy", "up"]);
    check("service", &["unhealthy"]);
}

/// Calls of a server's health service, and the connections on which they came.
fn callers(site: &Site, name: &str) -> (usize, usize) {
    let peers = fs::read_to_string(site.path(format!("{name}.peers"))).unwrap_or_default();
    (
        peers.lines().count(),
        peers.lines().collect::<BTreeSet<_>>().len(),
    )
}

#[test]
fn probes_of_a_location_with_http2_speak_it_too() {
    let (site, front, behind) = (Site::new(), free_address(), free_address());
    let checks = [("once", ""), ("kept", "keepalive_time=1h")];
    let groups = checks.map(|(name, parameters)| {
        format!(
            "upstream {name} {{ zone {name} 64k; server {behind}; }}
             server {{ listen unix:{folder}/{name}; location / {{ proxy_pass http://{name}; proxy_http_version 2;
             health_check mandatory interval=50ms uri=/up match=two {parameters}; }} }}",
            folder = site.path("").display(),
        )
    });
    site.configure(
        "",
        &format!(
            "match two {{ status 200; body ~ \"^h2c$\"; }} {}
             server {{ listen {behind}; http2 on; location = /up {{ return 200 $http2; }} }}
             server {{ listen {front}; location /api {{ api; }} }}",
            groups.concat(),
        ),
    );
    site.start();
    for (name, _) in checks {
        wait_for_states(&site, front, name, &["up"]);
    }
}

#[test]
fn words_that_do_not_go_together_are_refused() {
    let site = Site::new();
    for (pass, parameters, expected) in [
        (
            "proxy_pass http://127.0.0.1:1",
            "type=grpc",
            "\"health_check type=grpc\" requires \"grpc_pass\"",
        ),
        (
            "grpc_pass 127.0.0.1:1",
            "grpc_status=12",
            "\"grpc_service\" and \"grpc_status\" require \"type=grpc\"",
        ),
        (
            "grpc_pass 127.0.0.1:1",
            "type=grpc uri=/a",
            "\"type=grpc\" does not go with \"uri\" and \"match\"",
        ),
        (
            "grpc_pass 127.0.0.1:1",
            "type=grpc match=m",
            "\"type=grpc\" does not go with \"uri\" and \"match\"",
        ),
        (
            "grpc_pass 127.0.0.1:1",
            "type=grpc grpc_status=0",
            "invalid parameter \"grpc_status=0\"",
        ),
        (
            "grpc_pass 127.0.0.1:1",
            "type=grpc grpc_status=17",
            "invalid parameter \"grpc_status=17\"",
        ),
        (
            "grpc_pass 127.0.0.1:1",
            "type=grpc grpc_service=",
            "invalid parameter \"grpc_service=\"",
        ),
    ] {
        let location = format!("location / {{ {pass}; health_check {parameters}; }}");
        site.configure(
            "",
            &format!("match m {{ status 200; }} server {{ {location} }}"),
        );
        let output = site.nginx(&["-t"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{parameters}: {stderr}");
        assert!(
            stderr.contains(expected) && stderr.contains("nginx.conf:"),
            "{parameters}: {stderr}"
        );
    }
}
