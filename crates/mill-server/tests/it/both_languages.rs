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

const SESSIONS: &str = "
    listen 10.0.0.1:80;
    cache 0;
    srv_group app { server 10.0.0.2:80; server 10.0.0.3:80; }
    sticky { cookie name=t-id enforce max_misses=2; sticky_sessions allow_failover; secret \"abc\"; }
    vhost plain { proxy_pass app; }
    vhost scripts {
        proxy_pass app;
        sticky { cookie; js_challenge delay_min=1000 delay_range=1 resp_code=503; }
    }
    vhost forms { proxy_pass app; http_post_validate; sticky { cookie; } }
    http_chain { host == \"scripts.example\" -> scripts; host == \"forms.example\" -> forms; -> plain; }";

/// A server of Tempesta FW's language before origins that answer with their addresses and the type of the content.
fn with_sessions() -> Server {
    let mut server = Server::of_tempesta(World::new(3), SESSIONS);
    for address in ["10.0.0.2:80", "10.0.0.3:80"] {
        let (turn, _) = origin::start(&server.world, address, move |_, request| {
            let mut lines = request.lines();
            let kind = lines.find_map(|line| line.strip_prefix("Content-Type: "));
            vec![ok(&format!("{address} {}", kind.unwrap_or_default()))]
        });
        server.add_peer(turn);
    }
    server
}

#[test]
fn an_enforced_cookie_leads_a_session_to_one_server() {
    let mut server = with_sessions();
    let mut ask = |cookie: &str| {
        let text = format!("GET /a HTTP/1.1\r\nHost: plain.example\r\n{cookie}\r\n");
        let client = server.world.connect_from("10.0.1.1:0", ADDRESS);
        client.send(text);
        server.run();
        answers(&client.received()).remove(0)
    };
    let challenged = ask("");
    assert_eq!(challenged.status, 302);
    let location = challenged.field("Location");
    assert_eq!(location, Some("http://plain.example/a"));
    let set = challenged.field("Set-Cookie").expect("a cookie");
    assert!(set.starts_with("t-id="), "{set}");
    let cookie = set.split(';').next().expect("a name");
    let field = format!("Cookie: {cookie}\r\n");
    let first = ask(&field).text();
    for _ in 0..5 {
        assert_eq!(ask(&field).text(), first);
    }
}

#[test]
fn a_challenge_refuses_early_returns() {
    let mut server = with_sessions();
    let ask = |server: &mut Server, fields: &str| {
        let text = format!(
            "GET /a HTTP/1.1\r\nHost: scripts.example\r\nAccept: text/html\r\n{fields}\r\n"
        );
        let client = server.world.connect_from("10.0.1.1:0", ADDRESS);
        client.send(text);
        server.run();
        answers(&client.received()).remove(0)
    };
    let page = ask(&mut server, "");
    assert_eq!(page.status, 503);
    let set = page.field("Set-Cookie").expect("a cookie");
    let field = format!("Cookie: {}\r\n", set.split(';').next().expect("a name"));
    server.run_to(Duration::from_millis(999));
    assert_eq!(ask(&mut server, &field).status, 503);
    server.run_to(SECOND);
    assert_eq!(ask(&mut server, &field).status, 200);
}

#[test]
fn a_form_goes_on_with_its_boundary_as_the_only_parameter() {
    let mut server = with_sessions();
    let mut ask = |kind: &str| {
        let text = format!(
            "POST /a HTTP/1.1\r\nHost: forms.example\r\nContent-Type: {kind}\r\nContent-Length: 1\r\n\r\nx"
        );
        let client = server.world.connect_from("10.0.1.1:0", ADDRESS);
        client.send(text);
        server.run();
        let answer = answers(&client.received()).remove(0);
        let text = answer.text();
        let kind = text.split_once(' ').map_or("", |(_, kind)| kind);
        (answer.status, String::from(kind))
    };
    let mut check = |kind: &str, expected: &str| {
        let passed = (200, String::from(expected));
        assert_eq!(ask(kind), passed, "{kind}");
    };
    let form = "multipart/form-data; boundary=a-b";
    check(form, form);
    check("Multipart/form-data;charset=utf-8;Boundary=a-b; x=y", form);
    check(
        "multipart/form-data; boundary=\"a b\"; x=y",
        "multipart/form-data; boundary=\"a b\"",
    );
    check("text/plain; boundary=a; x=y", "text/plain; boundary=a; x=y");
    assert_eq!(ask("multipart/form-data; x=y").0, 400);
    assert_eq!(ask("multipart/form-data; boundary=a; boundary=b").0, 400);
}
