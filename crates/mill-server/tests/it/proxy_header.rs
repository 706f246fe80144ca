//! The header of the PROXY protocol before the first request: `listen … proxy_protocol`.

use crate::answer::answers;
use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_sim::world::World;
use mill_upstream::proxy_protocol::{Ends, Tlv, emit_v2};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// `listen … proxy_protocol` at [`ADDRESS`]; the answers tell what the header told.
fn start(directives: &str) -> Server {
    let text = in_http(&format!(
        "log_format told '$remote_addr $proxy_protocol_addr $proxy_protocol_port'; \
         server {{ listen {ADDRESS} proxy_protocol; access_log /access.log told; {directives} \
         location / {{ return 200 '$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr \
         $proxy_protocol_server_port [$proxy_protocol_tlv_authority] [$proxy_protocol_tlv_0x02] \
         [$proxy_protocol_tlv_ssl_verify] [$proxy_protocol_tlv_nonsense]'; }} }}"
    ));
    Server::configured(World::new(1), &text, 1)
}

/// What the answers to one connection's bytes tell.
fn told(bytes: &[u8]) -> Vec<String> {
    let mut server = start("");
    let client = server.connect();
    client.send(bytes);
    server.run();
    let answers = answers(&client.received()).into_iter();
    answers
        .map(|answer| String::from_utf8(answer.content).expect("text"))
        .collect()
}

fn v2(tlvs: &[Tlv<'_>]) -> Vec<u8> {
    let ends = Ends::Ip {
        source: "[2001:db8::1]:1234".parse().expect("an address"),
        destination: "[2001:db8::2]:443".parse().expect("an address"),
    };
    let mut header = Vec::new();
    emit_v2(Some(ends), tlvs, true, &mut header);
    header
}

#[test]
fn a_header_tells_both_ends_to_every_request_behind_it() {
    let v1 = "PROXY TCP4 192.0.2.7 192.0.2.8 1234 80\r\n";
    let all = told(format!("{v1}{REQUEST}{REQUEST}").as_bytes());
    assert_eq!(all, ["192.0.2.7 1234 192.0.2.8 80 [] [] [] []"; 2]);
    let ssl = [&[1, 0, 0, 0, 7][..], &[0x22, 0, 1, b'n']].concat();
    let tlvs = [(2, &b"name"[..]), (0x20, &ssl)].map(|(kind, value)| Tlv { kind, value });
    let all = told(&[&v2(&tlvs), REQUEST.as_bytes()].concat());
    assert_eq!(
        all,
        ["2001:db8::1 1234 2001:db8::2 443 [name] [name] [7] []"]
    );
}

#[test]
fn a_sender_that_speaks_for_itself_tells_nothing() {
    let mut local = Vec::new();
    emit_v2(None, &[], false, &mut local);
    for header in [&b"PROXY UNKNOWN\r\n"[..], b"PROXY UNKNOWN a b\r\n", &local] {
        let all = told(&[header, REQUEST.as_bytes()].concat());
        assert_eq!(all, ["    [] [] [] []"]);
    }
}

#[test]
fn a_header_may_arrive_byte_by_byte() {
    for header in [
        v2(&[]),
        b"PROXY TCP4 192.0.2.7 192.0.2.8 1234 80\r\n".to_vec(),
    ] {
        let mut server = start("");
        let client = server.connect();
        client.send_each_byte([&header, REQUEST.as_bytes()].concat(), 10 * MS);
        server.run();
        let answers = answers(&client.received());
        assert_eq!(answers.len(), 1);
        assert!(!answers[0].content.starts_with(b" "), "it tells the client");
        assert_eq!(server.counters().requests, 1);
        client.finish();
        server.run_until_idle();
        server.assert_nothing_left(0);
    }
}

#[test]
fn what_is_no_header_closes_the_connection_and_is_logged() {
    let check = |bytes: &[u8], log: &str| {
        let mut server = start("");
        let client = server.connect();
        client.send(bytes).finish();
        server.run();
        let shown = bytes.escape_ascii();
        assert_eq!(client.received(), b"", "{shown}");
        assert!(client.is_closed(), "{shown}");
        let counters = server.counters();
        let counts = (counters.requests, counters.refused_proxy_header);
        assert_eq!(counts, (0, 1), "{shown}");
        let line = format!(
            "{log} while reading PROXY protocol, client: {}, server: {ADDRESS}",
            client.address().to_string().split(':').next().unwrap()
        );
        assert!(server.has_logged(&line), "{line}: {:?}", server.error_log());
        server.run_until_idle();
        server.assert_nothing_left(0);
    };
    check(REQUEST.as_bytes(), "broken header: \"GET / HTTP/1.1\"");
    check(
        b"PROXY TCP4 1.2.3\r\n",
        "broken header: \"PROXY TCP4 1.2.3\"",
    );
    check(b"PROXY TCP", "broken header: \"PROXY TCP\"");
    let long = "x".repeat(200);
    check(
        format!("PROXY UNKNOWN {long}").as_bytes(),
        &format!("broken header: \"PROXY UNKNOWN {long}\""),
    );
    let mut wrong = v2(&[]);
    wrong[12] = 0x31;
    check(&wrong, "unknown PROXY protocol version: 3");
    let mut huge = v2(&[]);
    huge[14..16].copy_from_slice(&[0xff, 0xff]);
    check(&huge, "header is too large: 65551 bytes, at most 4096");
}

#[test]
fn a_header_that_never_becomes_whole_costs_client_header_timeout() {
    for (sent, log) in [
        ("", "client timed out (110: Connection timed out)"),
        ("PROXY TC", "client timed out (110: Connection timed out)"),
    ] {
        let mut server = start("client_header_timeout 5s;");
        let client = server.connect();
        client.send(sent);
        server.run_to(4 * SECOND);
        assert!(!client.is_closed());
        server.run_to(6 * SECOND);
        assert!(client.is_closed(), "{sent}");
        assert_eq!(server.counters().timeout_header, 1);
        assert!(server.has_logged(&format!("{log} while reading PROXY protocol")));
        server.assert_nothing_left(0);
    }
}

#[test]
fn a_client_that_leaves_before_the_header_is_logged_so() {
    let mut server = start("");
    server.connect().finish();
    server.run();
    assert!(server.has_logged("client closed connection while reading PROXY protocol"));
    server.assert_nothing_left(0);
}

#[test]
fn the_time_for_the_header_is_not_given_again_to_the_request() {
    let mut server = start("client_header_timeout 5s;");
    let client = server.connect();
    client.at(4 * SECOND).send("PROXY UNKNOWN\r\n");
    server.run_to(6 * SECOND);
    assert!(client.is_closed());
    assert!(server.has_logged("while waiting for request"));
}

#[test]
fn each_local_address_has_its_own_setting() {
    let text = in_http(
        "server { listen 80; location / { return 200 plain; } } \
         server { listen 10.0.0.1:80 proxy_protocol; location / { return 200 $proxy_protocol_addr; } }",
    );
    let mut server = Server::configured(World::new(1), &text, 1);
    let mut ask = |address: &str, bytes: String| {
        let client = server.world.connect(address);
        client.send(bytes);
        server.run();
        let mut all = answers(&client.received());
        String::from_utf8(all.remove(0).content).unwrap()
    };
    assert_eq!(ask("10.0.0.2:80", REQUEST.to_owned()), "plain");
    let proxied = format!("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n{REQUEST}");
    assert_eq!(ask("10.0.0.1:80", proxied), "192.0.2.7");
}
