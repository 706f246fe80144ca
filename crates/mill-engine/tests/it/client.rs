//! The other end: a socket that never blocks the test.

use mill_conformance::{End, Peer};
use mill_sys::listener::set_int;
use mill_sys::socket;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection to the server under test.
pub(crate) type Client = mill_conformance::Client<SocketPeer>;

/// A client over a TCP socket of the test.
pub(crate) fn client_of(tcp: TcpStream) -> Client {
    Client::of(SocketPeer::of(tcp))
}

pub(crate) fn connect_unix(path: &Path) -> Client {
    let unix = UnixStream::connect(path).unwrap();
    unix.set_nonblocking(true).unwrap();
    Client::of(SocketPeer::Unix(unix))
}

pub(crate) enum SocketPeer {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl SocketPeer {
    fn of(tcp: TcpStream) -> Self {
        tcp.set_nonblocking(true).unwrap();
        Self::Tcp(tcp)
    }
}

impl Peer for SocketPeer {
    fn connect(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).unwrap())
    }

    fn connect_small(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        set_int(tcp.as_fd(), SOL_SOCKET, SO_RCVBUF, 16 * 1024).unwrap();
        Self::of(tcp)
    }

    fn is_refused(address: SocketAddr) -> bool {
        match TcpStream::connect(address) {
            Ok(_) => false,
            Err(error) => error.kind() == ErrorKind::ConnectionRefused,
        }
    }

    fn send_some(&mut self, bytes: &[u8]) -> usize {
        let sent = match self {
            Self::Tcp(tcp) => tcp.write(bytes),
            Self::Unix(unix) => unix.write(bytes),
        };
        match sent {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("sending failed: {error}"),
        }
    }

    fn read_some(&mut self, most: usize, into: &mut Vec<u8>) -> Option<End> {
        let mut buffer = vec![0; most];
        let read = match self {
            Self::Tcp(tcp) => tcp.read(&mut buffer),
            Self::Unix(unix) => unix.read(&mut buffer),
        };
        match read {
            Ok(0) => Some(End::Fin),
            Ok(count) => {
                into.extend_from_slice(&buffer[..count]);
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                Some(End::Reset)
            }
        }
    }

    fn finish(&self) {
        match self {
            Self::Tcp(tcp) => tcp.shutdown(Shutdown::Write).unwrap(),
            Self::Unix(unix) => unix.shutdown(Shutdown::Write).unwrap(),
        }
    }

    fn reset(self) {
        let Self::Tcp(tcp) = self else {
            panic!("a Unix socket has no RST");
        };
        socket::set_reset_on_close(tcp.as_fd()).unwrap();
    }

    fn local(&self) -> SocketAddr {
        match self {
            Self::Tcp(tcp) => tcp.local_addr().unwrap(),
            Self::Unix(_) => panic!("a Unix socket has no such address"),
        }
    }
}

/// asm-generic/socket.h.
const SOL_SOCKET: i32 = 1;
const SO_RCVBUF: i32 = 8;
