//! Clients that send a WebSocket message of 64 bytes and wait for its echo, each on a connection of its own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use mill_sys::clock;

use super::origin::{BINARY, FRAME_HEAD, LENGTH, MASK_BYTES, MASKED, MESSAGE_BYTES, read_head};
use crate::bench::figures::Figures;

/// The argument after `bench` that starts them.
pub(in crate::bench) const ARGUMENT: &str = "websocket-ask";

/// `URL CONNECTIONS SECONDS`; prints what wrk prints.
pub(in crate::bench) fn run(arguments: &[&str]) -> ExitCode {
    let parsed = match arguments {
        [url, connections, seconds] => target(url)
            .zip(connections.parse().ok())
            .zip(seconds.parse().ok()),
        _ => None,
    };
    let Some(((target, connections), seconds)) = parsed else {
        eprintln!("xtask bench {ARGUMENT}: wants a URL, connections and seconds");
        return ExitCode::from(crate::EXIT_USAGE);
    };
    let figures = ask(&target, connections, Duration::from_secs(seconds));
    println!(
        "{}",
        figures.emit(&target.url, connections, 1.0, FRAME_HEAD + MESSAGE_BYTES)
    );
    ExitCode::SUCCESS
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    url: String,
    authority: String,
    path: String,
}

fn target(url: &str) -> Option<Target> {
    let (authority, path) = url.strip_prefix("http://")?.split_once('/')?;
    let port = if authority.contains(':') { "" } else { ":80" };
    Some(Target {
        url: String::from(url),
        authority: format!("{authority}{port}"),
        path: format!("/{path}"),
    })
}

/// All connections at once, a thread each.
fn ask(target: &Target, connections: usize, duration: Duration) -> Figures {
    let start = clock::monotonic();
    let end = start + duration;
    let mut latencies = Vec::new();
    let mut lost = 0;
    thread::scope(|scope| {
        let all: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| converse(target, end)))
            .collect();
        for one in all {
            let (own, end) = one.join().expect("a conversation does not panic");
            latencies.extend(own);
            lost += u64::from(end.is_err());
        }
    });
    Figures::of(latencies, lost, clock::monotonic() - start)
}

/// Messages on one connection until `end`: their round trips in nanoseconds, and whether all came back.
fn converse(target: &Target, end: Duration) -> (Vec<u32>, io::Result<()>) {
    let mut latencies = Vec::new();
    let done = (|| {
        let mut stream = connect(target)?;
        let mut answer = [0; FRAME_HEAD + MESSAGE_BYTES];
        let mut sent = clock::monotonic();
        while sent < end {
            stream.write_all(&FRAME)?;
            stream.read_exact(&mut answer)?;
            if answer[FRAME_HEAD..] != MESSAGE {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let now = clock::monotonic();
            latencies.push(u32::try_from((now - sent).as_nanos()).unwrap_or(u32::MAX));
            sent = now;
        }
        Ok(())
    })();
    (latencies, done)
}

fn connect(target: &Target) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(&target.authority)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let Target {
        path, authority, ..
    } = target;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if read_head(&mut stream)?.starts_with(b"HTTP/1.1 101 ") {
        Ok(stream)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// An echo that takes longer is lost, so that a run ends.
const PATIENCE: Duration = Duration::from_secs(5);

const MESSAGE: [u8; MESSAGE_BYTES] = [b'm'; MESSAGE_BYTES];

/// The message with a mask.
const FRAME: [u8; FRAME_HEAD + MASK_BYTES + MESSAGE_BYTES] = {
    const MASK: [u8; MASK_BYTES] = [0x37, 0xfa, 0x21, 0x3d];
    let mut frame = [0; FRAME_HEAD + MASK_BYTES + MESSAGE_BYTES];
    frame[0] = BINARY;
    frame[1] = MASKED | LENGTH;
    let mut at = 0;
    while at < MASK_BYTES + MESSAGE_BYTES {
        let mask = MASK[at % MASK_BYTES];
        frame[FRAME_HEAD + at] = if at < MASK_BYTES {
            mask
        } else {
            MESSAGE[at - MASK_BYTES] ^ mask
        };
        at += 1;
    }
    frame
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_an_authority_with_a_port_and_a_path() {
        let check = |url: &str, expected: Option<(&str, &str)>| {
            let found = target(url);
            let found = found
                .as_ref()
                .map(|found| (&*found.authority, &*found.path));
            assert_eq!(found, expected, "{url}");
        };
        check("http://a:81/ws", Some(("a:81", "/ws")));
        check("http://10.0.0.1/ws", Some(("10.0.0.1:80", "/ws")));
        check("ws://a/", None);
    }
}
