//! A server behind, of HTTP/1.1: `/hints` answers after 103 (Early Hints), `/trailers` in chunks with a trailer, `/echo`
//! with the content of the request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Ended when it is dropped, from the namespace in which it was started.
pub(crate) struct Origin {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                // A client that goes away is no failure.
                thread::spawn(move || answer(&stream));
            }
        });
        Self {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Its accept returns.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// One request, and the end.
fn answer(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let content = content_of(&head, &mut reader)?;
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut writer = stream;
    match path {
        "/hints" => writer.write_all(
            b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhinted",
        ),
        "/trailers" => writer.write_all(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n\
              5\r\nfirst\r\n4\r\nlast\r\n0\r\nX-Sum: 7\r\n\r\n",
        ),
        _ => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
            writer.write_all(head.as_bytes())?;
            writer.write_all(&content)
        }
    }
}

/// The content behind a head, in chunks or of a stated length.
fn content_of(head: &str, reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let value = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    let mut content = Vec::new();
    if let Some(len) = value("content-length:").and_then(|len| len.parse::<u64>().ok()) {
        reader.take(len).read_to_end(&mut content)?;
        return Ok(content);
    }
    if value("transfer-encoding:").is_none() {
        return Ok(content);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let len = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        reader.take(len).read_to_end(&mut content)?;
        reader.read_line(&mut line)?;
        if len == 0 {
            return Ok(content);
        }
    }
}
