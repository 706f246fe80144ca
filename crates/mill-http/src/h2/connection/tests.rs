//! Frames in, events and frames out.

use super::*;
use crate::h2::frame::{emit_headers, flag, kind};
use crate::h2::hpack::{Encoder, Indexing};
use alloc::format;
use alloc::string::String;
use alloc::vec;

/// A server and what a client sends to it.
struct Client {
    server: Connection,
    encoder: Encoder,
    now_seconds: u64,
}

fn frame(kind: u8, flags: u8, stream: StreamId, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader {
        len: payload.len(),
        kind,
        flags,
        stream,
    };
    [&header.to_bytes()[..], payload].concat()
}

impl Client {
    /// Behind the preface and both SETTINGS.
    fn new(settings: Settings) -> Self {
        let mut client = Self::silent(settings);
        client.send(PREFACE);
        client.send(&frame(kind::SETTINGS, 0, 0, &[]));
        client.send(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
        client.server.output().clear();
        client
    }

    fn silent(settings: Settings) -> Self {
        Self {
            server: Connection::server(settings, Limits::default()),
            encoder: Encoder::new(),
            now_seconds: 0,
        }
    }

    /// All events of these bytes, with what they lend in brackets.
    fn send(&mut self, mut bytes: &[u8]) -> String {
        let mut said = Vec::new();
        while !bytes.is_empty() {
            let (consumed, event) = self.server.on_bytes(bytes, self.now_seconds);
            match &event {
                Event::Handled | Event::Sendable => {}
                Event::NeedMore(needed) => {
                    said.push(format!("need {needed}"));
                    break;
                }
                Event::Head { stream, end, .. } => {
                    let text = self.server.head().escape_ascii();
                    said.push(format!("head {stream} {end} [{text}]"));
                }
                Event::Data { stream, range, end } => {
                    let content = bytes[range.clone()].escape_ascii();
                    said.push(format!("data {stream} {end} [{content}]"));
                }
                Event::Answer { .. } | Event::Trailers { .. } => said.push(String::from("answer")),
                Event::End { stream } => said.push(format!("end {stream}")),
                Event::Reset { stream, code, .. } => said.push(format!("reset {stream} {code:?}")),
                Event::Goaway { last } => said.push(format!("goaway {last}")),
                Event::Ended { code, .. } => {
                    said.push(format!("ended {code:?}"));
                    break;
                }
            }
            bytes = &bytes[consumed..];
        }
        said.join(" ")
    }

    fn request(&mut self, stream: StreamId, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder.field(name, value, Indexing::Kept, &mut block);
        }
        let mut out = Vec::new();
        emit_headers(stream, &block, end, 16_384, &mut out);
        out
    }

    fn get(&mut self, stream: StreamId) -> String {
        let request = self.request(stream, &GET, true);
        self.send(&request)
    }

    fn post(&mut self, stream: StreamId) -> String {
        let request = self.request(stream, &POST, false);
        self.send(&request)
    }

    /// What the server has sent since, one word a frame.
    fn sent(&mut self) -> String {
        let output = core::mem::take(self.server.output());
        let mut rest = &output[..];
        let mut said = Vec::new();
        while let Some(header) = FrameHeader::parse(rest) {
            let (payload, behind) = rest[HEADER_BYTES..].split_at(header.len);
            rest = behind;
            let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            let (stream, flags) = (header.stream, header.flags);
            said.push(match header.kind {
                kind::DATA => format!("data {stream} {} {flags}", header.len),
                kind::HEADERS => format!("headers {stream} {flags}"),
                kind::RST_STREAM => format!("reset {stream} {:?}", ErrorCode(number(0))),
                kind::GOAWAY => format!("goaway {} {:?}", number(0), ErrorCode(number(4))),
                kind::WINDOW_UPDATE => format!("window {stream} {}", number(0)),
                kind::PING => format!("ping {flags}"),
                kind::SETTINGS => format!("settings {flags}"),
                other => format!("{other}"),
            });
        }
        said.join(" ")
    }
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "h"),
];

const POST: [(&str, &str); 4] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/p"),
    (":authority", "h"),
];

const GET_TEXT: &str = r"[GET / HTTP/2.0\r\nhost: h\r\n\r\n]";

fn client() -> Client {
    Client::new(Settings {
        max_concurrent_streams: 3,
        initial_window_size: 100,
        ..Settings::default()
    })
}

#[test]
fn a_connection_begins_with_settings_of_both_sides() {
    let mut client = Client::silent(Settings::default());
    assert_eq!(client.sent(), "settings 0 window 0 2147418112");
    for byte in PREFACE {
        assert!(!client.send(&[*byte]).contains("ended"));
    }
    client.send(&frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 10]));
    assert_eq!(client.sent(), "settings 1");
    assert_eq!(client.get(1), format!("head 1 true {GET_TEXT}"));
    assert_eq!(client.server.sendable(1), 10);
    for beginning in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nXX"] {
        let mut other = Client::silent(Settings::default());
        assert_eq!(other.send(beginning), "ended PROTOCOL_ERROR");
    }
    let mut hasty = Client::silent(Settings::default());
    hasty.send(PREFACE);
    assert_eq!(hasty.get(1), "ended PROTOCOL_ERROR");
}

#[test]
fn a_request_and_its_answer_pass_through_all_states() {
    let mut client = client();
    assert!(client.post(1).starts_with("head 1 false "));
    let piece = frame(kind::DATA, 0, 1, b"abc");
    assert_eq!(client.send(&piece), "data 1 false [abc]");
    let padded = frame(kind::DATA, flag::PADDED, 1, b"\x02de\0\0");
    assert_eq!(client.send(&padded), "data 1 false [de]");
    let trailers = client.request(1, &[("x", "y")], true);
    assert_eq!(client.send(&trailers), "end 1");
    assert!(client.server.is_open(1));
    assert!(
        client
            .server
            .emit_head(1, b"HTTP/1.1 200 OK\r\n\r\n", false)
    );
    client.server.emit_data(1, b"abcdef", true, 4);
    assert_eq!(client.sent(), "headers 1 4 data 1 4 0 data 1 2 1");
    assert_eq!(client.server.streams(), 0);
    assert!(
        !client
            .server
            .emit_head(1, b"HTTP/1.1 200 OK\r\n\r\n", false)
    );
}

#[test]
fn bytes_may_come_in_any_pieces() {
    let mut whole = client();
    let mut bytes = whole.request(1, &POST, false);
    bytes.extend(frame(kind::DATA, flag::END_STREAM, 1, b"content"));
    let expected = whole.send(&bytes);
    let mut split = client();
    let (mut unread, mut found) = (Vec::new(), Vec::new());
    for byte in bytes {
        unread.push(byte);
        let (consumed, event) = split.server.on_bytes(&unread, 0);
        match event {
            Event::Head { .. } => found.push(split.server.head().len()),
            Event::Data { range, .. } => found.push(range.len()),
            Event::NeedMore(needed) => assert!(needed > unread.len()),
            _ => {}
        }
        unread.drain(..consumed);
    }
    assert_eq!(
        found,
        [r"POST /p HTTP/2.0".len() + 2 + 9 + 2, 7],
        "{expected}"
    );
}

/// Each case follows an open stream 1 with content to come, and a request on stream 3 that has ended.
#[test]
fn what_breaks_the_protocol_ends_the_stream_or_the_connection() {
    let window = |stream, by: u32| frame(kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    let connection = "ended PROTOCOL_ERROR";
    for (bytes, expected) in [
        (frame(kind::DATA, 0, 0, b"a"), connection),
        (frame(kind::DATA, 0, 5, b"a"), connection),
        (frame(kind::DATA, 0, 2, b"a"), connection),
        (frame(kind::DATA, 0, 3, b"a"), "reset 3 STREAM_CLOSED"),
        (frame(kind::DATA, flag::PADDED, 1, b"\x02a"), connection),
        (
            frame(kind::DATA, 0, 1, &[0; 101]),
            "reset 1 FLOW_CONTROL_ERROR",
        ),
        (
            frame(kind::DATA, 0, 1, &[0; 16_385]),
            "ended FRAME_SIZE_ERROR",
        ),
        (frame(kind::HEADERS, 5, 0, b""), connection),
        (frame(kind::HEADERS, 5, 4, b""), connection),
        (frame(kind::HEADERS, 4, 1, b""), "reset 1 PROTOCOL_ERROR"),
        (frame(kind::HEADERS, 5, 3, b""), "reset 3 STREAM_CLOSED"),
        (
            frame(kind::HEADERS, 5, 1, b"\x82"),
            "reset 1 PROTOCOL_ERROR",
        ),
        (
            frame(kind::HEADERS, 5, 5, b"\x82"),
            "reset 5 PROTOCOL_ERROR",
        ),
        (
            frame(kind::HEADERS, 5, 5, b"\x80"),
            "ended COMPRESSION_ERROR",
        ),
        (frame(kind::HEADERS, 0x25, 5, b"\0\0\0\x05\0"), connection),
        (
            frame(kind::HEADERS, 0x25, 5, b"\0\0"),
            "ended FRAME_SIZE_ERROR",
        ),
        (frame(kind::CONTINUATION, 4, 1, b""), connection),
        (
            [
                frame(kind::HEADERS, 0, 5, b""),
                frame(kind::PING, 0, 0, &[0; 8]),
            ]
            .concat(),
            connection,
        ),
        (
            [
                frame(kind::HEADERS, 0, 5, b""),
                frame(kind::CONTINUATION, 4, 7, b""),
            ]
            .concat(),
            connection,
        ),
        (frame(kind::PRIORITY, 0, 0, &[0; 5]), connection),
        (
            frame(kind::PRIORITY, 0, 1, &[0; 4]),
            "reset 1 FRAME_SIZE_ERROR",
        ),
        (
            frame(kind::PRIORITY, 0, 1, b"\0\0\0\x01\0"),
            "reset 1 PROTOCOL_ERROR",
        ),
        // A stream that was not begun is not reset.
        (
            frame(kind::PRIORITY, 0, 9, &[0; 4]),
            "ended FRAME_SIZE_ERROR",
        ),
        (frame(kind::PRIORITY, 0, 9, b"\0\0\0\x09\0"), connection),
        (frame(kind::PRIORITY, 0, 9, &[0; 5]), ""),
        (frame(kind::RST_STREAM, 0, 0, &[0; 4]), connection),
        (frame(kind::RST_STREAM, 0, 5, &[0; 4]), connection),
        (
            frame(kind::RST_STREAM, 0, 1, &[0; 3]),
            "ended FRAME_SIZE_ERROR",
        ),
        (
            frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
            "reset 1 CANCEL",
        ),
        (frame(kind::SETTINGS, 0, 1, b""), connection),
        (frame(kind::SETTINGS, 0, 0, b"a"), "ended FRAME_SIZE_ERROR"),
        (
            frame(kind::SETTINGS, 1, 0, &[0; 6]),
            "ended FRAME_SIZE_ERROR",
        ),
        (frame(kind::SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2]), connection),
        (
            frame(kind::SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]),
            "ended FLOW_CONTROL_ERROR",
        ),
        (frame(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1]), connection),
        (frame(kind::SETTINGS, 0, 0, &[0x77, 5, 0, 0, 0, 1]), ""),
        (frame(kind::PUSH_PROMISE, 4, 1, &[0; 4]), connection),
        (frame(kind::PING, 0, 1, &[0; 8]), connection),
        (frame(kind::PING, 0, 0, &[0; 7]), "ended FRAME_SIZE_ERROR"),
        (frame(kind::GOAWAY, 0, 0, &[0; 8]), "goaway 0"),
        (frame(kind::GOAWAY, 0, 1, &[0; 8]), connection),
        (window(0, 0), connection),
        (window(1, 0), "reset 1 PROTOCOL_ERROR"),
        (window(5, 1), connection),
        (window(0, ID_MAX), "ended FLOW_CONTROL_ERROR"),
        (window(1, ID_MAX), "reset 1 FLOW_CONTROL_ERROR"),
        (
            frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]),
            "ended FRAME_SIZE_ERROR",
        ),
        (
            frame(kind::PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1"),
            connection,
        ),
        (frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"), ""),
        (
            frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1"),
            connection,
        ),
        (
            frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x02u=1"),
            connection,
        ),
        (
            frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0"),
            "ended FRAME_SIZE_ERROR",
        ),
        (frame(kind::DATA, flag::PADDED, 1, b""), connection),
        (frame(kind::HEADERS, 0xd, 5, b"\x02\x82"), connection),
        (frame(kind::SETTINGS, 0, 0, &[0, 9, 0, 0, 0, 2]), connection),
        (frame(kind::SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 2]), connection),
        (frame(kind::SETTINGS, 0, 0, &[0, 5, 1, 0, 0, 0]), connection),
        (frame(kind::PING, flag::ACK, 0, &[0; 8]), ""),
        (frame(kind::GOAWAY, 0, 0, &[0; 7]), "ended FRAME_SIZE_ERROR"),
        // Inside of a block even an unknown frame is one too many.
        (
            [frame(kind::HEADERS, 0, 5, b""), frame(99, 0, 0, b"")].concat(),
            connection,
        ),
        (frame(99, 255, 7, b"whatever"), ""),
    ] {
        let mut client = client();
        client.post(1);
        client.get(3);
        client.sent();
        assert_eq!(client.send(&bytes), expected, "{bytes:?}");
        let told = match expected.split(' ').collect::<Vec<_>>()[..] {
            ["ended", code] => format!(" {code}"),
            ["reset", _, "CANCEL"] => String::new(),
            ["reset", ..] => String::from(expected),
            _ => continue,
        };
        assert!(client.sent().contains(&told), "{bytes:?}");
    }
}

#[test]
fn content_keeps_to_its_length() {
    for (promised, pieces, expected) in [
        (3, vec![(3, true)], "data 1 true [aaa]"),
        (3, vec![(2, true)], "reset 1 PROTOCOL_ERROR"),
        (3, vec![(4, false)], "reset 1 PROTOCOL_ERROR"),
        (
            3,
            vec![(3, false), (0, true)],
            "data 1 false [aaa] data 1 true []",
        ),
    ] {
        let mut client = client();
        client.post(1);
        client.server.promise(1, promised).unwrap();
        let bytes: Vec<u8> = (pieces.iter())
            .flat_map(|(len, end)| frame(kind::DATA, u8::from(*end), 1, &b"aaaa"[..*len]))
            .collect();
        assert_eq!(client.send(&bytes), expected);
    }
    let mut client = client();
    client.get(1);
    assert!(client.server.promise(1, 5).is_err(), "it has ended already");
    assert_eq!(client.sent(), "reset 1 PROTOCOL_ERROR");
}

#[test]
fn windows_are_granted_as_content_is_taken_and_grow_where_it_is_fast() {
    let mut client = client();
    client.post(1);
    client.send(&frame(kind::DATA, 0, 1, &[b'a'; 60]));
    client.server.taken(1, 49, 1000);
    assert_eq!(client.sent(), "", "less than half");
    client.server.taken(1, 11, 1000);
    assert_eq!(client.sent(), "window 1 60");
    client.send(&frame(kind::DATA, 0, 1, &[b'a'; 100]));
    client.server.taken(1, 100, 1000);
    assert_eq!(client.sent(), "window 1 200", "all was used: it is doubled");
    client.send(&frame(kind::DATA, 0, 1, &[b'a'; 200]));
    client.server.taken(1, 200, 300);
    assert_eq!(
        client.sent(),
        "window 1 200",
        "it is not doubled beyond its bound"
    );
}

#[test]
fn streams_above_the_announced_number_are_refused_and_the_table_stays_whole() {
    let mut client = client();
    for stream in [1, 3, 5] {
        client.get(stream);
    }
    client.sent();
    let mut fields = GET.to_vec();
    fields.push(("x-new", "1"));
    let request = client.request(7, &fields, true);
    assert_eq!(client.send(&request), "");
    assert_eq!(client.sent(), "reset 7 REFUSED_STREAM");
    client.server.emit_head(1, b"HTTP/1.1 204 \r\n\r\n", true);
    let request = client.request(9, &fields, true);
    assert!(client.send(&request).ends_with(r"x-new: 1\r\n\r\n]"));
}

#[test]
fn the_most_urgent_stream_sends_first_and_incremental_ones_take_turns() {
    let mut client = client();
    for stream in [1, 3, 5] {
        client.get(stream);
        client.server.set_waiting(stream, true);
    }
    let server = &mut client.server;
    assert_eq!(server.next_sender(), Some(1), "the first one");
    server.set_priority(5, Priority::parse(b"u=1"));
    assert_eq!(server.next_sender(), Some(5));
    server.set_waiting(5, false);
    for stream in [1, 3] {
        server.set_priority(stream, Priority::parse(b"u=5, i"));
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let next = server.next_sender().unwrap();
        server.emit_data(next, b"a", false, 10);
        order.push(next);
    }
    assert_eq!(order, [1, 3, 1, 3]);
    client.send(&frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=0"));
    assert_eq!(client.server.next_sender(), Some(3));
}

#[test]
fn what_is_said_of_a_stream_before_it_begins_holds_when_it_does() {
    let mut client = client();
    let update = |stream: u8, said: &[u8]| {
        let payload = [&[0, 0, 0, stream], said].concat();
        frame(kind::PRIORITY_UPDATE, 0, 0, &payload)
    };
    for said in [&b"u=7"[..], b"u=1"] {
        assert_eq!(client.send(&update(5, said)), "");
    }
    client.send(&update(3, b"u=0"));
    for stream in [1, 5] {
        client.get(stream);
        // The head's own field says it less well.
        client.server.set_priority(stream, Priority::parse(b"u=2"));
        client.server.set_waiting(stream, true);
    }
    assert_eq!(client.server.next_sender(), Some(5));
    // Stream 3 can begin no more; one that can has its place, a second one has none.
    assert_eq!(client.send(&update(7, b"u=0")), "");
    assert_eq!(client.send(&update(7, b"u=1")), "");
    assert_eq!(client.send(&update(9, b"u=0")), "ended PROTOCOL_ERROR");
}

#[test]
fn a_stream_of_a_lower_number_than_another_never_begins() {
    let mut client = client();
    client.get(7);
    assert_eq!(client.get(5), "ended STREAM_CLOSED");
    assert_eq!(client.sent(), "goaway 7 STREAM_CLOSED");
}

#[test]
fn nothing_is_sent_beyond_a_window() {
    let mut client = client();
    client.get(1);
    client.server.set_waiting(1, true);
    assert_eq!(client.server.sendable(1), 65_535);
    client.server.emit_data(1, &[0; 65_535], false, 16_384);
    assert_eq!(client.server.next_sender(), None);
    client.send(&frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]));
    assert_eq!(client.server.sendable(1), 0);
    client.send(&frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 5]));
    assert_eq!(client.server.sendable(1), 5);
    // A smaller initial window makes it negative.
    client.send(&frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
    assert_eq!(client.server.sendable(1), 0);
    client.send(&frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0xff, 0xff]));
    assert_eq!(client.server.sendable(1), 5);
}

#[test]
fn a_peer_that_costs_more_than_it_says_is_calmed() {
    let calm = "ended ENHANCE_YOUR_CALM";
    let floods: [(&str, Vec<u8>); 5] = [
        ("pings", frame(kind::PING, 0, 0, &[0; 8])),
        ("settings", frame(kind::SETTINGS, 0, 0, b"")),
        ("empty data", frame(kind::DATA, 0, 1, b"")),
        ("priorities", frame(kind::PRIORITY, 0, 1, &[0; 5])),
        (
            "small windows",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        ),
    ];
    for (name, bytes) in floods {
        let mut client = client();
        client.post(1);
        let request = client.request(3, &GET, true);
        client.send(&request);
        client.server.emit_head(3, b"HTTP/1.1 204 \r\n\r\n", true);
        let mut all = Vec::new();
        for _ in 0..10_100 {
            all.extend(&bytes);
        }
        assert!(client.send(&all).ends_with(calm), "{name}");
        assert!(
            client.sent().ends_with("goaway 3 ENHANCE_YOUR_CALM"),
            "{name}"
        );
    }
    // Each of these requests has to be reset by us.
    let mut client = client();
    let mut all = Vec::new();
    for stream in (1..1000).step_by(2) {
        all.extend(client.request(stream, &GET[..1], true));
    }
    let said = client.send(&all);
    assert!(said.ends_with(calm), "{said}");
    // Spread over time they are harmless.
    let mut client = self::client();
    for second in 0..10_000 {
        client.now_seconds = second;
        assert_eq!(client.send(&frame(kind::PING, 0, 0, &[0; 8])), "");
        client.server.output().clear();
    }
}

#[test]
fn rapid_resets_are_calmed_and_cancelled_downloads_are_not() {
    let cancel = |stream| frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    let mut abuser = client();
    let mut last = String::new();
    for stream in (1..1000).step_by(2) {
        abuser.get(stream);
        last = abuser.send(&cancel(stream));
        if last.starts_with("ended") {
            break;
        }
    }
    assert_eq!(last, "ended ENHANCE_YOUR_CALM");
    let mut visitor = client();
    for stream in (1..4000).step_by(6) {
        for answered in [stream, stream + 2] {
            visitor.get(answered);
            visitor
                .server
                .emit_head(answered, b"HTTP/1.1 204 \r\n\r\n", true);
        }
        visitor.get(stream + 4);
        let said = visitor.send(&cancel(stream + 4));
        assert_eq!(said, format!("reset {} CANCEL", stream + 4));
    }
}

#[test]
fn header_blocks_are_bounded() {
    let mut client = client();
    let mut bytes = frame(kind::HEADERS, 1, 1, &[0x82]);
    for _ in 0..20 {
        bytes.extend(frame(kind::CONTINUATION, 0, 1, &[0x84; 10]));
    }
    assert_eq!(client.send(&bytes), "ended ENHANCE_YOUR_CALM");
    // A block of a thousand references to one long field.
    let mut bomb = Client::new(Settings::default());
    let long = "a".repeat(1500);
    let first = bomb.request(1, &[&GET[..], &[("x", &long)]].concat(), true);
    bomb.send(&first);
    let mut block = vec![0x82, 0x86, 0x84];
    block.extend([0xbe; 10_000]);
    let mut out = Vec::new();
    emit_headers(3, &block, true, 16_384, &mut out);
    assert!(bomb.send(&out).starts_with("head 3 true"));
    assert!(bomb.server.head().len() < 40_000);
}

#[test]
fn behind_goaway_open_streams_go_on_and_new_ones_are_ignored() {
    let mut client = client();
    client.post(1);
    client.server.go_away();
    client.server.go_away();
    assert_eq!(client.sent(), "goaway 1 NO_ERROR");
    assert_eq!(client.get(3), "");
    assert_eq!(
        client.send(&frame(kind::DATA, 1, 1, b"a")),
        "data 1 true [a]"
    );
    assert_eq!(client.server.streams(), 1);
    // The number of the last stream never grows, whatever ends the connection.
    client.sent();
    client.send(&frame(kind::PING, 0, 0, b"short"));
    assert_eq!(client.sent(), "goaway 1 FRAME_SIZE_ERROR");
}

#[test]
fn frames_of_a_stream_that_was_just_reset_are_ignored() {
    let mut client = client();
    client.post(1);
    client.server.reset(1, ErrorCode::NO_ERROR);
    assert_eq!(client.send(&frame(kind::DATA, 0, 1, b"late")), "");
    let trailers = client.request(1, &[("x", "y")], true);
    assert_eq!(client.send(&trailers), "");
    assert_eq!(client.sent(), "reset 1 NO_ERROR");
}

#[test]
fn what_follows_a_head_that_was_refused_is_ignored() {
    let mut client = client();
    for stream in [1, 3, 5] {
        client.get(stream);
    }
    client.sent();
    let malformed = client.request(9, &POST[..1], false);
    for (head, stream, said, sent) in [
        (
            client.request(7, &POST, false),
            7,
            "",
            "reset 7 REFUSED_STREAM",
        ),
        (
            malformed,
            9,
            "reset 9 PROTOCOL_ERROR",
            "reset 9 PROTOCOL_ERROR",
        ),
    ] {
        if stream == 9 {
            client.server.emit_head(1, b"HTTP/1.1 204 \r\n\r\n", true);
            client.sent();
        }
        assert_eq!(client.send(&head), said);
        for _ in 0..200 {
            assert_eq!(client.send(&frame(kind::DATA, 0, stream, b"content")), "");
        }
        let trailers = client.request(stream, &[("x", "y")], true);
        assert_eq!(client.send(&trailers), "");
        assert_eq!(client.sent(), sent);
    }
}

#[test]
fn a_client_may_use_the_first_window_until_it_knows_of_a_smaller_one() {
    let settings = Settings {
        initial_window_size: 10,
        ..Settings::default()
    };
    let mut client = Client::silent(settings);
    client.send(PREFACE);
    client.send(&frame(kind::SETTINGS, 0, 0, &[]));
    client.post(1);
    assert!(
        client
            .send(&frame(kind::DATA, 0, 1, &[b'a'; 100]))
            .starts_with("data 1")
    );
    client.send(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
    client.post(3);
    let said = client.send(&frame(kind::DATA, 0, 3, &[b'a'; 11]));
    assert_eq!(said, "reset 3 FLOW_CONTROL_ERROR");
}

#[test]
fn a_table_that_shrinks_and_grows_within_one_settings_frame_is_empty_in_between() {
    let mut client = client();
    let mut decoder = Decoder::new(4096);
    let answer = b"HTTP/1.1 200 OK\r\nX-Kept: value\r\n\r\n";
    let mut first_bytes = Vec::new();
    for (stream, settings) in [
        (1, &b""[..]),
        (3, b""),
        (5, b"\0\x01\0\0\0\0\0\x01\0\0\x10\0"),
    ] {
        client.send(&frame(kind::SETTINGS, 0, 0, settings));
        client.get(stream);
        client.sent();
        client.server.emit_head(stream, answer, true);
        let block = client.server.output().split_off(HEADER_BYTES);
        client.server.output().clear();
        decoder.decode(&block, |_, _| ()).unwrap();
        first_bytes.push(block[..2].to_vec());
    }
    assert_eq!(first_bytes[1], b"\x88\xbe", "both are in tables");
    assert_eq!(
        first_bytes[2], b"\x20\x3f",
        "changes of the size come first"
    );
}

#[test]
fn trailers_are_checked_and_as_large_as_a_head_at_most() {
    let mut client = Client::new(Settings::default());
    let long = "a".repeat(1500);
    let kept = client.request(1, &[&GET[..], &[("x", &long)]].concat(), true);
    client.send(&kept);
    for (stream, block, expected) in [
        (3, vec![0xbf; 10], "end 3"),
        (5, vec![0xbf; 10_000], "reset 5 PROTOCOL_ERROR"),
        (7, b"\0\x01A\0".to_vec(), "reset 7 PROTOCOL_ERROR"),
        (9, b"\0\x0aconnection\0".to_vec(), "reset 9 PROTOCOL_ERROR"),
        (11, b"\0\x01a\x02b\n".to_vec(), "reset 11 PROTOCOL_ERROR"),
    ] {
        client.post(stream);
        let mut trailers = Vec::new();
        emit_headers(stream, &block, true, 16_384, &mut trailers);
        assert_eq!(client.send(&trailers), expected);
    }
    client.post(13);
    client.server.promise(13, 1).unwrap();
    let early = client.request(13, &[("x", "y")], true);
    assert_eq!(client.send(&early), "reset 13 PROTOCOL_ERROR");
}
