//! A client and a server that talk to each other.

use super::*;
use crate::h2::frame::kind;
use alloc::format;
use alloc::string::String;

struct Pair {
    client: Connection,
    server: Connection,
}

/// What one side makes of what the other one has sent, one word an event.
fn deliver(from: &mut Connection, to: &mut Connection) -> String {
    let bytes = core::mem::take(from.output());
    let mut rest = &bytes[..];
    let mut said = Vec::new();
    while !rest.is_empty() {
        let (consumed, event) = to.on_bytes(rest, 0);
        let text = to.head().escape_ascii();
        match &event {
            Event::Handled | Event::Sendable => {}
            Event::Head { stream, end, .. } => said.push(format!("head {stream} {end} [{text}]")),
            Event::Answer {
                stream,
                status,
                end,
            } => said.push(format!("answer {stream} {status} {end} [{text}]")),
            Event::Trailers { stream } => said.push(format!("trailers {stream} [{text}]")),
            Event::Data { stream, range, end } => {
                let content = rest[range.clone()].escape_ascii();
                said.push(format!("data {stream} {end} [{content}]"));
            }
            Event::NeedMore(_) => panic!("half a frame"),
            other => said.push(format!("{other:?}")),
        }
        rest = &rest[consumed..];
    }
    said.join(" ")
}

impl Pair {
    fn new(settings: Settings) -> Self {
        let limits = Limits::default();
        let mut pair = Self {
            client: Connection::client(Settings::default(), limits),
            server: Connection::server(settings, limits),
        };
        assert_eq!(pair.reach_server(), "");
        assert_eq!(pair.reach_client(), "");
        assert_eq!(pair.reach_server(), "");
        assert!(pair.client.has_settings());
        pair
    }

    fn reach_server(&mut self) -> String {
        deliver(&mut self.client, &mut self.server)
    }

    fn reach_client(&mut self) -> String {
        deliver(&mut self.server, &mut self.client)
    }

    fn ask(&mut self, text: &str, end: bool) -> StreamId {
        let stream = self.client.open().unwrap();
        self.client
            .emit_request(stream, b"https", text.as_bytes(), end);
        stream
    }
}

const GET: &str =
    "GET /a:b HTTP/1.1\r\nHost: h:1\r\nConnection: keep-alive\r\nTE: trailers\r\nX: y\r\n\r\n";

#[test]
fn a_request_and_its_answer_pass_with_interim_heads_content_and_trailers() {
    let mut pair = Pair::new(Settings::default());
    let stream = pair.ask(GET, false);
    assert_eq!(
        pair.reach_server(),
        r"head 1 false [GET /a:b HTTP/2.0\r\nhost: h:1\r\nte: trailers\r\nx: y\r\n\r\n]"
    );
    pair.client.emit_data(stream, b"content", true, usize::MAX);
    assert_eq!(pair.reach_server(), "data 1 true [content]");
    let server = &mut pair.server;
    server.emit_head(
        stream,
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n",
        false,
    );
    server.emit_head(stream, b"HTTP/1.1 200 OK\r\nContent-Type: b\r\n\r\n", false);
    server.emit_data(stream, b"answer", false, usize::MAX);
    server.emit_head(stream, b"Grpc-Status: 0\r\n\r\n", true);
    assert_eq!(
        pair.reach_client(),
        "answer 1 103 false [HTTP/1.1 103 \\r\\nlink: a\\r\\n] \
         answer 1 200 false [HTTP/1.1 200 \\r\\ncontent-type: b\\r\\n] \
         data 1 false [answer] trailers 1 [grpc-status: 0\\r\\n]"
    );
    assert_eq!((pair.client.streams(), pair.server.streams()), (0, 0));
}

#[test]
fn streams_are_bounded_by_the_servers_settings_and_by_goaway() {
    let settings = Settings {
        max_concurrent_streams: 2,
        ..Settings::default()
    };
    let mut pair = Pair::new(settings);
    let first = pair.ask(GET, true);
    let second = pair.ask(GET, true);
    assert_eq!((first, second), (1, 3));
    assert_eq!(pair.client.open(), None);
    pair.reach_server();
    pair.server.emit_head(first, b"HTTP/1.1 204 \r\n\r\n", true);
    pair.reach_client();
    assert_eq!(pair.ask(GET, true), 5);
    pair.server.go_away();
    assert_eq!(pair.reach_client(), "Goaway { last: 3 }");
    pair.client.reset(second, ErrorCode::CANCEL);
    assert_eq!(pair.client.open(), None);
    assert!(!pair.client.may_open());
}

#[test]
fn an_answer_that_breaks_the_rules_ends_its_stream_only() {
    let mut pair = Pair::new(Settings::default());
    for wrong in [
        "HTTP/1.1 200 OK\r\nbad\x01name: x\r\n\r\n",
        "X: no status\r\n\r\n",
    ] {
        let stream = pair.ask(GET, true);
        pair.reach_server();
        pair.server.emit_head(stream, wrong.as_bytes(), false);
        let said = pair.reach_client();
        assert!(
            said.starts_with(&format!("Reset {{ stream: {stream}")),
            "{said}"
        );
    }
    let stream = pair.ask(GET, true);
    pair.reach_server();
    pair.server.emit_data(stream, b"early", false, usize::MAX);
    let said = pair.reach_client();
    assert!(said.contains("DATA before its head"), "{said}");
    assert!(!pair.client.has_ended());
    // What the server sends before it knows of the reset is passed over.
    pair.server
        .emit_head(stream, b"HTTP/1.1 200 \r\n\r\n", true);
    assert_eq!(pair.reach_client(), "");
    let stream = pair.ask(GET, true);
    pair.reach_server();
    pair.server
        .emit_head(stream, b"HTTP/1.1 200 \r\n\r\n", true);
    assert_eq!(
        pair.reach_client(),
        format!("answer {stream} 200 true [HTTP/1.1 200 \\r\\n]")
    );
}

#[test]
fn what_a_server_must_not_send_ends_the_connection() {
    for (kind, stream, payload) in [
        (kind::SETTINGS, 0, &b"\0\x02\0\0\0\x01"[..]),
        (kind::PRIORITY_UPDATE, 0, b"\0\0\0\x01u=1"),
        (kind::PUSH_PROMISE, 1, b"\0\0\0\x02\x88"),
        // Streams that no side has begun.
        (kind::HEADERS, 2, b"\x88"),
        (kind::HEADERS, 3, b"\x88"),
        (kind::DATA, 3, b"a"),
        (kind::RST_STREAM, 3, b"\0\0\0\x08"),
    ] {
        let mut pair = Pair::new(Settings::default());
        pair.ask(GET, true);
        pair.reach_server();
        let header = FrameHeader {
            len: payload.len(),
            kind,
            flags: 4,
            stream,
        };
        let output = pair.server.output();
        output.extend_from_slice(&header.to_bytes());
        output.extend_from_slice(payload);
        let said = pair.reach_client();
        assert!(
            said.starts_with("Ended { code: PROTOCOL_ERROR"),
            "{kind}: {said}"
        );
    }
    // What it may say: that it pushes nothing.
    let mut pair = Pair::new(Settings::default());
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x02\0\0\0\0";
    pair.server.output().extend_from_slice(settings);
    assert_eq!(pair.reach_client(), "");
}

#[test]
fn an_answer_has_the_content_that_it_has_promised() {
    for (pieces, trailers, expected) in [
        (&["abc"][..], "", "data 1 true [abc]"),
        (
            &["ab", "c"],
            "X: y\r\n\r\n",
            "data 1 false [ab] data 1 false [c] trailers 1 [x: y\\r\\n]",
        ),
        (&["ab"], "", "Reset"),
        (&["ab"], "X: y\r\n\r\n", "data 1 false [ab] Reset"),
        (&["abcd"], "X: y\r\n\r\n", "Reset"),
    ] {
        let mut pair = Pair::new(Settings::default());
        let stream = pair.ask(GET, true);
        pair.reach_server();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
        pair.server.emit_head(stream, head, false);
        pair.reach_client();
        pair.client.promise(stream, 3).unwrap();
        for (number, piece) in (1..).zip(pieces) {
            let ends = number == pieces.len() && trailers.is_empty();
            (pair.server).emit_data(stream, piece.as_bytes(), ends, usize::MAX);
        }
        if !trailers.is_empty() {
            pair.server.emit_head(stream, trailers.as_bytes(), true);
        }
        let said = pair.reach_client();
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn trailers_of_an_answer_are_whole_or_malformed() {
    let mut pair = Pair::new(Settings::default());
    let long = "x".repeat(20_000);
    for (trailers, expected) in [
        (String::from("X: y\r\n\r\n"), "trailers"),
        (format!("A: {long}\r\nB: {long}\r\n\r\n"), "Reset"),
        (String::from("bad\x01name: x\r\n\r\n"), "Reset"),
    ] {
        let stream = pair.ask(GET, true);
        pair.reach_server();
        pair.server
            .emit_head(stream, b"HTTP/1.1 200 OK\r\n\r\n", false);
        pair.reach_client();
        pair.server.emit_head(stream, trailers.as_bytes(), true);
        let said = pair.reach_client();
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_peer_that_measures_the_path_may_ping_as_often_as_content_comes() {
    let mut pair = Pair::new(Settings::default());
    let stream = pair.ask(GET, false);
    pair.reach_server();
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    for _ in 0..1000 {
        pair.client.emit_data(stream, b"x", false, usize::MAX);
        pair.client.output().extend_from_slice(&ping);
        assert_eq!(pair.reach_server(), "data 1 false [x]");
        pair.server.output().clear();
    }
    assert!(!pair.server.has_ended());
    for _ in 0..200 {
        pair.client.output().extend_from_slice(&ping);
    }
    pair.reach_server();
    assert!(pair.server.has_ended());
}
