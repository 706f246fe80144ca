//! Windows of HTTP/2 that several answers share.

use crate::site::{Site, free_address};
use mill_http::h2::connection::Connection;
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Content of each of the two answers: one fits the connection's first window, both do not.
const CONTENT_BYTES: usize = 60_000;

const WINDOW_BYTES: usize = 65_535;

/// The head and payload of the next frame.
fn frame(stream: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    let [a, b, c, kind, flags, s, t, u, v] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).unwrap();
    (kind, flags, u32::from_be_bytes([s, t, u, v]), payload)
}

/// Answers two requests with heads, and, each time when `go` comes, one of them with content.
fn serve_two(listener: &TcpListener, go: &mpsc::Receiver<()>) {
    let mut streams: Vec<TcpStream> = (0..2)
        .map(|_| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream
        })
        .collect();
    for stream in &mut streams {
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {CONTENT_BYTES}\r\n\r\n"
        )
        .unwrap();
    }
    for stream in &mut streams {
        go.recv().unwrap();
        stream.write_all(&[b'x'; CONTENT_BYTES]).unwrap();
    }
}

#[test]
fn answers_that_wait_for_their_content_together_keep_within_the_window_of_the_connection() {
    let (site, address) = (Site::new(), free_address());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = listener.local_addr().unwrap();
    site.configure(
        "",
        &format!(
            "http2 on; server {{ listen {address}; location / {{ proxy_pass http://{origin}; proxy_buffering off; }} }}"
        ),
    );
    site.start();
    let (start, go) = mpsc::channel();
    let behind = thread::spawn(move || serve_two(&listener, &go));
    let mut client = Connection::client(Settings::default(), Limits::default());
    // The connection's window stays at what it is at first.
    client.output().clear();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    for _ in 0..2 {
        let id = client.open().unwrap();
        client.emit_request(id, b"http", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true);
    }
    stream.write_all(client.output()).unwrap();
    let (mut heads, mut received, mut ends) = (0, 0, 0);
    let (mut is_asked, mut is_told) = (false, false);
    while ends < 2 || !is_told {
        match frame(&mut stream) {
            (0, flags, _, content) => {
                received += content.len();
                // Its end may be a frame without content.
                if received == CONTENT_BYTES && !content.is_empty() {
                    start.send(()).unwrap();
                }
                ends += usize::from(flags & 1 != 0);
            }
            (1, ..) => {
                heads += 1;
                if heads == 2 {
                    start.send(()).unwrap();
                }
            }
            // What was written before the answer to a PING comes before it.
            (6, ..) => {
                assert_eq!(received, WINDOW_BYTES);
                is_told = true;
                stream
                    .write_all(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0])
                    .unwrap();
            }
            (4 | 8, ..) => {}
            other => panic!("{other:?}"),
        }
        if received >= WINDOW_BYTES && !is_asked {
            is_asked = true;
            let ping = b"\0\0\x08\x06\0\0\0\0\0whatever";
            stream.write_all(ping).unwrap();
        }
    }
    assert_eq!(received, 2 * CONTENT_BYTES);
    behind.join().unwrap();
}
