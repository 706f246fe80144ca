//! The floor: a server that answers each readable socket with one constant response and parses nothing. No server on
//! kernel sockets can answer a request at a lower cost.
//!
//! A new connection is read at once, because a deferred accept promises data, and enters the epoll
//! set only if it stays: four system calls for a connection with one request.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::listener::{Endpoint, ListenerOptions, listen};
use mill_sys::{affinity, socket};

use super::content::body;

/// The argument after `bench` that starts this server.
pub(super) const ARGUMENT: &str = "floor-server";

/// The responses: while the connection stays, and the last one.
#[derive(Debug)]
struct Responses {
    keeping: Vec<u8>,
    closing: Vec<u8>,
}

impl Responses {
    /// The head has about 200 bytes, as that of a static server's response.
    fn new(body_bytes: usize) -> Self {
        let response = |connection: &str| {
            let head = format!(
                "HTTP/1.1 200 OK\r\nServer: floor\r\n\
                 Date: Fri, 20 Nov 2026 00:00:00 GMT\r\nContent-Type: text/html\r\n\
                 Content-Length: {body_bytes}\r\nLast-Modified: Fri, 20 Nov 2026 00:00:00 GMT\r\n\
                 Connection: {connection}\r\nETag: \"0-0\"\r\n\r\n"
            );
            let mut response = head.into_bytes();
            response.extend(body(body_bytes));
            response
        };
        Self {
            keeping: response("keep-alive"),
            closing: response("close"),
        }
    }
}

/// Descriptors are small numbers, so this one is never used.
const LISTENER: u64 = u64::MAX;

/// Connections waiting to be accepted; the kernel lowers it to net.core.somaxconn.
const BACKLOG: u32 = 65_535;

/// Events per epoll_wait, nginx's `epoll_events`.
const EVENTS: usize = 512;

/// More than a request of the load generator.
const BUFFER_BYTES: usize = 65_536;

const READABLE: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};

/// Serves `body_bytes` at 127.0.0.1:`port` on `cpu` until it is killed.
pub(super) fn run(port: &str, cpu: &str, body_bytes: &str) -> ExitCode {
    let (Ok(port), Ok(cpu), Ok(body_bytes)) = (port.parse(), cpu.parse(), body_bytes.parse())
    else {
        eprintln!("xtask bench {ARGUMENT}: wants a port, a CPU and a number of bytes");
        return ExitCode::from(crate::EXIT_USAGE);
    };
    match affinity::bind_to(&[cpu]).and_then(|()| Floor::listen(port, body_bytes)?.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask bench {ARGUMENT}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A listening socket at 127.0.0.1:`port`; deferred: accepted when data has come.
pub(super) fn listener(port: u16, deferred: bool, nodelay: bool) -> io::Result<OwnedFd> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let options = ListenerOptions {
        reuseport: true,
        backlog: BACKLOG,
        deferred,
        fastopen: None,
        receive_buffer_bytes: None,
        send_buffer_bytes: None,
        ipv6only: None,
        nodelay,
        keepalive: None,
        keepalive_idle_s: None,
        keepalive_interval_s: None,
        keepalive_count: None,
    };
    listen(Endpoint::Ip(address), &options).map_err(|failed| failed.error)
}

struct Floor {
    epoll: Epoll,
    listener: OwnedFd,
    /// The connections that stayed, by descriptor.
    connections: Vec<Option<OwnedFd>>,
    buffer: Vec<u8>,
    responses: Responses,
}

impl Floor {
    fn listen(port: u16, body_bytes: usize) -> io::Result<Self> {
        let listener = listener(port, true, false)?;
        let epoll = Epoll::new()?;
        epoll.add(listener.as_fd(), READABLE, LISTENER)?;
        Ok(Self {
            epoll,
            listener,
            connections: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            responses: Responses::new(body_bytes),
        })
    }

    /// Returns only when the epoll set fails.
    fn serve(mut self) -> io::Result<()> {
        let mut events = [Event::EMPTY; EVENTS];
        loop {
            let count = self.epoll.wait(&mut events, None)?.len();
            for event in events.iter().take(count) {
                if event.token() == LISTENER {
                    self.accept_all()?;
                } else {
                    self.answer(event.token());
                }
            }
        }
    }

    fn accept_all(&mut self) -> io::Result<()> {
        while let Ok((connection, _)) = socket::accept(self.listener.as_fd()) {
            if !stays_after_answer(connection.as_fd(), &mut self.buffer, &self.responses) {
                continue;
            }
            let Ok(index) = usize::try_from(connection.as_raw_fd()) else {
                continue;
            };
            self.epoll.add(connection.as_fd(), READABLE, index as u64)?;
            if self.connections.len() <= index {
                self.connections.resize_with(index + 1, || None);
            }
            if let Some(place) = self.connections.get_mut(index) {
                *place = Some(connection);
            }
        }
        Ok(())
    }

    fn answer(&mut self, token: u64) {
        let place = usize::try_from(token)
            .ok()
            .and_then(|index| self.connections.get_mut(index));
        let Some(place) = place else { return };
        let Some(connection) = place else { return };
        if !stays_after_answer(connection.as_fd(), &mut self.buffer, &self.responses) {
            *place = None;
        }
    }
}

/// Answers what can be read. A request that contains "close" is the connection's last; a connection that does not
/// take a whole response at once is closed as too slow for a floor.
fn stays_after_answer(
    connection: BorrowedFd<'_>,
    buffer: &mut [u8],
    responses: &Responses,
) -> bool {
    match socket::receive(connection, buffer) {
        Ok(0) => false,
        Ok(count) => {
            let request = buffer.get(..count).unwrap_or_default();
            let closes = request.windows(b"close".len()).any(|word| word == b"close");
            let response = if closes {
                &responses.closing
            } else {
                &responses.keeping
            };
            let sent = socket::send(connection, response, false);
            sent.is_ok_and(|sent| sent == response.len()) && !closes
        }
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::{Responses, stays_after_answer};

    /// Whether the connection stays, and the response to the client.
    fn check(request: &[u8], stays: bool, answer: &[u8]) {
        let (mut client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        client.write_all(request).unwrap();
        let mut buffer = [0; 4096];
        assert_eq!(
            stays_after_answer(server.as_fd(), &mut buffer, &Responses::new(1000)),
            stays
        );
        drop(server);
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        assert_eq!(received, answer);
    }

    #[test]
    fn a_request_is_answered_and_the_connection_stays_without_close() {
        check(
            b"GET / HTTP/1.1\r\n\r\n",
            true,
            &Responses::new(1000).keeping,
        );
        check(
            b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
            false,
            &Responses::new(1000).closing,
        );
        check(b"", true, b"");
    }

    #[test]
    fn the_end_of_the_client_is_the_end_of_the_connection() {
        let (client, server) = UnixStream::pair().unwrap();
        drop(client);
        assert!(!stays_after_answer(
            server.as_fd(),
            &mut [0; 16],
            &Responses::new(0)
        ));
    }

    #[test]
    fn the_head_is_as_large_as_a_static_servers() {
        let head = Responses::new(0).keeping.len();
        assert!((190..=220).contains(&head), "{head}");
    }
}
