//! Where the server allocates no memory, and how much a tunnel holds: one worker over kernel sockets, whose thread's
//! allocations are counted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// What a tunnel holds.
mod tunnels;

/// Answers that a cache keeps.
mod cached;

use mill_config::{Memory, Options, load};
use mill_engine::{KernelEngine, KernelOptions, offer};
use mill_metrics::Board;
use mill_runtime::address::Address;
use mill_server::local::Environment;
use mill_server::log::LogSender;
use mill_server::site::Site;
use mill_server::wakes::Doorbell;
use mill_server::worker::{self, Assigned, Order, WorkerSetup};
use mill_sys::allocation::{CountingAllocator, allocations};
use mill_sys::passing;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Requests of a round, and rounds.
const REQUESTS: u32 = 100;
const ROUNDS: u32 = 10;

/// A server that gives the same answer to each request, which ends with `end`; the answers that it gave on its one connection.
fn serve(listener: &TcpListener, end: &[u8], answer: &[u8]) -> u32 {
    let (mut stream, _) = listener.accept().unwrap();
    let mut answers = 0;
    while read_until(&mut stream, end) {
        stream.write_all(answer).unwrap();
        answers += 1;
    }
    answers
}

/// Reads until what was read ends with `end`; false at the end of the stream.
fn read_until(stream: &mut TcpStream, end: &[u8]) -> bool {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => return false,
        }
    }
    true
}

/// Sends so many rounds of a request, one after the other, and counts the rounds in `round`.
fn ask(address: SocketAddr, request: &[u8], end: &[u8], round: &AtomicU32) {
    let mut stream = TcpStream::connect(address).unwrap();
    for _ in 0..ROUNDS {
        for _ in 0..REQUESTS {
            stream.write_all(request).unwrap();
            assert!(read_until(&mut stream, end), "the answer is whole");
        }
        round.fetch_add(1, Ordering::SeqCst);
    }
    // The end of the connection wakes the worker.
}

/// The allocations of each round while a proxy with these directives, in its location and in `http`, passes `request` on, and `answer` back; both end
/// with what is behind them here.
fn allocations_of(
    http: &str,
    directives: &str,
    request: (&[u8], &[u8]),
    answer: (&[u8], &[u8]),
) -> Vec<u64> {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let behind = origin.local_addr().unwrap();
    let (mut turn, address) = start_proxy(http, directives, behind);
    let round = AtomicU32::new(0);
    let mut counted = Vec::new();
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&origin, request.1, answer.0));
        scope.spawn(|| ask(address, request.0, answer.1, &round));
        let (mut known, mut before) = (0, allocations());
        while known < ROUNDS {
            assert!(turn(), "the worker has not ended");
            let now = round.load(Ordering::SeqCst);
            if now > known {
                counted.push(allocations() - before);
                (known, before) = (now, allocations());
            }
        }
        // Closes the connection to the origin, which ends then.
        drop(turn);
        // If there was none, this one ends it.
        let _ = TcpStream::connect(behind);
        assert!(served.join().unwrap() > 0, "the origin was asked");
    });
    counted
}

/// A worker that passes requests on to `behind`, and where it listens.
fn start_proxy(
    http: &str,
    directives: &str,
    behind: SocketAddr,
) -> (impl FnMut() -> bool + use<>, SocketAddr) {
    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let text = format!(
        "events {{ }} http {{ {http} keepalive_requests 1000000; upstream app {{ server {behind}; keepalive 4; }}
            server {{ listen {address}; location / {{ proxy_pass http://app; proxy_http_version 1.1; {directives} }} }} }}"
    );
    let (mailbox, inside) = passing::pair().unwrap();
    let key = offer::encode(&Address::Ip(address), None);
    passing::send(mailbox.as_fd(), &key, &[front.as_fd()]).unwrap();
    let engine = KernelEngine::new(KernelOptions {
        mailbox: Some(inside),
        ..KernelOptions::default()
    });
    (start(engine.unwrap(), &text), address)
}

/// A worker that serves the configuration.
fn start(engine: KernelEngine, text: &str) -> impl FnMut() -> bool + use<> {
    let options = Options::default();
    let source = Memory::new().with(&*options.conf_file(), text);
    let loaded = load(&source, &options).unwrap_or_else(|failure| panic!("{:?}", failure.error));
    let (orders, inbox) = channel();
    let (reports, _) = channel();
    let listener = Assigned {
        listener: 0,
        share: None,
    };
    let adopt = Order::Adopt {
        site: Arc::new(Site::new(loaded.config, 1)),
        listeners: vec![listener],
    };
    orders.send(adopt).unwrap();
    let mut turn = worker::start(
        engine,
        WorkerSetup {
            index: 0,
            environment: Environment {
                pid: 1,
                parent_pid: 99,
                thread_id: 1,
                hostname: Arc::from(&b"test"[..]),
                utc_offset: |_| 0,
                connection_numbers: Arc::default(),
            },
            inbox,
            reports,
            logs: LogSender::memory(),
            board: Board::in_memory(1),
            doorbell: Doorbell::silent(),
        },
    );
    move || {
        // While there is a sender the worker goes on.
        let _ = &orders;
        turn()
    }
}

/// What a request needs shows in each round; in some a timer or a list may grow once more.
#[track_caller]
fn check(directives: &str, answer: &str, end: &str) {
    let request =
        b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";
    let answer = (answer.as_bytes(), end.as_bytes());
    check_request(directives, (request, b"\r\n\r\n"), answer);
}

#[track_caller]
fn check_request(directives: &str, request: (&[u8], &[u8]), answer: (&[u8], &[u8])) {
    let counted = allocations_of("access_log off;", directives, request, answer);
    let least = counted.iter().min();
    assert_eq!(
        least,
        Some(&0),
        "{directives}: {counted:?} in rounds of {REQUESTS}"
    );
}

#[test]
fn a_kept_connection_to_a_kept_connection_allocates_nothing() {
    let fields = "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Type: text/plain\r\nLast-Modified: Sun, 06 Nov 1994 08:49:36 GMT\r\nConnection: keep-alive\r\n\
        ETag: \"0123456789-0123456789-0123456789-0123456789\"\r\nX-Name: a value of more than thirty bytes\r\n";
    let content = "x".repeat(1000);
    let of_length = format!("{fields}Content-Length: 1003\r\n\r\n{content}end");
    let in_chunks =
        format!("{fields}Transfer-Encoding: chunked\r\n\r\n3e8\r\n{content}\r\n0\r\n\r\n");
    let empty = format!("{fields}Content-Length: 0\r\n\r\n");
    let connection = "proxy_set_header Connection '';";
    check(connection, &of_length, "end");
    let usual = "proxy_set_header Connection ''; proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;";
    check(usual, &of_length, "end");
    check(connection, &in_chunks, "\r\n0\r\n\r\n");
    check(connection, &empty, "\r\n\r\n");
}

#[test]
fn content_of_a_request_in_memory_allocates_nothing() {
    for len in [10, 1000, 100_000] {
        let request = format!(
            "POST /a HTTP/1.1\r\nHost: example.org\r\nContent-Length: {len}\r\n\r\n{}end",
            "x".repeat(len - 3)
        );
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes";
        let directives = "proxy_set_header Connection ''; client_body_buffer_size 128k;";
        check_request(directives, (request.as_bytes(), b"end"), (answer, b"yes"));
    }
}
