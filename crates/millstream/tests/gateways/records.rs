//! A FastCGI server that answers with given bytes: what nginx logs of wrong records, and what is cut.

use crate::programs::Programs;
use crate::servers::{Program, Servers};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

const DIRECTIVES: &str =
    "location / { fastcgi_param A b; fastcgi_buffer_size 1k; fastcgi_pass unix:%DIR%/records; }";

/// A record of the request 1.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

fn stdout(content: &[u8]) -> Vec<u8> {
    record(6, content)
}

fn end() -> Vec<u8> {
    record(3, &[0; 8])
}

/// Answers one request on each of so many connections.
fn serve(listener: UnixListener, connections: usize, answer: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            // Standard input, which is empty, ends the request.
            while !request.ends_with(&record(5, b"")) {
                let mut piece = [0; 4096];
                let len = stream.read(&mut piece).unwrap();
                assert!(len > 0, "a request that is cut");
                request.extend_from_slice(&piece[..len]);
            }
            // A server may see its fault before it was sent all of it.
            let _ = stream.write_all(&answer);
        }
    })
}

/// Runs `ask` with both servers before this answer; each is to ask once.
fn with_answer(answer: Vec<u8>, ask: impl FnOnce(&Servers)) {
    let Some(mut programs) = Programs::new(&["nginx"]) else {
        return;
    };
    let listener = UnixListener::bind(programs.directory.join("records")).unwrap();
    let server = serve(listener, 2, answer);
    ask(&programs.servers(DIRECTIVES));
    server.join().unwrap();
}

const GET: &str = "GET / HTTP/1.1\r\n";

/// Both answer 502, and log this while they read the head.
fn check_fault(answer: Vec<u8>, text: &str) {
    with_answer(answer, |servers| {
        servers.compare(GET, "", "502 Bad Gateway", "502");
        servers.both_log(&format!(
            "{text} while reading response header from upstream"
        ));
    });
}

#[test]
fn wrong_records_are_logged_as_by_nginx() {
    check_fault(
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        "upstream sent unsupported FastCGI protocol version: 72",
    );
    check_fault(
        record(5, b"x"),
        "upstream sent invalid FastCGI record type: 5",
    );
    check_fault(
        b"\x01\x06\0\x02\0\0\0\0".to_vec(),
        "upstream sent unexpected FastCGI request id low byte: 2",
    );
    check_fault(end(), "upstream sent unexpected FastCGI record: 3");
    check_fault(stdout(b""), "upstream prematurely closed FastCGI stdout");
    check_fault(stdout(&[b'a'; 2000]), "upstream sent too big header");
    check_fault(
        stdout(b"A: b\r\n"),
        "upstream prematurely closed connection",
    );
}

#[test]
fn content_beyond_its_length_is_left_out_as_by_nginx() {
    let head = stdout(b"Content-Length: 2\n\nabc");
    with_answer([head, stdout(b""), end()].concat(), |servers| {
        servers.compare(GET, "", "200 OK", "\n\nab");
        servers.both_log("upstream sent more data than specified in \"Content-Length\" header");
    });
}

#[test]
fn an_answer_without_an_end_is_cut_for_the_client() {
    let answer = stdout(b"X: y\n\nabc");
    with_answer(answer, |servers| {
        // nginx takes the end of the connection for that of the content.
        let nginx = servers.ask(Program::Nginx, GET, "");
        assert!(nginx.ends_with("\n\nabc(end)"), "{nginx}");
        let millstream = servers.ask(Program::Millstream, GET, "");
        assert!(millstream.ends_with("\n\nabc"), "{millstream}");
    });
}
