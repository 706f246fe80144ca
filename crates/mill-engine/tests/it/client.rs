//! The other end: a socket that never blocks the test.

use crate::expecting::End;
use mill_sys::listener::set_int;
use mill_sys::socket;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection to the server under test.
pub(crate) struct Client {
    socket: Socket,
    pub(crate) received: Vec<u8>,
    pub(crate) end: Option<End>,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).unwrap())
    }

    /// A client whose receive buffer is small.
    pub(crate) fn connect_small(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        set_int(tcp.as_fd(), SOL_SOCKET, SO_RCVBUF, 16 * 1024).unwrap();
        Self::of(tcp)
    }

    pub(crate) fn connect_unix(path: &Path) -> Self {
        let unix = UnixStream::connect(path).unwrap();
        unix.set_nonblocking(true).unwrap();
        Self::new(Socket::Unix(unix))
    }

    pub(crate) fn of(tcp: TcpStream) -> Self {
        tcp.set_nonblocking(true).unwrap();
        Self::new(Socket::Tcp(tcp))
    }

    fn new(socket: Socket) -> Self {
        Self {
            socket,
            received: Vec::new(),
            end: None,
        }
    }

    /// Sends what the socket takes at once; returns how much that was.
    pub(crate) fn send_some(&mut self, bytes: &[u8]) -> usize {
        let sent = match &mut self.socket {
            Socket::Tcp(tcp) => tcp.write(bytes),
            Socket::Unix(unix) => unix.write(bytes),
        };
        match sent {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("sending failed: {error}"),
        }
    }

    /// Sends a few bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        assert_eq!(self.send_some(bytes), bytes.len(), "a few bytes fit");
    }

    /// Reads at most `most` bytes of what is here.
    pub(crate) fn read_some(&mut self, most: usize) {
        let mut buffer = vec![0; most];
        let read = match &mut self.socket {
            Socket::Tcp(tcp) => tcp.read(&mut buffer),
            Socket::Unix(unix) => unix.read(&mut buffer),
        };
        match read {
            Ok(0) => self.end = Some(End::Fin),
            Ok(count) => self.received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                self.end = Some(End::Reset);
            }
        }
    }

    /// Reads what is here, and whether the server has ended.
    pub(crate) fn pump(&mut self) -> &mut Self {
        let mut before = usize::MAX;
        while self.end.is_none() && self.received.len() != before {
            before = self.received.len();
            self.read_some(64 * 1024);
        }
        self
    }

    /// Sends FIN; reading goes on.
    pub(crate) fn finish(&self) {
        match &self.socket {
            Socket::Tcp(tcp) => tcp.shutdown(Shutdown::Write).unwrap(),
            Socket::Unix(unix) => unix.shutdown(Shutdown::Write).unwrap(),
        }
    }

    /// Sends RST.
    pub(crate) fn reset(self) {
        let Socket::Tcp(tcp) = self.socket else {
            panic!("a Unix socket has no RST");
        };
        socket::set_reset_on_close(tcp.as_fd()).unwrap();
    }

    pub(crate) fn local(&self) -> SocketAddr {
        match &self.socket {
            Socket::Tcp(tcp) => tcp.local_addr().unwrap(),
            Socket::Unix(_) => panic!("a Unix socket has no such address"),
        }
    }
}

/// Whether nobody listens at `address`.
pub(crate) fn is_refused(address: SocketAddr) -> bool {
    match TcpStream::connect(address) {
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}

/// asm-generic/socket.h.
const SOL_SOCKET: i32 = 1;
const SO_RCVBUF: i32 = 8;
