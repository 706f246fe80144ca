//! One site in Tempesta FW's language and in nginx's: clients see the same.

use crate::answer::answers;
use crate::proxy::origin::{self, ok};
use crate::server::{ADDRESS, SECOND, Server, in_http};
use mill_sim::world::World;
use std::time::Duration;

const ORIGIN: &str = "10.0.0.2:80";

const TEMPESTA: &str = "
    listen 10.0.0.1:80;
    cache 0;
    block_action attack reply;
    srv_group app { server 10.0.0.2:80; }
    frang_limits {
        request_rate 12 60; http_uri_len 20; http_methods get post head; http_header_cnt 6;
        http_ct_vals \"text/plain\"; http_body_len 10; http_resp_code_block 404 2 60;
        concurrent_tcp_connections 3;
    }
    vhost files { proxy_pass app; }
    vhost forms {
        proxy_pass app;
        frang_limits { http_methods put post; http_ct_vals \"image/\"; http_strict_host_checking false; }
    }
    http_chain { host == \"forms.example\" -> forms; -> files; }";

/// The server of a host has what Tempesta FW's vhost says.
fn nginx() -> String {
    let pass = "location / { proxy_pass http://10.0.0.2:80; }";
    in_http(&format!(
        "client_max_body_size 0; proxy_http_version 1.1;
         frang {{
            request_rate 12 60s; http_uri_len 20; http_methods get post head; http_header_cnt 6;
            http_ct_vals text/plain; http_body_len 10; http_resp_code_block 404 2 60s;
            concurrent_tcp_connections 3; http_strict_host_checking on; http_method_override_allowed off;
         }}
         server {{ listen {ADDRESS}; {pass} }}
         server {{ listen {ADDRESS}; server_name forms.example;
            frang {{ http_methods put post; http_ct_vals image/; http_strict_host_checking off; }} {pass} }}"
    ))
}

/// What clients ask, each from an address of its own, on one connection: lines of requests without their ends.
const CASES: &[&[&str]] = &[
    &["GET /a HTTP/1.1|Host: files.example"],
    &["GET /a?bcdefghijklmnopqrstuvw HTTP/1.1|Host: files.example"],
    &["PUT /a HTTP/1.1|Host: files.example|Content-Length: 0"],
    &["PUT /a HTTP/1.1|Host: forms.example|Content-Length: 0"],
    &["GET /a HTTP/1.1|Host: forms.example"],
    &["GET /a HTTP/1.1|Host: 10.0.0.1"],
    &["GET /a HTTP/1.1|Host: files.example:81"],
    &["PUT /a HTTP/1.1|Host: forms.example:81|Content-Length: 0"],
    &["GET http://files.example/a HTTP/1.1|Host: files.example"],
    &["GET http://files.example/a HTTP/1.1|Host: other.example"],
    &["GET /a HTTP/1.0|Host: files.example"],
    &["GET /a HTTP/1.1|Host: files.example|A: 1|B: 2|C: 3|D: 4|E: 5"],
    &["GET /a HTTP/1.1|Host: files.example|A: 1|B: 2|C: 3|D: 4|E: 5|F: 6"],
    &["GET /a HTTP/1.1|Host: files.example|X-HTTP-Method-Override: PUT"],
    &["POST /a HTTP/1.1|Host: files.example|Content-Length: 0"],
    &["POST /a HTTP/1.1|Host: files.example|Content-Length: 0|Content-Type: text/plain; x=y"],
    &["POST /a HTTP/1.1|Host: files.example|Content-Length: 0|Content-Type: image/png"],
    &["POST /a HTTP/1.1|Host: forms.example|Content-Length: 0|Content-Type: image/png"],
    &["POST /a HTTP/1.1|Host: files.example|Content-Length: 11|Content-Type: text/plain"],
    &["GET /none HTTP/1.1|Host: files.example"; 4],
    &["GET /a HTTP/1.1|Host: files.example"; 14],
];

/// Statuses, and whether the connection is closed at the end.
fn run(mut server: Server) -> Vec<(Vec<u16>, bool)> {
    let (turn, _) = origin::start(&server.world, ORIGIN, |_, request| {
        if request.starts_with("GET /none ") {
            let text = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            return vec![origin::send(text)];
        }
        vec![ok("fine")]
    });
    server.add_peer(turn);
    let mut seen = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let source = format!("10.0.1.{}:0", number + 1);
        let client = server.world.connect_from(&source, ADDRESS);
        for request in *case {
            client.send(format!("{}\r\n\r\n", request.replace('|', "\r\n")));
            server.run();
        }
        let received = client.received();
        let statuses = match received.is_empty() {
            true => Vec::new(),
            false => answers(&received)
                .iter()
                .map(|answer| answer.status)
                .collect(),
        };
        seen.push((statuses, client.is_closed()));
    }
    // Of one client only so many connections are open, and the others are reset.
    let many: Vec<_> = (0..5)
        .map(|_| server.world.connect_from("10.0.2.1:0", ADDRESS))
        .collect();
    server.run_to(server.world.elapsed() + SECOND + Duration::from_millis(1));
    seen.extend(many.iter().map(|client| (Vec::new(), client.was_reset())));
    seen
}

#[test]
fn a_site_with_limits_answers_alike_in_both_languages() {
    let tempesta = run(Server::of_tempesta(World::new(3), TEMPESTA));
    let nginx = run(Server::configured(World::new(3), &nginx(), 1));
    let named = CASES
        .iter()
        .map(|case| case[0])
        .chain(["one of five connections"; 5]);
    for ((name, one), other) in named.zip(&tempesta).zip(&nginx) {
        assert_eq!(one, other, "{name}");
    }
    let count = |status: u16| {
        let all = tempesta.iter().flat_map(|(statuses, _)| statuses);
        all.filter(|one| **one == status).count()
    };
    // What the cases show happens at all.
    assert_eq!((count(404), count(403)), (3, 13), "{tempesta:?}");
    let ended = tempesta.iter().filter(|(_, has_ended)| *has_ended).count();
    assert_eq!(ended, 16, "{tempesta:?}");
}
