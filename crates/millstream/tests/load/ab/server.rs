//! Servers with given behaviour, which record the requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread;

/// A server's behaviour. "Every third" counts from when the record was last taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// 200 and twelve bytes, the connection kept on request.
    Answers,
    /// 404.
    Missing,
    /// Content that gets longer with every request.
    Varies,
    /// Every third answer ends in its head.
    ClosesInHead,
    /// Every third answer ends in its content.
    ClosesInContent,
    /// Every third connection is closed without an answer.
    ClosesAtOnce,
    /// Every third connection is reset instead of answered.
    Resets,
}

/// A server on a port of its own; its threads end with the test's process.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    pub(super) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::default();
        let log = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                // An error here means that the client has closed.
                thread::spawn(move || _ = serve(stream, behaviour, &log));
            }
        });
        Self { address, received }
    }

    /// An address at which no socket listens.
    pub(super) fn unlistened() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }

    /// The requests since the last call.
    pub(super) fn take_received(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

fn serve(
    mut stream: TcpStream,
    behaviour: Behaviour,
    received: &Mutex<Vec<Vec<u8>>>,
) -> std::io::Result<()> {
    while let Some(request) = receive(&mut stream)? {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let is_kept = text.contains("\r\nconnection: keep-alive\r\n");
        let is_head = text.starts_with("head ");
        let number = {
            let mut received = received.lock().unwrap();
            received.push(request);
            received.len()
        };
        let content = match behaviour {
            Behaviour::Varies => "x".repeat(number),
            _ => String::from("hello world\n"),
        };
        let status = match behaviour {
            Behaviour::Missing => "404 Not Found",
            _ => "200 OK",
        };
        let connection = if is_kept { "keep-alive" } else { "close" };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nServer: test/1.0 (x)\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
            content.len()
        );
        if !is_head {
            answer.push_str(&content);
        }
        let is_third = number % 3 == 0;
        let sent = match behaviour {
            Behaviour::ClosesInHead if is_third => 30,
            Behaviour::ClosesInContent if is_third => answer.len() - 5,
            Behaviour::ClosesAtOnce if is_third => 0,
            Behaviour::Resets if is_third => {
                return mill_sys::socket::set_reset_on_close(stream.as_fd());
            }
            _ => answer.len(),
        };
        stream.write_all(&answer.as_bytes()[..sent])?;
        if !is_kept || sent < answer.len() {
            return Ok(());
        }
    }
    Ok(())
}

/// One request with its content; `None` at the end.
fn receive(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        request.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |value| value.parse().unwrap());
    let mut content = vec![0; length];
    stream.read_exact(&mut content)?;
    request.extend_from_slice(&content);
    Ok(Some(request))
}
