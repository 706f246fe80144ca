//! The ClientHello, looked at.

use super::peer::Act;
use super::{A, B, Passing, in_stream};
use crate::server::{ADDRESS, SECOND};

/// The record of a ClientHello for this name, which offers `h2` and `http/1.1` and TLS 1.3.
fn hello(name: &str) -> Vec<u8> {
    let vector16 = |bytes: &[u8]| {
        let len = u16::try_from(bytes.len()).expect("it is short");
        [&len.to_be_bytes()[..], bytes].concat()
    };
    let host = [&[0][..], &vector16(name.as_bytes())].concat();
    let extension =
        |kind: u16, content: &[u8]| [&kind.to_be_bytes()[..], &vector16(content)].concat();
    let extensions = [
        extension(0, &vector16(&host)),
        extension(16, &vector16(b"\x02h2\x08http/1.1")),
        extension(43, &[4, 3, 4, 3, 3]),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &vector16(&[0x13, 1]),
        &[1, 0],
        &vector16(&extensions),
    ]
    .concat();
    let message = [&[1, 0][..], &vector16(&body)].concat();
    [&[22, 3, 1][..], &vector16(&message)].concat()
}

fn by_name() -> Passing {
    let text = in_stream(&format!(
        "map $ssl_preread_server_name $where {{ hostnames; a.example {A}; *.b.example group; default 127.0.0.1:9; }}
         log_format hello '$ssl_preread_server_name $ssl_preread_protocol $ssl_preread_alpn_protocols $status';
         access_log /hello.log hello; upstream group {{ server {B}; }}
         server {{ listen {ADDRESS}; ssl_preread on; proxy_pass $where; preread_timeout 5s; preread_buffer_size 512; }}"
    ));
    Passing::configured(&text, vec![Act::ReadAll])
}

#[test]
fn a_server_is_chosen_by_the_name_in_the_client_hello() {
    let mut passing = by_name();
    let other = passing.add(B, vec![Act::ReadAll]);
    for (name, connections) in [
        ("A.example", (1, 0)),
        ("x.b.example", (1, 1)),
        ("x.y.b.example", (1, 2)),
    ] {
        let client = passing.connect();
        let bytes = hello(name);
        client.send_each_byte(&bytes, SECOND / 1000);
        passing
            .server
            .run_to(passing.server.world.elapsed() + SECOND);
        client.send("behind it");
        passing
            .server
            .run_to(passing.server.world.elapsed() + SECOND);
        client.finish();
        passing
            .server
            .run_to(passing.server.world.elapsed() + SECOND);
        let counts = (passing.seen.connections(), other.connections());
        assert_eq!(counts, connections, "{name}");
        let seen = if counts.1 == 0 { &passing.seen } else { &other };
        let received = seen.received(seen.connections() - 1);
        assert!(received == [&bytes[..], b"behind it"].concat(), "{name}");
    }
    let lines = passing.server.logs.lines("/hello.log");
    assert_eq!(lines[0], "a.example TLSv1.3 h2,http/1.1 200");
    passing.server.assert_nothing_left(0);
}

#[test]
fn what_is_no_client_hello_is_passed_on_without_values() {
    let mut passing = by_name();
    let client = passing.connect();
    client.send("S");
    passing.server.run();
    assert!(client.is_closed());
    assert_eq!(passing.server.logs.lines("/hello.log"), ["- - - 502"]);
}

#[test]
fn a_client_hello_that_does_not_come_ends_the_session() {
    let whole = hello("a.example");
    let mut passing = by_name();
    let slow = passing.connect();
    slow.send(&whole[..20]);
    let ended = passing.connect();
    ended.send(&whole[..20]).finish();
    let long = passing.connect();
    long.send(b"\x16\x03\x01\x10\x00\x01\x00\x0f\xfc");
    passing.server.run_to(4 * SECOND);
    assert!(ended.is_closed() && long.is_closed() && !slow.is_closed());
    passing.server.run_to(6 * SECOND);
    assert!(slow.is_closed());
    assert_eq!(passing.seen.connections(), 0);
    let lines = passing.server.logs.lines("/hello.log");
    assert_eq!(lines, ["   200", "   400", "   200"]);
    assert!(
        passing
            .server
            .has_logged("preread buffer full while prereading client data, client: ")
    );
    passing.server.assert_nothing_left(0);
}
