//! Names that are resolved while the server runs, by a name server on this machine.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_for, wait_until_ended};
use crate::zone::{A, Asked, Record};
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A name server, until it is dropped. `big.example` has more addresses than a datagram carries; before each reply come
/// lies, and `dead.example` gets none.
struct NameServer {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    /// `b.example` is gone.
    vanished: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl NameServer {
    fn start() -> Self {
        // A port that is free for UDP may be in use for TCP.
        let mut both = (0..100).filter_map(|_| {
            let datagrams = UdpSocket::bind("127.0.0.1:0").ok()?;
            let listener = TcpListener::bind(datagrams.local_addr().ok()?).ok()?;
            Some((datagrams, listener))
        });
        let (datagrams, listener) = both.next().unwrap();
        let address = datagrams.local_addr().unwrap();
        let (ended, vanished) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let over_udp = {
            let (ended, vanished) = (Arc::clone(&ended), Arc::clone(&vanished));
            move || serve_datagrams(&datagrams, &ended, &vanished)
        };
        let over_tcp = {
            let ended = Arc::clone(&ended);
            move || serve_tcp(&listener, &ended)
        };
        Self {
            address,
            ended,
            vanished,
            threads: vec![thread::spawn(over_udp), thread::spawn(over_tcp)],
        }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes both threads; what they say now is of no interest.
        let _ = TcpStream::connect(self.address);
        let waker = UdpSocket::bind("127.0.0.1:0");
        let _ = waker.and_then(|waker| waker.send_to(&[], self.address));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve_datagrams(socket: &UdpSocket, ended: &AtomicBool, vanished: &AtomicBool) {
    let mut bytes = [0; 600];
    while let Ok((len, remote)) = socket.recv_from(&mut bytes) {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let asked = Asked::parse(&bytes[..len]);
        let lie = [Record::a(&asked.name, 60, [127, 0, 0, 66])];
        let replies = match asked.name.as_str() {
            "dead.example" => continue,
            "b.example" if vanished.load(Ordering::Relaxed) => vec![asked.failure(3)],
            "b.example" => vec![
                asked.with_id(asked.id ^ 1, &lie),
                asked.to_other_question("c.example", &lie),
                asked.reply(&addresses(&asked, 1)),
            ],
            "big.example" => vec![asked.truncated()],
            _ => vec![asked.failure(3)],
        };
        for reply in replies {
            socket.send_to(&reply, remote).unwrap();
        }
    }
}

fn serve_tcp(listener: &TcpListener, ended: &AtomicBool) {
    for stream in listener.incoming() {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let mut stream = stream.unwrap();
        let mut len = [0; 2];
        stream.read_exact(&mut len).unwrap();
        let mut question = vec![0; usize::from(u16::from_be_bytes(len))];
        stream.read_exact(&mut question).unwrap();
        let asked = Asked::parse(&question);
        let reply = asked.reply(&addresses(&asked, 200));
        let len = u16::try_from(reply.len()).unwrap().to_be_bytes();
        stream.write_all(&[&len[..], &reply].concat()).unwrap();
    }
}

/// Addresses of this machine, for a second.
fn addresses(asked: &Asked, count: u8) -> Vec<Record> {
    let record = |last| Record::a(&asked.name, 1, [127, 0, 0, last]);
    let records = (1..=count).map(record);
    if asked.kind == A {
        records.collect()
    } else {
        Vec::new()
    }
}

#[test]
fn names_are_resolved_over_udp_and_tcp_and_servers_that_are_followed_vanish() {
    let name_server = NameServer::start();
    let site = Site::new();
    let (address, origin) = (free_address(), free_address());
    site.configure(
        "worker_processes 2;",
        &format!(
            "resolver {}; resolver_timeout 1s;
             upstream g {{ server b.example:{} resolve; }}
             server {{ listen 0.0.0.0:{}; location / {{ return 200 $server_addr; }} }}
             server {{
               listen {address};
               location /group {{ proxy_pass http://g; }}
               location /to {{ proxy_pass http://$arg_to:{}; }}
             }}",
            name_server.address,
            origin.port(),
            origin.port(),
            origin.port(),
        ),
    );
    let master = site.start();
    site.wait_until_served(address);
    let ask = |target: &str| {
        let answer = get(address, target).unwrap();
        (answer.status, String::from_utf8(answer.content).unwrap())
    };
    assert_eq!(ask("/to?to=b.example"), (200, "127.0.0.1".to_owned()));
    let (status, first) = ask("/to?to=big.example");
    assert!(
        status == 200 && first.starts_with("127.0.0."),
        "{status} {first}"
    );
    assert_eq!(ask("/to?to=c.example").0, 502);
    assert_eq!(ask("/to?to=dead.example").0, 502);
    for text in [
        "c.example could not be resolved (3: Host not found), client",
        "dead.example could not be resolved (110: Operation timed out), client",
    ] {
        site.wait_for_log(text);
    }
    wait_for("the name to be resolved", || {
        (ask("/group").0 == 200).then_some(())
    });
    name_server.vanished.store(true, Ordering::Relaxed);
    wait_for("the server to vanish", || {
        (ask("/group").0 == 502).then_some(())
    });
    site.wait_for_log("no live upstreams while connecting to upstream");
    send(master, Signal::Quit);
    wait_until_ended(master);
}
