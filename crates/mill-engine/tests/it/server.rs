//! Kernel sockets of the loopback interface, for the tests of all engines and for those of this one.

use crate::client::SocketPeer;
use crate::files::Directory;
use mill_conformance::stream_peer::turn;
use mill_conformance::{Around, Listener, Peer, Testbed};
use mill_engine::{KernelEngine, KernelOptions, KernelStream, offer};
use mill_runtime::address::Address;
use mill_runtime::engine::{Engine, ListenOptions, Park};
use mill_runtime::time::Instant;
use mill_sys::listener::set_int;
use mill_sys::passing;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

pub(crate) use mill_conformance::Task;

pub(crate) type Server = mill_conformance::Server<Kernel>;

/// The kernel engine, the test's end of its mailbox, and another engine for the peers' datagram sockets.
pub(crate) struct Kernel {
    peers: KernelEngine,
    pub(crate) mailbox: Option<OwnedFd>,
}

impl Testbed for Kernel {
    type Engine = KernelEngine;
    type Peer = SocketPeer;
    type Directory = Directory;

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// With small send buffers segments have to fit small windows: the loopback interface's segments of 64 KiB would
    /// each wait for the persist timer (RFC 9293 3.8.6.1).
    fn listen(send_buffer_bytes: Option<usize>) -> Listener<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Some(bytes) = send_buffer_bytes {
            let bytes = i32::try_from(bytes).unwrap();
            set_int(listener.as_fd(), SOL_SOCKET, SO_SNDBUF, bytes).unwrap();
            set_int(listener.as_fd(), IPPROTO_TCP, TCP_MAXSEG, 1000).unwrap();
        }
        offered(&listener)
    }

    fn peers(&self) -> (KernelEngine, IpAddr) {
        (self.peers.clone(), Ipv4Addr::LOCALHOST.into())
    }

    /// All of 127.0.0.0/8 is this machine.
    fn addresses(_: &Server) -> Vec<IpAddr> {
        [[127, 0, 0, 1], [127, 0, 0, 77]].map(IpAddr::from).into()
    }

    fn turn(&mut self, _: Instant) {
        turn(&self.peers, Park::No);
    }

    /// A child process of another test has the listening socket too until it executes its program.
    fn refuses(server: &mut Server) -> bool {
        let give_up = server.now() + Self::TIMEOUT;
        while !SocketPeer::is_refused(server.address) {
            if server.now() > give_up {
                return false;
            }
            server.turn();
        }
        true
    }
}

/// Serves every connection with a task that `serve` makes.
pub(crate) fn start<F>(
    serve: impl FnMut(KernelStream, Around<KernelEngine>) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    Server::start(serve)
}

/// Serves the connections of a socket that listens already, which the engine is offered.
pub(crate) fn start_on<F>(
    listener: &TcpListener,
    serve: impl FnMut(KernelStream, Around<KernelEngine>) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    Server::on(offered(listener), serve)
}

/// Serves the connections of a listener that the engine makes from options.
pub(crate) fn start_with<F>(
    engine: KernelEngine,
    options: &ListenOptions,
    mailbox: Option<OwnedFd>,
    serve: impl FnMut(KernelStream, Around<KernelEngine>) -> F + 'static,
) -> Server
where
    F: Future<Output = ()> + 'static,
{
    Server::on(listening(engine, options, mailbox), serve)
}

fn offered(listener: &TcpListener) -> Listener<Kernel> {
    let address = listener.local_addr().unwrap();
    let (mailbox, inside) = passing::pair().unwrap();
    let key = offer::encode(&Address::Ip(address), None);
    passing::send(mailbox.as_fd(), &key, &[listener.as_fd()]).unwrap();
    let options = ListenOptions::new(Address::Ip(address));
    listening(engine(Some(inside)), &options, Some(mailbox))
}

fn listening(
    engine: KernelEngine,
    options: &ListenOptions,
    mailbox: Option<OwnedFd>,
) -> Listener<Kernel> {
    let id = engine.listen(options).expect("the address is free").id;
    let address = match &options.address {
        Address::Ip(address) => *address,
        Address::Unix(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
    };
    Listener {
        testbed: Kernel {
            peers: self::engine(None),
            mailbox,
        },
        engine,
        id,
        address,
    }
}

pub(crate) fn engine(mailbox: Option<OwnedFd>) -> KernelEngine {
    KernelEngine::new(KernelOptions {
        mailbox,
        ..KernelOptions::default()
    })
    .unwrap()
}

/// asm-generic/socket.h, in.h and tcp.h.
const SOL_SOCKET: i32 = 1;
const SO_SNDBUF: i32 = 7;
const IPPROTO_TCP: i32 = 6;
const TCP_MAXSEG: i32 = 2;
