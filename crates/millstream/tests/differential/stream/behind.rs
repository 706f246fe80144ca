//! Servers behind: each kind at a port of its own, for as long as the test runs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// What a server does with a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Sends back what comes, until its client ends.
    Echo,
    /// Says hello, and ends.
    Hello,
    /// Reads to the end, then answers.
    Late,
    /// Says hello, ends its direction, and reads on.
    Half,
}

/// A server, and what it has received, connection by connection.
pub(super) struct Behind {
    pub(super) port: u16,
    received: Receiver<Vec<u8>>,
}

impl Behind {
    pub(super) fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, received) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(kind, stream, &sender);
            }
        });
        Self { port, received }
    }

    /// What the next connection has received, once it is over.
    pub(super) fn take(&self) -> String {
        let received = self.received.recv_timeout(Duration::from_secs(20));
        String::from_utf8_lossy(&received.unwrap()).into_owned()
    }
}

fn serve(kind: Kind, mut stream: TcpStream, sender: &Sender<Vec<u8>>) {
    let mut received = Vec::new();
    match kind {
        Kind::Echo => {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = stream.read(&mut bytes) {
                received.extend_from_slice(&bytes[..len]);
                if stream.write_all(&bytes[..len]).is_err() {
                    break;
                }
            }
        }
        Kind::Hello => {
            let _ = stream.write_all(b"hello\n");
        }
        Kind::Late => {
            let _ = stream.read_to_end(&mut received);
            let _ = stream.write_all(b"late\n");
        }
        Kind::Half => {
            let _ = stream.write_all(b"hello\n");
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut received);
        }
    }
    drop(stream);
    // The test may be over.
    let _ = sender.send(received);
}
