//! A server with an answer for each of a few paths.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// A server on a port of its own; its threads end with the test's process.
pub(super) struct Server {
    pub(super) address: SocketAddr,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // An error here means that the client has closed.
                thread::spawn(move || _ = serve(stream));
            }
        });
        Self { address }
    }

    /// An address at which no socket listens.
    pub(super) fn unlistened() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut len) = ([0; 4096], 0);
    loop {
        let count = stream.read(&mut buffer[len..])?;
        if count == 0 {
            return Ok(());
        }
        len += count;
        let request = String::from_utf8_lossy(&buffer[..len]).into_owned();
        let Some((head, content)) = request.split_once("\r\n\r\n") else {
            continue;
        };
        // The only content that is sent here has three bytes.
        if head.contains("\r\nContent-Length: 3") && content.len() < 3 {
            continue;
        }
        len = 0;
        let closes = head.contains("\r\nConnection: close");
        let path = head.split(' ').nth(1).unwrap_or_default();
        stream.write_all(answer(path, closes).as_bytes())?;
        if closes || path == "/cut" {
            return Ok(());
        }
    }
}

fn answer(path: &str, closes: bool) -> String {
    let connection = if closes { "Connection: close\r\n" } else { "" };
    let content = "x".repeat(600);
    match path {
        "/missing" => format!("HTTP/1.1 404 Not Found\r\n{connection}Content-Length: 0\r\n\r\n"),
        "/cut" => String::from("HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\nx"),
        _ => format!("HTTP/1.1 200 OK\r\n{connection}Content-Length: 600\r\n\r\n{content}"),
    }
}
