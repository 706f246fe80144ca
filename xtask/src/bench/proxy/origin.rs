//! Servers behind a proxy: WebSocket echo (RFC 6455), and FastCGI answers of a fixed length. A thread a connection:
//! their cost is not the proxy's.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;

/// The argument after `bench` that starts one.
pub(in crate::bench) const ARGUMENT: &str = "proxy-origin";

/// `websocket PORT` or `fastcgi PORT BYTES`, until it is killed.
pub(in crate::bench) fn run(arguments: &[&str]) -> ExitCode {
    let parsed = match arguments {
        ["websocket", port] => port.parse().ok().map(|port| (port, None)),
        ["fastcgi", port, bytes] => port.parse().ok().zip(bytes.parse().ok().map(Some)),
        _ => None,
    };
    let Some((port, fastcgi_bytes)) = parsed else {
        eprintln!("xtask bench {ARGUMENT}: wants \"websocket PORT\" or \"fastcgi PORT BYTES\"");
        return ExitCode::from(crate::EXIT_USAGE);
    };
    match serve(port, fastcgi_bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask bench {ARGUMENT}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(port: u16, fastcgi_bytes: Option<u16>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        // A connection ends when the proxy closes it.
        thread::spawn(move || match fastcgi_bytes {
            None => echo(stream),
            Some(bytes) => answer_fastcgi(stream, bytes),
        });
    }
    Ok(())
}

/// Bytes of a message, of the mask of what clients send, and of a frame's first two fields.
pub(super) const MESSAGE_BYTES: usize = 64;
pub(super) const MASK_BYTES: usize = 4;
pub(super) const FRAME_HEAD: usize = 2;

/// A binary message that is whole in one frame; its length without mask.
pub(super) const BINARY: u8 = 0x82;
pub(super) const LENGTH: u8 = 64;
pub(super) const MASKED: u8 = 0x80;

/// What RFC 6455 1.3 answers to the key that the client sends.
const SWITCHING: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Answers messages of the one length with the same message.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    read_head(&mut stream)?;
    stream.write_all(SWITCHING)?;
    let mut frame = [0; FRAME_HEAD + MASK_BYTES + MESSAGE_BYTES];
    let mut answer = [0; FRAME_HEAD + MESSAGE_BYTES];
    answer[..FRAME_HEAD].copy_from_slice(&[BINARY, LENGTH]);
    loop {
        stream.read_exact(&mut frame)?;
        let (mask, message) = frame[FRAME_HEAD..].split_at(MASK_BYTES);
        let places = answer[FRAME_HEAD..].iter_mut().zip(message);
        for ((place, byte), mask) in places.zip(mask.iter().cycle()) {
            *place = byte ^ mask;
        }
        stream.write_all(&answer)?;
    }
}

/// Reads up to the empty line, byte by byte: what follows is not HTTP.
pub(super) fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    Ok(head)
}

/// Answers each request with `bytes` bytes, on one connection for as long as the proxy asks to keep it.
fn answer_fastcgi(stream: TcpStream, bytes: u16) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut answer = Vec::new();
    let content = [
        &b"Content-Type: text/html\r\n\r\n"[..],
        &vec![b'x'; bytes.into()],
    ]
    .concat();
    emit_record(STDOUT, &content, &mut answer);
    emit_record(STDOUT, &[], &mut answer);
    emit_record(END_REQUEST, &[0; 8], &mut answer);
    let mut is_kept = true;
    while is_kept {
        loop {
            let mut head = [0; 8];
            reader.read_exact(&mut head)?;
            let [_, kind, _, _, high, low, padding, _] = head;
            let len = usize::from(u16::from_be_bytes([high, low]));
            let mut body = vec![0; len + usize::from(padding)];
            reader.read_exact(&mut body)?;
            match (kind, body.get(2)) {
                (BEGIN_REQUEST, Some(flags)) => is_kept = flags & KEEP_CONN != 0,
                (STDIN, _) if len == 0 => break,
                _ => {}
            }
        }
        writer.write_all(&answer)?;
    }
    Ok(())
}

/// Appends a record of request 1.
fn emit_record(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    let len = u16::try_from(content.len()).expect("an answer fits into one record");
    let [high, low] = len.to_be_bytes();
    out.extend_from_slice(&[1, kind, 0, 1, high, low, 0, 0]);
    out.extend_from_slice(content);
}

/// Types of records, and the flag of a request's first one (FastCGI 1.0, 8).
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const KEEP_CONN: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a connection whose other end is served by `serve`.
    fn connected(serve: impl FnOnce(TcpStream) -> io::Result<()> + Send + 'static) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        thread::spawn(move || serve(server));
        client
    }

    #[test]
    fn a_masked_message_comes_back_unmasked() {
        let mut client = connected(echo);
        client
            .write_all(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n")
            .unwrap();
        assert!(
            read_head(&mut client)
                .unwrap()
                .starts_with(b"HTTP/1.1 101 ")
        );
        let mask = [1, 2, 3, 4];
        let masked: Vec<u8> = (0..64)
            .map(|at: u8| at ^ mask[usize::from(at) % 4])
            .collect();
        let frame = [&[BINARY, MASKED | LENGTH][..], &mask, &masked].concat();
        for _ in 0..2 {
            client.write_all(&frame).unwrap();
            let mut answer = [0; 66];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer[..2], [BINARY, LENGTH]);
            assert!(answer[2..].iter().copied().eq(0..64));
        }
    }

    #[test]
    fn a_fastcgi_connection_is_kept_if_the_request_asks_for_that() {
        let check = |flags: u8, answers: usize| {
            let mut client = connected(|stream| answer_fastcgi(stream, 10));
            let mut request = Vec::new();
            emit_record(BEGIN_REQUEST, &[0, 1, flags, 0, 0, 0, 0, 0], &mut request);
            emit_record(4, b"parameters", &mut request);
            emit_record(4, &[], &mut request);
            emit_record(STDIN, &[], &mut request);
            client.write_all(&request.repeat(2)).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut received = Vec::new();
            // A connection that is not kept may end by a reset, because the second request was not read.
            let _ = client.read_to_end(&mut received);
            let found = received.windows(10).filter(|bytes| *bytes == b"xxxxxxxxxx");
            assert_eq!(found.count(), answers, "{flags}");
        };
        check(KEEP_CONN, 2);
        check(0, 1);
    }
}
