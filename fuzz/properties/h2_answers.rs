//! What must hold of any bytes that a server sends on a connection of HTTP/2. Used by the fuzz target and by the ordinary
//! test that replays the corpus.

use mill_http::h1::response::{RequestKind, ResponseScan};
use mill_http::h2::connection::{Connection, Event};
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use mill_http::limits::ResponseRules;

/// Behind empty SETTINGS; three requests are under way from the beginning, the second one is HEAD, the third still sends.
pub(crate) fn check(input: &[u8]) {
    let settings: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let bytes = [settings, input].concat();
    let whole = read(&bytes, bytes.len());
    for step in [1, 7] {
        assert_eq!(read(&bytes, step), whole, "in pieces of {step}");
    }
}

/// The events, and what was sent after the requests.
fn read(bytes: &[u8], step: usize) -> (Vec<Event>, Vec<u8>) {
    let limits = Limits::default();
    let mut connection = Connection::client(Settings::default(), limits);
    for (number, method) in ["GET", "HEAD", "POST"].into_iter().enumerate() {
        let stream = connection.open().unwrap_or_default();
        let head = format!("{method} /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        connection.emit_request(stream, b"http", head.as_bytes(), method != "POST");
    }
    connection.output().clear();
    let (mut events, mut sent) = (Vec::new(), Vec::new());
    let (mut start, mut arrived) = (0, 0);
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
            holds(&mut connection, &event, &limits);
            sent.append(connection.output());
            let is_over = matches!(event, Event::Ended { .. });
            if event != Event::Handled {
                events.push(event);
            }
            if is_over {
                return (events, sent);
            }
        }
    }
    (events, sent)
}

fn holds(connection: &mut Connection, event: &Event, limits: &Limits) {
    assert!(connection.streams() <= 3);
    match event {
        Event::Answer { status, .. } => {
            assert!((100..1000).contains(status) && *status != 101);
            let mut text = connection.head().to_vec();
            assert!(text.len() <= limits.head_bytes);
            text.extend_from_slice(b"\r\n");
            // It is one head, or none at all: never two.
            let rules = ResponseRules::default();
            let mut scan = ResponseScan::new(RequestKind::Other, &rules);
            if let Ok(Some(head)) = scan.parse(&text) {
                assert_eq!(head.len, text.len());
                assert_eq!(head.status, *status);
            }
        }
        Event::Trailers { .. } => assert!(connection.head().len() <= limits.head_bytes + 16),
        Event::Data { stream, range, .. } => connection.taken(*stream, range.len(), 100_000),
        Event::Head { .. } | Event::End { .. } => panic!("a client gets none: {event:?}"),
        _ => {}
    }
}
