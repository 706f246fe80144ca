//! The floor of proxies: a relay that gives each client connection a connection of its own to the server behind, and
//! passes bytes on without parsing one. No proxy on kernel sockets can pass a request on at a lower cost: two calls to
//! receive and two to send, and epoll_wait shared between connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::listener::Endpoint;
use mill_sys::socket::ConnectorOptions;
use mill_sys::{affinity, socket};

use crate::bench::floor;

/// The argument after `bench` that starts it.
pub(in crate::bench) const ARGUMENT: &str = "floor-relay";

/// No connection has this number.
const LISTENER: u64 = u64::MAX;

/// Events per epoll_wait, nginx's `epoll_events`.
const EVENTS: usize = 512;

/// What is received at once: an answer of 100 kB is whole.
const BUFFER_BYTES: usize = 262_144;

const BOTH_WAYS: Interest = Interest {
    readable: true,
    writable: true,
    edge: true,
    exclusive: false,
};

/// `PORT CPU ADDRESS`: relays between 127.0.0.1:PORT and the address behind, until it is killed.
pub(in crate::bench) fn run(arguments: &[&str]) -> ExitCode {
    let parsed = match arguments {
        [port, cpu, behind] => (port.parse().ok())
            .zip(cpu.parse().ok())
            .zip(behind.parse().ok()),
        _ => None,
    };
    let Some(((port, cpu), behind)) = parsed else {
        eprintln!(
            "xtask bench {ARGUMENT}: wants a port, a CPU and the address of the server behind"
        );
        return ExitCode::from(crate::EXIT_USAGE);
    };
    match affinity::bind_to(&[cpu]).and_then(|()| Relay::listen(port, behind)?.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask bench {ARGUMENT}: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Relay {
    epoll: Epoll,
    listener: OwnedFd,
    behind: SocketAddr,
    /// Two beside one another are the ends of a pair: the client's is the even one.
    ends: Vec<Option<End>>,
    /// Numbers of pairs that have ended.
    free: Vec<usize>,
    buffer: Vec<u8>,
}

struct End {
    socket: OwnedFd,
    /// What this end has not taken yet. Nothing more is received for it before it has.
    unsent: Vec<u8>,
}

impl Relay {
    fn listen(port: u16, behind: SocketAddr) -> io::Result<Self> {
        let listener = floor::listener(port, false, true)?;
        let epoll = Epoll::new()?;
        let readable = Interest {
            writable: false,
            edge: false,
            ..BOTH_WAYS
        };
        epoll.add(listener.as_fd(), readable, LISTENER)?;
        Ok(Self {
            epoll,
            listener,
            behind,
            ends: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Returns only when the epoll set fails.
    fn serve(mut self) -> io::Result<()> {
        loop {
            self.turn(None)?;
        }
    }

    /// Waits for events, `None` without limit, and does what they ask for.
    fn turn(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let mut events = [Event::EMPTY; EVENTS];
        let count = self.epoll.wait(&mut events, limit)?.len();
        for event in events.iter().take(count) {
            match usize::try_from(event.token()) {
                Ok(index) if event.token() != LISTENER => self.pass_on(index),
                _ => self.accept_all()?,
            }
        }
        Ok(())
    }

    fn accept_all(&mut self) -> io::Result<()> {
        while let Ok((client, _)) = socket::accept(self.listener.as_fd()) {
            let options = ConnectorOptions {
                nodelay: true,
                ..ConnectorOptions::default()
            };
            let server = socket::connect(Endpoint::Ip(self.behind), &options)?;
            let first = self.free.pop().unwrap_or(self.ends.len());
            if first == self.ends.len() {
                self.ends.extend([None, None]);
            }
            for (index, socket) in [(first, client), (first + 1, server)] {
                self.epoll.add(socket.as_fd(), BOTH_WAYS, index as u64)?;
                self.ends[index] = Some(End {
                    socket,
                    unsent: Vec::new(),
                });
            }
        }
        Ok(())
    }

    /// What an end that is ready is for: the bytes that wait for it, then those that it has received.
    fn pass_on(&mut self, index: usize) {
        let (first, is_second) = (index & !1, index & 1 == 1);
        let Some([Some(one), Some(two)]) = self.ends.get_mut(first..first + 2) else {
            return;
        };
        let (ready, other) = if is_second { (two, one) } else { (one, two) };
        let result = ready
            .send_rest()
            .and_then(|had_some| {
                if had_some {
                    relay(other, ready, &mut self.buffer)
                } else {
                    Ok(())
                }
            })
            .and_then(|()| relay(ready, other, &mut self.buffer));
        if result.is_err() {
            self.ends[first] = None;
            self.ends[first + 1] = None;
            self.free.push(first);
        }
    }
}

impl End {
    /// Sends what waits; whether anything did and is gone now.
    fn send_rest(&mut self) -> io::Result<bool> {
        if self.unsent.is_empty() {
            return Ok(false);
        }
        let sent = sent_now(self.socket.as_fd(), &self.unsent)?;
        self.unsent.drain(..sent);
        Ok(self.unsent.is_empty())
    }
}

/// Passes on what `from` has received, until that is all or `to` takes no more. An end of stream is an error.
fn relay(from: &mut End, to: &mut End, buffer: &mut [u8]) -> io::Result<()> {
    while to.unsent.is_empty() {
        let count = match socket::receive(from.socket.as_fd(), buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let received = &buffer[..count];
        let sent = sent_now(to.socket.as_fd(), received)?;
        to.unsent.extend_from_slice(&received[sent..]);
        // A short read has emptied the socket: what comes later is reported anew.
        if count < buffer.len() {
            return Ok(());
        }
    }
    Ok(())
}

/// How much of `bytes` the socket takes without waiting.
fn sent_now(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    match socket::send(socket, bytes, false) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;

    use super::*;

    #[test]
    fn bytes_pass_both_ways_however_slowly_they_are_taken() {
        let behind = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut relay = Relay::listen(0, behind.local_addr().unwrap()).unwrap();
        let address = socket::local_address(relay.listener.as_fd()).unwrap();
        let mill_sys::address::Peer::Ip(address) = address else {
            panic!("{address:?}");
        };
        let client = TcpStream::connect(address).unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(4_000_000).collect();
        let echoed = thread::spawn(move || {
            let (mut server, _) = behind.accept().unwrap();
            let mut asked = vec![0; 4_000_000];
            server.read_exact(&mut asked).unwrap();
            server.write_all(&asked).unwrap();
        });
        let asked = bytes.clone();
        let read = thread::spawn(move || {
            let mut client = client;
            client.write_all(&asked).unwrap();
            let mut answer = vec![0; 4_000_000];
            client.read_exact(&mut answer).unwrap();
            answer
        });
        while !read.is_finished() {
            relay.turn(Some(Duration::from_millis(10))).unwrap();
        }
        assert_eq!(read.join().unwrap(), bytes);
        echoed.join().unwrap();
    }
}
