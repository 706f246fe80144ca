//! What must hold of any bytes that a client sends on a connection of HTTP/2. Used by the fuzz target and by the ordinary
//! test that replays the corpus.

use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::h2::connection::{Connection, Event};
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::{ID_MAX, PREFACE};
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use mill_http::head::RequestHead;
use mill_http::limits::HeadRules;

const STREAMS_MAX: u32 = 4;

/// Behind the preface and empty SETTINGS. Every third request is answered, every fifth one reset.
pub(crate) fn check(input: &[u8]) {
    let settings: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let bytes = [&PREFACE[..], settings, input].concat();
    let whole = read(&bytes, bytes.len());
    for step in [1, 7] {
        assert_eq!(read(&bytes, step), whole, "in pieces of {step}");
    }
}

/// The events, and what was owed to the client.
fn read(bytes: &[u8], step: usize) -> (Vec<Event>, Vec<u8>) {
    let settings = Settings {
        max_concurrent_streams: STREAMS_MAX,
        initial_window_size: 100,
        ..Settings::default()
    };
    let limits = Limits::default();
    let mut connection = Connection::server(settings, limits);
    let (mut events, mut sent) = (Vec::new(), Vec::new());
    let (mut start, mut arrived, mut requests) = (0, 0, 0);
    while arrived < bytes.len() {
        arrived = (arrived + step.max(1)).min(bytes.len());
        loop {
            let unread = &bytes[start..arrived];
            let (consumed, event) = connection.on_bytes(unread, 7);
            assert!(consumed <= unread.len());
            start += consumed;
            if let Event::NeedMore(needed) = event {
                assert!(needed > unread.len() - consumed);
                break;
            }
            if let Event::Data { range, .. } = &event {
                assert!(range.end <= consumed);
            }
            if let Event::Head { stream, end, .. } = event {
                requests += 1;
                accept(&mut connection, stream, end, requests, &limits);
            }
            holds(&connection);
            sent.append(connection.output());
            let is_over = matches!(event, Event::Ended { .. });
            if event != Event::Handled {
                events.push(event);
            }
            if is_over || connection.has_ended() {
                assert_eq!(connection.on_bytes(b"more", 7), (4, Event::Handled));
                assert!(connection.output().is_empty());
                return (events, sent);
            }
        }
    }
    // Answers excepted, a frame of nine bytes makes two frames of at most seventeen.
    assert!(sent.len() <= 200 + 4 * bytes.len() + 100 * requests);
    (events, sent)
}

/// What a server does with a request.
fn accept(connection: &mut Connection, stream: u32, end: bool, requests: usize, limits: &Limits) {
    let text = connection.head().to_vec();
    assert!(text.len() <= limits.head_bytes + 64);
    let mut head = RequestHead::default();
    head.is_of_fields = true;
    let parsed = parse_request(&text, &mut head, &HeadRules::default());
    if let Parsed::Complete { consumed } = parsed {
        assert_eq!(consumed, text.len(), "one request, and nothing behind it");
    }
    assert!(!end || connection.is_open(stream));
    if requests.is_multiple_of(3) {
        connection.emit_head(stream, b"HTTP/1.1 200 OK\r\nServer: m\r\n\r\n", false);
        let most = connection.sendable(stream).min(20);
        connection.emit_data(stream, &[0; 20][..most], true, 8);
    } else if requests.is_multiple_of(5) {
        connection.reset(stream, ErrorCode::CANCEL);
    } else {
        connection.taken(stream, 60, 1000);
    }
}

fn holds(connection: &Connection) {
    assert!(connection.streams() <= STREAMS_MAX as usize);
    assert!(connection.window() <= i64::from(ID_MAX));
}
