//! Requests and tunnels to servers while the processes change.

use crate::client::{Client, get};
use crate::site::{Site, free_address, is_running, send, wait_for, wait_until_ended};
use mill_sys::signal::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const HALF: &[u8] = b"half of it";
const ECHO: &[u8] =
    b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

/// A server that echoes behind 101; that takes uploads; and that otherwise sends the first half of an answer, and the
/// second one when it is told to.
struct Origin {
    address: SocketAddr,
    go_on: Sender<()>,
    /// How much of an upload has arrived: its first half, then all that came until it was whole or its connection ended.
    uploads: Receiver<Vec<u8>>,
}

impl Origin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (go_on, told) = channel();
        let (upload, uploads) = channel();
        thread::spawn(move || {
            let mut told = Some(told);
            for stream in listener.incoming().flatten() {
                let (request, reader) = read_head(stream);
                if request.starts_with("POST ") {
                    let upload = upload.clone();
                    thread::spawn(move || take_upload(reader, &upload));
                    continue;
                }
                let mut stream = reader.into_inner();
                if request.starts_with("GET /echo ") {
                    thread::spawn(move || echo(stream));
                } else if request.starts_with("GET /slow ") {
                    let told = told.take().unwrap();
                    thread::spawn(move || answer_slowly(stream, told));
                } else {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            }
        });
        Self {
            address,
            go_on,
            uploads,
        }
    }

    fn upload(&self) -> Vec<u8> {
        self.uploads.recv_timeout(TIMEOUT).unwrap()
    }
}

fn read_head(stream: TcpStream) -> (String, BufReader<TcpStream>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
    (head, reader)
}

fn take_upload(mut reader: BufReader<TcpStream>, upload: &Sender<Vec<u8>>) {
    let mut content = vec![0; HALF.len()];
    if reader.read_exact(&mut content).is_ok() {
        let _ = upload.send(content.clone());
    }
    let mut rest = Vec::new();
    let _ = reader
        .by_ref()
        .take(HALF.len() as u64)
        .read_to_end(&mut rest);
    let is_whole = rest.len() == HALF.len();
    content.extend(rest);
    let _ = upload.send(content);
    if is_whole {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nkept";
        let _ = reader.get_mut().write_all(answer);
    }
}

fn echo(mut stream: TcpStream) {
    let switch =
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(switch).unwrap();
    let mut bytes = [0; 64];
    while let Ok(len @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..len]).is_err() {
            return;
        }
    }
}

fn answer_slowly(mut stream: TcpStream, told: Receiver<()>) {
    let len = 2 * HALF.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(HALF).unwrap();
    if told.recv().is_ok() {
        let _ = stream.write_all(HALF);
    }
}

/// A request whose answer is half there, a tunnel, and two requests whose content is half there: one is passed on as it
/// comes, the other one once it is whole.
struct UnderWay {
    slow: Client,
    tunnel: Client,
    streamed: Client,
    stored: Client,
}

impl UnderWay {
    fn begin(front: SocketAddr, origin: &Origin) -> Self {
        let mut slow = Client::connect(front).unwrap();
        slow.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(slow.head().unwrap(), (200, 2 * HALF.len()));
        assert_eq!(slow.content(HALF.len()).unwrap(), HALF);
        let stored = begin_upload(front, "/stored");
        let streamed = begin_upload(front, "/streamed");
        // So the other one, which came before, is accepted too.
        assert_eq!(origin.upload(), HALF);
        Self {
            slow,
            tunnel: open_tunnel(front),
            streamed,
            stored,
        }
    }

    /// All go on to their ends.
    fn goes_on(mut self, origin: &Origin) {
        assert!(has_echo(&mut self.tunnel));
        origin.go_on.send(()).unwrap();
        assert_eq!(self.slow.content(HALF.len()).unwrap(), HALF);
        end_upload(&mut self.streamed);
        assert_eq!(origin.upload(), HALF.repeat(2));
        end_upload(&mut self.stored);
        assert_eq!(origin.upload(), HALF);
        assert_eq!(origin.upload(), HALF.repeat(2));
    }
}

fn begin_upload(front: SocketAddr, path: &str) -> Client {
    let mut client = Client::connect(front).unwrap();
    let len = 2 * HALF.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n");
    client.send(&[head.as_bytes(), HALF].concat()).unwrap();
    client
}

fn end_upload(client: &mut Client) {
    client.send(HALF).unwrap();
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, &answer.content[..]), (201, &b"kept"[..]));
}

fn open_tunnel(front: SocketAddr) -> Client {
    let mut tunnel = Client::connect(front).unwrap();
    tunnel.send(ECHO).unwrap();
    assert_eq!(tunnel.head().unwrap().0, 101);
    assert!(has_echo(&mut tunnel));
    tunnel
}

fn has_echo(tunnel: &mut Client) -> bool {
    let sent = tunnel.send(b"some bytes");
    sent.is_ok() && tunnel.content(10).is_ok_and(|bytes| bytes == b"some bytes")
}

fn start(origin: &Origin) -> (Site, SocketAddr) {
    let (site, front) = (Site::new(), free_address());
    configure(&site, "", &front.to_string(), origin);
    (site, front)
}

fn configure(site: &Site, main: &str, listen: &str, origin: &Origin) {
    let address = origin.address;
    site.configure(
        main,
        &format!(
            "server {{ listen {listen};
                 location / {{ proxy_pass http://{address}; proxy_buffering off; }}
                 location /streamed {{ proxy_pass http://{address}; proxy_request_buffering off; }}
                 location /echo {{ proxy_pass http://{address}; proxy_http_version 1.1;
                     proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }} }}"
        ),
    );
}

#[test]
fn a_reload_and_quit_leave_proxied_requests_uploads_and_tunnels_alone() {
    for signal in [Signal::Hangup, Signal::Quit] {
        let origin = Origin::start();
        let (site, front) = start(&origin);
        let master = site.start();
        let worker = site.worker(master, &[]);
        let under_way = UnderWay::begin(front, &origin);
        send(master, signal);
        if signal == Signal::Quit {
            wait_for("the port to be closed", || {
                Client::connect(front).is_err().then_some(())
            });
            assert!(is_running(master) && is_running(worker));
        } else {
            site.wait_for_log("configuration 2 is in force");
        }
        under_way.goes_on(&origin);
        if signal == Signal::Quit {
            wait_until_ended(master);
        }
    }
}

#[test]
fn an_upgrade_of_the_binary_leaves_proxied_requests_uploads_and_tunnels_alone() {
    let origin = Origin::start();
    let (site, front) = start(&origin);
    let old = site.start();
    let worker = site.worker(old, &[]);
    let under_way = UnderWay::begin(front, &origin);
    send(old, Signal::User2);
    let new = wait_for("the new pid file", || {
        site.master().filter(|pid| *pid != old)
    });
    site.worker(new, &[]);
    send(old, Signal::Quit);
    site.wait_for_log("signal 3 (SIGQUIT) received");
    assert!(is_running(old) && is_running(worker));
    assert_eq!(get(front, "/").unwrap().content, b"ok");
    under_way.goes_on(&origin);
    wait_until_ended(old);
}

#[test]
fn a_killed_worker_process_cuts_answers_and_uploads_short_of_their_length_and_ends_tunnels() {
    let origin = Origin::start();
    let (site, front) = start(&origin);
    let master = site.start();
    let mut under_way = UnderWay::begin(front, &origin);
    send(site.worker(master, &[]), Signal::Kill);
    // The client can tell: its connection ends before all that was announced has come.
    assert!(under_way.slow.content(1).is_err());
    assert!(!has_echo(&mut under_way.tunnel));
    // So can the server: what was announced to it has not come, and it answers nothing.
    assert_eq!(origin.upload(), HALF);
    assert!(under_way.streamed.answer().is_err());
    assert!(under_way.stored.answer().is_err());
    assert_eq!(get(front, "/").unwrap().content, b"ok");
}

#[test]
fn quit_ends_requests_and_tunnels_after_worker_shutdown_timeout() {
    let origin = Origin::start();
    let (site, front) = (Site::new(), free_address());
    let main = "worker_shutdown_timeout 200ms;";
    configure(&site, main, &front.to_string(), &origin);
    let master = site.start();
    let mut under_way = UnderWay::begin(front, &origin);
    send(master, Signal::Quit);
    wait_until_ended(master);
    assert!(under_way.slow.content(1).is_err());
    assert!(!has_echo(&mut under_way.tunnel));
}

#[test]
fn a_reload_ends_the_tunnels_of_removed_workers_alone_after_worker_shutdown_timeout() {
    let origin = Origin::start();
    let (site, front) = (Site::new(), free_address());
    let workers = |count: u32| {
        let main = format!("worker_processes {count}; worker_shutdown_timeout 200ms;");
        configure(&site, &main, &format!("{front} reuseport"), &origin);
    };
    workers(2);
    let master = site.start();
    // All of them at one worker: one case in 2^31.
    let mut tunnels: Vec<_> = (0..TUNNELS).map(|_| open_tunnel(front)).collect();
    workers(1);
    send(master, Signal::Hangup);
    // The worker closes its tunnels one by one: until a look finds no more that have ended.
    wait_for("tunnels to end", || {
        let before = tunnels.len();
        tunnels.retain_mut(has_echo);
        (before < TUNNELS && tunnels.len() == before).then_some(())
    });
    assert!(!tunnels.is_empty());
}

const TUNNELS: usize = 32;

/// The time limit of any step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);
