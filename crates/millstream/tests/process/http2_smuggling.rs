//! What cannot be said in one way between HTTP/2 and HTTP/1: requests as a server of HTTP/1 behind gets them, and answers of
//! a server of HTTP/2 behind as clients get them.

use crate::site::{Site, free_address};
use mill_http::h2::connection::{Connection, Event};
use mill_http::h2::frame::{data_header, emit_headers};
use mill_http::h2::hpack::{Encoder, Indexing};
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

type Fields<'a> = &'a [(&'a str, &'a str)];

/// A server of HTTP/1 that keeps what it has read.
struct Origin {
    address: SocketAddr,
    read: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let read = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&read);
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_message(&mut stream);
                // Whatever else there is comes at once or never.
                stream
                    .set_read_timeout(Some(Duration::from_millis(50)))
                    .unwrap();
                let mut more = Vec::new();
                let _ = stream.read_to_end(&mut more);
                let more = String::from_utf8_lossy(&more).into_owned();
                kept.lock().unwrap().push(request + &more);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
                stream.write_all(answer).unwrap();
            }
        });
        Self { address, read }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.read.lock().unwrap())
    }
}

/// A head, and the content of its length.
fn read_message(stream: &mut TcpStream) -> String {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut text = String::new();
    let mut byte = [0];
    let mut needed = None;
    while needed != Some(text.len()) && stream.read(&mut byte).unwrap_or(0) == 1 {
        text.push(char::from(byte[0]));
        if needed.is_none() && text.ends_with("\r\n\r\n") {
            let lower = text.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| {
                rest.split("\r\n").next().unwrap().parse::<usize>().unwrap()
            });
            needed = Some(text.len() + length);
        }
    }
    text
}

fn block(fields: Fields<'_>) -> Vec<u8> {
    let mut encoder = Encoder::new();
    let mut block = Vec::new();
    for (name, value) in fields {
        let (name, value) = (name.as_bytes(), value.as_bytes());
        encoder.field(name, value, Indexing::Never, &mut block);
    }
    block
}

/// The frames of a message on stream 1: its head, one DATA frame for each piece, trailers.
fn frames(head: Fields<'_>, pieces: &[&str], trailers: Fields<'_>, out: &mut Vec<u8>) {
    let is_bare = pieces.is_empty() && trailers.is_empty();
    emit_headers(1, &block(head), is_bare, 16_384, out);
    for (number, piece) in (1..).zip(pieces) {
        let ends = number == pieces.len() && trailers.is_empty();
        out.extend_from_slice(&data_header(1, piece.len(), ends));
        out.extend_from_slice(piece.as_bytes());
    }
    if !trailers.is_empty() {
        emit_headers(1, &block(trailers), true, 16_384, out);
    }
}

/// What comes back for one request on a connection of its own: a status, or the code of a reset.
fn ask(address: SocketAddr, head: Fields<'_>, pieces: &[&str], trailers: Fields<'_>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut client = Connection::client(Settings::default(), Limits::default());
    assert_eq!(client.open(), Some(1));
    frames(head, pieces, trailers, client.output());
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let out = std::mem::take(client.output());
        stream.write_all(&out).unwrap();
        let len = stream.read(&mut buffer).unwrap();
        assert!(len > 0, "closed without an answer");
        unread.extend_from_slice(&buffer[..len]);
        loop {
            let (consumed, event) = client.on_bytes(&unread, 0);
            unread.drain(..consumed);
            match event {
                Event::NeedMore(_) => break,
                Event::Answer { status, .. } => return status.to_string(),
                Event::Reset { code, .. } => return format!("{code:?}"),
                Event::Ended { code, .. } => return format!("ended {code:?}"),
                _ => {}
            }
        }
    }
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/a?b"),
    (":authority", "h"),
];

const POST: [(&str, &str); 4] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/p"),
    (":authority", "h"),
];

fn front(origin: &Origin) -> (Site, SocketAddr) {
    let site = Site::new();
    let address = free_address();
    site.configure(
        "",
        &format!(
            "http2 on; server {{ listen {address}; underscores_in_headers on;
             location / {{ proxy_pass http://{}; proxy_http_version 1.1; proxy_set_header Host $host;
             proxy_set_header Connection \"\"; }} }}",
            origin.address
        ),
    );
    site.start();
    (site, address)
}

#[test]
fn a_request_of_http2_reaches_a_server_of_http1_in_one_spelling() {
    let origin = Origin::start();
    let (_site, address) = front(&origin);
    let crumbs = [
        &GET[..],
        &[("cookie", "a=b"), ("x", "y"), ("cookie", "c=d")],
    ]
    .concat();
    let measured = [&POST[..], &[("content-length", "3")]].concat();
    let asked = [&GET[..], &[("te", "trailers"), ("host", "H:80")]].concat();
    let alike = [
        &POST[..],
        &[("content_length", "9"), ("transfer_encoding", "chunked")],
    ]
    .concat();
    let no_authority = [&GET[..3], &[("host", "h")]].concat();
    let post = "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    let cases: [(Fields<'_>, &[&str], Fields<'_>, &str); 7] = [
        (
            &crumbs,
            &[],
            &[],
            "GET /a?b HTTP/1.1\r\nHost: h\r\nx: y\r\ncookie: a=b; c=d\r\n\r\n",
        ),
        (&measured, &["a", "bc"], &[], post),
        (&POST, &["ab", "", "c"], &[], post),
        (
            &measured,
            &["abc"],
            &[("x", "y"), ("content-length", "5"), ("host", "z")],
            post,
        ),
        (&alike, &["abc"], &[], post),
        (&asked, &[], &[], "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            &no_authority,
            &[],
            &[],
            "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
    ];
    for (head, pieces, trailers, expected) in cases {
        assert_eq!(ask(address, head, pieces, trailers), "200", "{head:?}");
        assert_eq!(origin.take(), [expected], "{head:?}");
    }
}

#[test]
fn a_request_of_http2_that_could_be_read_in_two_ways_reaches_no_server() {
    let origin = Origin::start();
    let (_site, address) = front(&origin);
    let refused = |head: Fields<'_>, pieces: &[&str], trailers: Fields<'_>, expected: &str| {
        let found = ask(address, head, pieces, trailers);
        assert_eq!(found, expected, "{head:?} {pieces:?} {trailers:?}");
        assert_eq!(origin.take(), [""; 0], "{head:?} {pieces:?} {trailers:?}");
    };
    for field in [
        ("Upper", "a"),
        ("a b", "c"),
        ("a:b", "c"),
        ("a\r\nb", "c"),
        ("", "a"),
        ("a", "b\r\nc: d"),
        ("a", "b\nc"),
        ("a", "b\rc"),
        ("a", "\0"),
        ("a", " b"),
        ("a", "b\t"),
        ("connection", "close"),
        ("proxy-connection", "a"),
        ("keep-alive", "1"),
        ("upgrade", "h2c"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("host", "other"),
        ("host", "h:8080"),
        (":path", "/"),
        (":status", "200"),
    ] {
        let head = [&GET[..], &[field]].concat();
        refused(&head, &[], &[], "PROTOCOL_ERROR");
    }
    for (name, value) in [
        (":path", ""),
        (":path", "a"),
        (":path", "http://h/"),
        (":path", "/ HTTP/1.1\r\nx: y"),
        (":path", "/a b"),
        (":method", "GET /x HTTP/1.1\r\na:"),
        (":method", ""),
        (":scheme", ""),
        (":scheme", "http://h/"),
        (":authority", "h\r\nx: y"),
        (":authority", "h i"),
    ] {
        let replace = |field: &(&'static str, &'static str)| match field.0 == name {
            true => (name, value),
            false => *field,
        };
        let head: Vec<_> = GET.iter().map(replace).collect();
        refused(&head, &[], &[], "PROTOCOL_ERROR");
        // Twice is too often, even the same.
        let twice = [&[(name, "GET")], &GET[..]].concat();
        refused(&twice, &[], &[], "PROTOCOL_ERROR");
    }
    for missing in 0..3 {
        let mut head = GET.to_vec();
        head.remove(missing);
        refused(&head, &[], &[], "PROTOCOL_ERROR");
    }
    // What HTTP/1 has the same rules for gets its answer.
    for (name, value) in [
        ("content-length", "+3"),
        ("content-length", "3, 3"),
        ("content-length", ""),
        ("content-length", "18446744073709551619"),
        ("a", "\x01"),
        ("a", "\x7f"),
    ] {
        let head = [&POST[..], &[(name, value)]].concat();
        refused(&head, &["abc"], &[], "400");
    }
    let lengths = [("content-length", "3"), ("content-length", "3")];
    refused(&[&POST[..], &lengths].concat(), &["abc"], &[], "400");
    for (method, path, authority, expected) in [
        ("GET", "*", "h", "400"),
        ("GET", "/a#b", "h", "400"),
        ("GET", "/../../a", "h", "400"),
        ("GET", "/%00", "h", "400"),
        ("get", "/", "h", "400"),
        ("GET", "/", "a@h", "400"),
        ("GET", "/", "h/i", "400"),
        ("TRACE", "/", "h", "405"),
    ] {
        let head = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", authority),
        ];
        refused(&head, &[], &[], expected);
    }
    refused(
        &[(":method", "CONNECT"), (":authority", "h:1")],
        &[],
        &[],
        "405",
    );
    let connect = [&[(":method", "CONNECT")], &GET[1..]].concat();
    refused(&connect, &[], &[], "PROTOCOL_ERROR");
    let two_hosts = [&GET[..3], &[("host", "h"), ("host", "h")]].concat();
    refused(&two_hosts, &[], &[], "PROTOCOL_ERROR");
    let empty = [&GET[..3], &[(":authority", ""), ("host", "h")]].concat();
    refused(&empty, &[], &[], "PROTOCOL_ERROR");
    refused(&GET[..3], &[], &[], "400");
    // Content of another length than is said.
    let measured = [&POST[..], &[("content-length", "3")]].concat();
    refused(&measured, &[], &[], "PROTOCOL_ERROR");
    for pieces in [&["ab"][..], &["abcd"], &["abc", "d"], &["ab", ""]] {
        refused(&measured, pieces, &[], "PROTOCOL_ERROR");
    }
    for trailer in [
        (":path", "/"),
        ("connection", "a"),
        ("A", "b"),
        ("a", "b\r\n"),
    ] {
        refused(&measured, &["abc"], &[trailer], "PROTOCOL_ERROR");
    }
    refused(&measured, &["ab"], &[("x", "y")], "PROTOCOL_ERROR");
}

#[test]
fn a_request_of_http1_that_claims_http2_is_no_request_even_if_its_answer_is_kept() {
    let site = Site::new();
    let address = free_address();
    site.configure(
        "",
        &format!(
            "http2 on; open_file_cache max=100; access_log off; server {{ listen {address}; }}"
        ),
    );
    site.start();
    let head = [&GET[..2], &[(":path", "/index.html"), (":authority", "h")]].concat();
    for _ in 0..4 {
        assert_eq!(ask(address, &head, &[], &[]), "200");
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /index.html HTTP/2.0\r\nhost: h\r\n\r\n")
        .unwrap();
    let answer = read_message(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
}

/// What a client of HTTP/1 gets of an answer that a server of HTTP/2 gives: `Ok` only if it is whole.
fn pass(
    front: SocketAddr,
    behind: &TcpListener,
    method: &str,
    answer: &[u8],
) -> Result<String, String> {
    let mut client = TcpStream::connect(front).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let request = format!("{method} / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let (mut stream, _) = behind.accept().unwrap();
    let mut server = Connection::server(Settings::default(), Limits::default());
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    'head: loop {
        let out = std::mem::take(server.output());
        stream.write_all(&out).unwrap();
        let len = stream.read(&mut buffer).unwrap();
        assert!(len > 0, "no request");
        unread.extend_from_slice(&buffer[..len]);
        loop {
            let (consumed, event) = server.on_bytes(&unread, 0);
            unread.drain(..consumed);
            match event {
                Event::NeedMore(_) => break,
                Event::Head { .. } => break 'head,
                _ => {}
            }
        }
    }
    stream.write_all(server.output()).unwrap();
    stream.write_all(answer).unwrap();
    let mut got = Vec::new();
    let read = client.read_to_end(&mut got);
    let got = String::from_utf8_lossy(&got).into_owned();
    // The client must not need the end of the connection to know the end of the content.
    let (head, content) = got.split_once("\r\n\r\n").unwrap_or((&got, ""));
    let length = head.split("Content-Length: ").nth(1);
    let length = length.map(|rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
    let is_bare = method == "HEAD" || head.contains(" 204 ") || head.contains(" 304 ");
    let is_whole = match length {
        _ if is_bare => content.is_empty(),
        Some(length) => length == content.len(),
        None => content.ends_with("0\r\n\r\n"),
    };
    let status = got.get(9..12).unwrap_or_default();
    match (read.is_ok() && is_whole, status) {
        (true, "502") => Err(String::from("502")),
        (true, _) => Ok(format!("{status} {content}")),
        (false, _) => Err(String::from("cut")),
    }
}

#[test]
fn an_answer_of_http2_that_could_be_read_in_two_ways_is_not_passed_on() {
    let site = Site::new();
    let front = free_address();
    let behind = TcpListener::bind("127.0.0.1:0").unwrap();
    site.configure(
        "",
        &format!(
            "server {{ listen {front}; location / {{ proxy_pass http://{}; proxy_http_version 2; }} }}",
            behind.local_addr().unwrap()
        ),
    );
    site.start();
    const OK: (&str, &str) = (":status", "200");
    let check = |method: &str, head: Fields<'_>, pieces: &[&str], trailers: Fields<'_>| {
        let mut answer = Vec::new();
        frames(head, pieces, trailers, &mut answer);
        pass(front, &behind, method, &answer)
    };
    let malformed: [Fields<'_>; 24] = [
        &[("a", "b")],
        &[("a", "b"), OK],
        &[OK, OK],
        &[(":status", "20")],
        &[(":status", "2000")],
        &[(":status", "+20")],
        &[(":status", "101")],
        &[OK, (":path", "/")],
        &[OK, ("Upper", "a")],
        &[OK, ("a b", "c")],
        &[OK, ("a:b", "c")],
        &[OK, ("", "c")],
        &[OK, ("a", "b\r\nc: d")],
        &[OK, ("a", "b\nc")],
        &[OK, ("a", "\0")],
        &[OK, ("a", " b")],
        &[OK, ("a", "\x01")],
        &[OK, ("connection", "close")],
        &[OK, ("transfer-encoding", "chunked")],
        &[OK, ("upgrade", "h2c")],
        &[OK, ("content-length", "2"), ("content-length", "3")],
        &[OK, ("content-length", "+2")],
        &[OK, ("content-length", "2, 2")],
        &[OK, ("content-length", "99999999999999999999")],
    ];
    for head in malformed {
        assert_eq!(
            check("GET", head, &["ok"], &[]),
            Err(String::from("502")),
            "{head:?}"
        );
    }
    let measured = [OK, ("content-length", "3")];
    assert_eq!(
        check("GET", &measured, &["ab", "c"], &[]),
        Ok(String::from("200 abc"))
    );
    for pieces in [&[][..], &["ab"], &["abcd"], &["ab", "cd"]] {
        let found = check("GET", &measured, pieces, &[]);
        assert!(found.is_err(), "{pieces:?} {found:?}");
    }
    for trailers in [
        &[("x", "y")][..],
        &[(":status", "200")],
        &[("connection", "x")],
    ] {
        let found = check("GET", &measured, &["ab"], trailers);
        assert!(found.is_err(), "{trailers:?} {found:?}");
    }
    // Content where there can be none is dropped; the next request is not affected.
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let head = [(":status", status), ("x", "y")];
        let found = check(method, &head, &["HTTP/1.1 200 OK\r\n\r\n"], &[]);
        assert_eq!(found, Ok(format!("{status} ")), "{method}");
    }
    assert!(
        !fs::read_to_string(site.path("error.log"))
            .unwrap()
            .contains("panicked")
    );
}
