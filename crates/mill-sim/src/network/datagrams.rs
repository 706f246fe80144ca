//! Sockets of datagrams, and what travels between them: by the world's link, whose delay and jitter they have. Nothing is
//! lost on the way, but what comes later may overtake.

use super::Network;
use crate::agenda::Event;
use mill_runtime::datagrams::{
    DatagramCounters, DatagramError, DatagramOptions, Ecn, OutgoingDatagram,
};
use mill_runtime::tasks::TaskId;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::Poll;

/// A datagram that is on its way, or waits to be received.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// The socket that sent it.
    sender: usize,
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

/// One socket. Its place is not used again.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    engine: usize,
    task: TaskId,
    pub(crate) local: SocketAddr,
    remote: Option<SocketAddr>,
    pub(crate) is_open: bool,
    queue: VecDeque<Datagram>,
    queued_bytes: usize,
    queued_bytes_max: usize,
    error: Option<DatagramError>,
    pub(crate) counters: DatagramCounters,
}

impl Network {
    pub(crate) fn open_datagrams(
        &mut self,
        engine: usize,
        options: &DatagramOptions,
        task: TaskId,
    ) -> Result<usize, DatagramError> {
        let mut local = options.local;
        let is_taken = |local| {
            let mut sockets = self.datagram_sockets.iter();
            sockets.any(|other| other.is_open && other.local == local)
        };
        if local.port() == 0 {
            // Another one for each socket, so that a late datagram finds no stranger.
            let ports = EPHEMERAL_PORTS.clone().cycle();
            let ports = ports.skip(self.datagram_sockets.len() % EPHEMERAL_PORTS.len());
            let free = ports
                .take(EPHEMERAL_PORTS.len())
                .find(|port| !is_taken(SocketAddr::new(local.ip(), *port)));
            local.set_port(free.ok_or(DatagramError::Other(EADDRINUSE))?);
        } else if is_taken(local) {
            return Err(DatagramError::Other(EADDRINUSE));
        }
        self.datagram_sockets.push(DatagramSocket {
            engine,
            task,
            local,
            remote: options.remote,
            is_open: true,
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_bytes_max: options.receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER_BYTES),
            error: None,
            counters: DatagramCounters::default(),
        });
        Ok(self.datagram_sockets.len() - 1)
    }

    pub(crate) fn close_datagrams(&mut self, socket: usize) {
        let socket = &mut self.datagram_sockets[socket];
        socket.is_open = false;
        socket.queue.clear();
    }

    /// Another task uses the socket; it is polled, for it has to see what came before.
    pub(crate) fn hand_over_datagrams(&mut self, socket: usize, task: TaskId) {
        self.datagram_sockets[socket].task = task;
        self.report_datagrams(socket);
    }

    /// Puts each datagram on its way; the world's network takes all of them.
    pub(crate) fn send_datagrams(
        &mut self,
        sender: usize,
        batch: &[OutgoingDatagram<'_>],
    ) -> Result<usize, DatagramError> {
        for (index, outgoing) in batch.iter().enumerate() {
            let socket = &mut self.datagram_sockets[sender];
            if let Some(error) = socket.error.take() {
                return if index == 0 { Err(error) } else { Ok(index) };
            }
            if outgoing.is_too_large() {
                return if index == 0 {
                    Err(DatagramError::TooLarge)
                } else {
                    Ok(index)
                };
            }
            let target = socket.remote.unwrap_or(outgoing.remote);
            let ip = outgoing.local.unwrap_or(socket.local.ip());
            let source = SocketAddr::new(specified(ip), socket.local.port());
            for bytes in outgoing.segments() {
                self.datagram_sockets[sender].counters.sent += 1;
                let arrival = self.now + self.link.delay + self.link.jitter(&mut self.random);
                let datagram = Datagram {
                    sender,
                    source,
                    target,
                    ecn: outgoing.ecn,
                    bytes: bytes.to_vec(),
                };
                self.agenda.enter(arrival, Event::DatagramArrives(datagram));
            }
        }
        Ok(batch.len())
    }

    /// The next datagram of a socket.
    pub(crate) fn receive_datagram(
        &mut self,
        socket: usize,
    ) -> Poll<Result<Datagram, DatagramError>> {
        let socket = &mut self.datagram_sockets[socket];
        if let Some(error) = socket.error.take() {
            return Poll::Ready(Err(error));
        }
        let Some(datagram) = socket.queue.pop_front() else {
            return Poll::Pending;
        };
        socket.queued_bytes -= datagram.bytes.len();
        socket.counters.received += 1;
        Poll::Ready(Ok(datagram))
    }

    /// Whether a call of [`Network::receive_datagram`] would find another datagram.
    pub(crate) fn has_datagram(&self, socket: usize) -> bool {
        let socket = &self.datagram_sockets[socket];
        socket.error.is_none() && !socket.queue.is_empty()
    }

    pub(crate) fn on_datagram(&mut self, datagram: Datagram) {
        let Some(index) = self.datagram_socket_for(&datagram) else {
            let refused_at = self.now + self.link.delay;
            let event = Event::DatagramRefused(datagram.sender, datagram.target);
            self.agenda.enter(refused_at, event);
            return;
        };
        let socket = &mut self.datagram_sockets[index];
        if socket.queued_bytes + datagram.bytes.len() > socket.queued_bytes_max {
            socket.counters.dropped += 1;
            return;
        }
        socket.queued_bytes += datagram.bytes.len();
        socket.queue.push_back(datagram);
        self.report_datagrams(index);
    }

    /// ICMP: nothing receives at that port. Only a socket with a peer can tell what that is about.
    pub(crate) fn on_datagram_refused(&mut self, sender: usize, target: SocketAddr) {
        let socket = &mut self.datagram_sockets[sender];
        if socket.is_open && socket.remote == Some(target) {
            socket.error = Some(DatagramError::Refused);
            self.report_datagrams(sender);
        }
    }

    /// The socket with just this address, else the one for all addresses of its family.
    fn datagram_socket_for(&self, datagram: &Datagram) -> Option<usize> {
        let target = datagram.target;
        let wildcard = SocketAddr::new(unspecified(target.ip()), target.port());
        [target, wildcard].into_iter().find_map(|local| {
            let mut sockets = self.datagram_sockets.iter();
            sockets.position(|socket| {
                let is_peer = socket.remote.is_none_or(|remote| remote == datagram.source);
                socket.is_open && socket.local == local && is_peer
            })
        })
    }

    fn report_datagrams(&mut self, socket: usize) {
        let DatagramSocket { engine, task, .. } = self.datagram_sockets[socket];
        self.engines[engine].ready.push(task);
    }
}

const fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// What a socket of all addresses sends from where it is not told.
fn specified(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Ports for sockets that ask for none: Linux's range.
static EPHEMERAL_PORTS: std::ops::Range<u16> = 32_768..61_000;

/// Bytes that wait where a socket does not say: Linux's net.core.rmem_default.
const RECEIVE_BUFFER_BYTES: usize = 212_992;

/// Linux: the address is in use.
const EADDRINUSE: i32 = 98;
