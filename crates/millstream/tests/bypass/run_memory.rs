//! `millstream run` with little memory: packets and bytes that wait for a program have no room, and nothing is lost.

use crate::client::Client;
use crate::namespace::has;
use crate::run::{Accelerated, address};
use crate::run_calls::PYTHON;
use crate::server::wait_for;
use crate::topology::{STACK, Topology, between, kernel_connections};
use mill_sys::descriptor::wait_readable;
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server that reads no connection before one of them says "go", and then echoes on all.
const SERVER: &str = "
import socket, threading
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
told = threading.Event()
def talk(c):
    word = c.recv(1)
    if word == b'g':
        told.set()
    elif word:
        told.wait()
        while d := c.recv(65536): c.sendall(d)
    c.close()
while True: threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
";

const BYTES: usize = 2_000_000;
const WRITERS: usize = 12;

fn pattern(writer: usize) -> Vec<u8> {
    let words = (0..BYTES / 4).map(|place| u32::try_from(place * 31 + writer).unwrap());
    words.flat_map(u32::to_le_bytes).collect()
}

/// Writes all, as the server lets it, and reads it back; `written` counts.
fn writer(number: usize, written: &Arc<AtomicUsize>) -> JoinHandle<bool> {
    let mut stream = TcpStream::connect(address(7000)).unwrap();
    let written = Arc::clone(written);
    thread::spawn(move || {
        let sent = pattern(number);
        let mut reading = stream.try_clone().unwrap();
        let reader = thread::spawn(move || {
            let mut back = Vec::new();
            reading.read_to_end(&mut back).unwrap();
            back
        });
        stream.write_all(b"w").unwrap();
        for part in sent.chunks(10_000) {
            stream.write_all(part).unwrap();
            written.fetch_add(part.len(), Ordering::Relaxed);
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        reader.join().unwrap() == sent
    })
}

/// Until nothing more can be written.
fn wait_until_stuck(written: &AtomicUsize) {
    wait_for(|| {
        let before = written.load(Ordering::Relaxed);
        wait_readable(&[], Some(Duration::from_millis(400))).unwrap();
        before > 0 && written.load(Ordering::Relaxed) == before
    });
}

fn check(topology: &Topology, stack: &str) {
    let server = Accelerated::on(stack, &[PYTHON, "-c", SERVER]);
    wait_for(|| {
        let client = topology.at_client(|| Client::connect(address(7000)));
        client.is_ok() && kernel_connections(7000).is_empty()
    });
    let written = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = topology.at_client(|| {
        let numbers = 0..WRITERS;
        numbers.map(|number| writer(number, &written)).collect()
    });
    wait_until_stuck(&written);
    assert!(written.load(Ordering::Relaxed) < WRITERS * BYTES);
    let mut go = topology.at_client(|| Client::connect(address(7000)).unwrap());
    go.send(b"g").unwrap();
    for writer in writers {
        assert!(writer.join().unwrap(), "what comes back is what was sent");
    }
    assert_eq!(kernel_connections(7000), "");
    server.end(Signal::Terminate);
}

#[test]
fn bytes_that_find_no_room_wait_at_their_senders() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        check(topology, &format!("{STACK},receive-memory=1m"));
        let few = "receive-frames=256,transmit-frames=256,receive-memory=2m";
        check(topology, &format!("{STACK},{few}"));
    });
}
