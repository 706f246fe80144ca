//! UDP sockets (RFC 768, RFC 1122 4.1): datagrams in and out, each queue bounded.

use crate::outbox::{Head, Outbox};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use mill_tcp::random::Random;
use mill_wire::checksum::Sum;
use mill_wire::ipv4::{self, Ecn};
use mill_wire::protocol::Protocol;
use mill_wire::udp::{self, UdpHeader};

/// All sockets of a host.
#[derive(Debug)]
pub struct UdpSockets {
    sockets: BTreeMap<SocketAddr, Socket>,
    ports: RangeInclusive<u16>,
    random: Random,
    vacant: Vec<Vec<u8>>,
    /// Sockets that have something to read, or an error, since they were read empty.
    readable: Vec<SocketAddr>,
}

/// What a socket may have of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// The only address that it receives from; ICMP errors from there are reported (RFC 1122 4.1.3.3).
    pub remote: Option<SocketAddr>,
    /// Bytes that may wait for its reader.
    pub receive_bytes_max: usize,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            remote: None,
            receive_bytes_max: QUEUED_BYTES_MAX,
        }
    }
}

#[derive(Debug)]
struct Socket {
    options: UdpOptions,
    queue: VecDeque<UdpDatagram>,
    queued_bytes: usize,
    /// It has been reported that there is something to read.
    is_reported: bool,
    error: Option<UdpError>,
    counters: UdpCounters,
}

/// The counters of a socket since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    pub received: u64,
    pub sent: u64,
    /// Arrived and not queued, because its reader is too slow.
    pub dropped: u64,
}

/// The ICMP error about a datagram that was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpError {
    /// The peer has no socket at that port, or an administrator has forbidden it.
    Refused,
    Unreachable,
}

/// Why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpWriteError {
    /// It has more bytes than a datagram carries.
    TooLarge,
    NoRoute,
    /// Too much waits to be sent; there is room again some turns later.
    Full,
}

/// A datagram that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpDatagram {
    pub source: SocketAddr,
    /// Which of our addresses it was sent to.
    pub target: SocketAddr,
    pub ecn: Ecn,
    pub payload: Vec<u8>,
}

/// Why a socket can't have the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindError {
    InUse,
    /// Every port of the ephemeral range is in use.
    NoPort,
    /// There are as many sockets as there may be.
    TooMany,
}

/// The result of a datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    Queued,
    /// Its reader does not keep pace.
    Full,
    /// No socket has the port: the sender gets an error (RFC 1122 4.1.3.1).
    NoSocket,
}

impl UdpSockets {
    /// `ports` are for sockets that ask for none; the seed is for choosing among them.
    pub const fn new(ports: RangeInclusive<u16>, seed: u64) -> Self {
        Self {
            sockets: BTreeMap::new(),
            ports,
            random: Random::new(seed),
            vacant: Vec::new(),
            readable: Vec::new(),
        }
    }

    /// Opens a socket, which its address names from now on. Port 0 lets the host choose; the unspecified address takes
    /// what is sent to any of ours for which there is no socket of its own.
    pub fn bind(
        &mut self,
        address: SocketAddr,
        options: UdpOptions,
    ) -> Result<SocketAddr, BindError> {
        if self.sockets.len() >= SOCKETS_MAX {
            return Err(BindError::TooMany);
        }
        let address = match address.port() {
            0 => self.choose(address.ip()).ok_or(BindError::NoPort)?,
            _ if self.sockets.contains_key(&address) => return Err(BindError::InUse),
            _ => address,
        };
        let socket = Socket {
            options,
            queue: VecDeque::new(),
            queued_bytes: 0,
            is_reported: false,
            error: None,
            counters: UdpCounters::default(),
        };
        self.sockets.insert(address, socket);
        Ok(address)
    }

    /// Closes it; unread datagrams are lost. Returns whether it was open.
    pub fn close(&mut self, address: SocketAddr) -> bool {
        self.readable.retain(|readable| *readable != address);
        self.sockets.remove(&address).is_some()
    }

    /// A datagram arrived whose checksum is right.
    pub fn on_datagram(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
    ) -> Delivered {
        let Some(address) = self.socket_for(target) else {
            return Delivered::NoSocket;
        };
        let Some(socket) = self.sockets.get_mut(&address) else {
            return Delivered::NoSocket;
        };
        if socket.options.remote.is_some_and(|remote| remote != source) {
            return Delivered::NoSocket;
        }
        let bytes_max = socket.options.receive_bytes_max;
        if socket.queue.len() >= QUEUE_MAX || socket.queued_bytes + payload.len() > bytes_max {
            socket.counters.dropped += 1;
            return Delivered::Full;
        }
        let mut bytes = self.vacant.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        socket.queued_bytes += payload.len();
        socket.queue.push_back(UdpDatagram {
            source,
            target,
            ecn,
            payload: bytes,
        });
        Self::report(&mut self.readable, address, socket);
        Delivered::Queued
    }

    /// An ICMP error says that a datagram from `local` to `remote` was not delivered.
    pub fn on_error(&mut self, local: SocketAddr, remote: SocketAddr, error: UdpError) {
        let address = self.socket_for(local);
        let socket = address.and_then(|address| Some((address, self.sockets.get_mut(&address)?)));
        if let Some((address, socket)) = socket
            && socket.options.remote == Some(remote)
        {
            socket.error = Some(error);
            Self::report(&mut self.readable, address, socket);
        }
    }

    fn report(readable: &mut Vec<SocketAddr>, address: SocketAddr, socket: &mut Socket) {
        if !core::mem::replace(&mut socket.is_reported, true) {
            readable.push(address);
        }
    }

    /// The error of a datagram sent before; returned once.
    pub fn take_error(&mut self, address: SocketAddr) -> Option<UdpError> {
        self.sockets.get_mut(&address)?.error.take()
    }

    pub fn counters(&self, address: SocketAddr) -> UdpCounters {
        let socket = self.sockets.get(&address);
        socket.map_or_else(UdpCounters::default, |socket| socket.counters)
    }

    /// The oldest datagram. Its memory may be given back with [`UdpSockets::recycle`].
    pub fn read(&mut self, address: SocketAddr) -> Option<UdpDatagram> {
        let socket = self.sockets.get_mut(&address)?;
        let datagram = socket.queue.pop_front();
        match &datagram {
            Some(datagram) => {
                socket.queued_bytes -= datagram.payload.len();
                socket.counters.received += 1;
            }
            None => socket.is_reported = false,
        }
        datagram
    }

    /// Takes the memory of a datagram for the next ones.
    pub fn recycle(&mut self, payload: Vec<u8>) {
        if self.vacant.len() < VACANT_MAX {
            self.vacant.push(payload);
        }
    }

    /// Appends the sockets that got something to read, or an error, each once until `read` has found nothing.
    pub fn take_readable(&mut self, into: &mut Vec<SocketAddr>) {
        into.append(&mut self.readable);
    }

    /// Makes a datagram of the socket's `port`, from `source`, an address of ours of the target's family. Packets have
    /// up to `mtu` bytes.
    pub fn write(
        source: SocketAddr,
        target: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
        mtu: u16,
        outbox: &mut Outbox,
    ) -> Result<(), UdpWriteError> {
        let len = udp::HEADER_BYTES + payload.len();
        let datagram_len = u16::try_from(len).map_err(|_| UdpWriteError::TooLarge)?;
        // What both families carry.
        if len > usize::from(u16::MAX) - ipv4::HEADER_BYTES {
            return Err(UdpWriteError::TooLarge);
        }
        let head = Head {
            source: source.ip(),
            target: target.ip(),
            protocol: Protocol::UDP,
            ecn,
        };
        let header = UdpHeader {
            source: source.port(),
            target: target.port(),
            len: datagram_len,
        };
        let is_queued = outbox.send(&head, mtu, |into| {
            into.resize(udp::HEADER_BYTES, 0);
            header.emit(into);
            into.extend_from_slice(payload);
            let pseudo_header =
                Sum::of_pseudo_header(head.source, head.target, Protocol::UDP.0, len);
            udp::fill(pseudo_header, into);
        });
        match is_queued {
            true => Ok(()),
            false => Err(UdpWriteError::Full),
        }
    }

    /// A datagram of this socket was written.
    pub fn count_sent(&mut self, socket: SocketAddr) {
        if let Some(socket) = self.sockets.get_mut(&socket) {
            socket.counters.sent += 1;
        }
    }

    /// Whether datagrams to `target` have a reader.
    pub fn has_socket_for(&self, target: SocketAddr) -> bool {
        self.socket_for(target).is_some()
    }

    /// The socket with this very address, else the one for all addresses of its family.
    fn socket_for(&self, target: SocketAddr) -> Option<SocketAddr> {
        let any = SocketAddr::new(unspecified(target.ip()), target.port());
        [target, any]
            .into_iter()
            .find(|address| self.sockets.contains_key(address))
    }

    /// RFC 6056 3.3.1: from a random place on, the first that is vacant.
    fn choose(&mut self, address: IpAddr) -> Option<SocketAddr> {
        let (first, last) = (*self.ports.start(), *self.ports.end());
        let count = u64::from(last.checked_sub(first)?) + 1;
        let start = u16::try_from(self.random.below(count)).ok()?;
        let from_start = first.checked_add(start)?..=last;
        from_start
            .chain(first..first + start)
            .map(|port| SocketAddr::new(address, port))
            .find(|address| !self.sockets.contains_key(address))
    }
}

const fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
    }
}

/// Sockets of a host. Servers have one a port, so this is more than there are uses for.
const SOCKETS_MAX: usize = 1024;

/// Datagrams, and bytes of them, that wait for the reader of one socket; beyond, they are dropped, as UDP may.
const QUEUE_MAX: usize = 1024;
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Buffers kept for the next datagrams.
const VACANT_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Offered;
    use alloc::vec;
    use mill_wire::ipv4::Ipv4Header;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn push(sockets: &mut UdpSockets, target: &str, payload: &[u8]) -> Delivered {
        sockets.on_datagram(
            address("10.0.0.9:5000"),
            address(target),
            Ecn::NotCapable,
            payload,
        )
    }

    #[test]
    fn datagrams_go_to_the_socket_of_the_address_or_of_all() {
        let mut sockets = UdpSockets::new(32768..=60999, 1);
        let one = sockets
            .bind(address("10.0.0.2:53"), UdpOptions::default())
            .unwrap();
        let all = sockets
            .bind(address("0.0.0.0:53"), UdpOptions::default())
            .unwrap();
        assert_eq!(push(&mut sockets, "10.0.0.2:53", b"one"), Delivered::Queued);
        assert_eq!(push(&mut sockets, "10.0.0.3:53", b"all"), Delivered::Queued);
        for target in ["10.0.0.2:54", "[::1]:53"] {
            let found = push(&mut sockets, target, b"none");
            assert_eq!(found, Delivered::NoSocket, "{target}");
        }
        let datagram = sockets.read(one).unwrap();
        assert_eq!((&datagram.payload[..], datagram.target), (&b"one"[..], one));
        assert_eq!(sockets.read(all).unwrap().payload, b"all");
        assert_eq!(sockets.read(all), None);
    }

    #[test]
    fn an_address_has_one_socket_until_it_is_closed() {
        let mut sockets = UdpSockets::new(32768..=60999, 1);
        let taken = address("10.0.0.2:53");
        assert_eq!(sockets.bind(taken, UdpOptions::default()), Ok(taken));
        assert_eq!(
            sockets.bind(taken, UdpOptions::default()),
            Err(BindError::InUse)
        );
        assert!(sockets.close(taken));
        assert!(!sockets.close(taken));
        assert_eq!(push(&mut sockets, "10.0.0.2:53", b""), Delivered::NoSocket);
        assert_eq!(sockets.bind(taken, UdpOptions::default()), Ok(taken));
    }

    #[test]
    fn ports_are_chosen_until_there_is_none_left() {
        let mut sockets = UdpSockets::new(1000..=1003, 1);
        let mut ports = Vec::new();
        for _ in 0..4 {
            ports.push(
                sockets
                    .bind(address("0.0.0.0:0"), UdpOptions::default())
                    .unwrap()
                    .port(),
            );
        }
        ports.sort_unstable();
        assert_eq!(ports, [1000, 1001, 1002, 1003]);
        assert_eq!(
            sockets.bind(address("0.0.0.0:0"), UdpOptions::default()),
            Err(BindError::NoPort)
        );
        assert!(
            sockets
                .bind(address("[::]:0"), UdpOptions::default())
                .is_ok()
        );
    }

    #[test]
    fn sockets_are_bounded() {
        let mut sockets = UdpSockets::new(1..=65535, 1);
        for _ in 0..SOCKETS_MAX {
            assert!(
                sockets
                    .bind(address("0.0.0.0:0"), UdpOptions::default())
                    .is_ok()
            );
        }
        assert_eq!(
            sockets.bind(address("0.0.0.0:0"), UdpOptions::default()),
            Err(BindError::TooMany)
        );
    }

    #[test]
    fn unread_datagrams_are_bounded_in_number_and_bytes() {
        let mut sockets = UdpSockets::new(32768..=60999, 1);
        let socket = sockets
            .bind(address("10.0.0.2:53"), UdpOptions::default())
            .unwrap();
        for _ in 0..QUEUE_MAX {
            assert_eq!(push(&mut sockets, "10.0.0.2:53", b""), Delivered::Queued);
        }
        assert_eq!(push(&mut sockets, "10.0.0.2:53", b""), Delivered::Full);
        while sockets.read(socket).is_some() {}
        let half = vec![0; QUEUED_BYTES_MAX / 2];
        for expected in [Delivered::Queued, Delivered::Queued, Delivered::Full] {
            assert_eq!(push(&mut sockets, "10.0.0.2:53", &half), expected);
        }
        assert_eq!(push(&mut sockets, "10.0.0.2:53", b"x"), Delivered::Full);
        assert_eq!(push(&mut sockets, "10.0.0.2:53", b""), Delivered::Queued);
    }

    #[test]
    fn a_socket_is_reported_once_until_it_was_read_empty() {
        let mut sockets = UdpSockets::new(32768..=60999, 1);
        let socket = sockets
            .bind(address("10.0.0.2:53"), UdpOptions::default())
            .unwrap();
        let readable = |sockets: &mut UdpSockets| {
            let mut into = Vec::new();
            sockets.take_readable(&mut into);
            into
        };
        assert_eq!(readable(&mut sockets), []);
        push(&mut sockets, "10.0.0.2:53", b"a");
        assert_eq!(readable(&mut sockets), [socket]);
        push(&mut sockets, "10.0.0.2:53", b"b");
        assert_eq!(readable(&mut sockets), []);
        while let Some(datagram) = sockets.read(socket) {
            sockets.recycle(datagram.payload);
        }
        assert_eq!(readable(&mut sockets), []);
        push(&mut sockets, "10.0.0.2:53", b"c");
        assert_eq!(readable(&mut sockets), [socket]);
        assert_eq!(sockets.read(socket).unwrap().payload, b"c");
    }

    #[test]
    fn a_socket_with_a_peer_takes_datagrams_and_errors_of_that_peer_only() {
        let mut sockets = UdpSockets::new(32768..=60999, 1);
        let (local, peer) = (address("10.0.0.2:53"), address("10.0.0.9:5000"));
        let options = UdpOptions {
            remote: Some(peer),
            ..UdpOptions::default()
        };
        sockets.bind(local, options).unwrap();
        assert_eq!(push(&mut sockets, "10.0.0.2:53", b"a"), Delivered::Queued);
        let other = address("10.0.0.9:5001");
        let from_other = sockets.on_datagram(other, local, Ecn::NotCapable, b"b");
        assert_eq!(from_other, Delivered::NoSocket);
        sockets.on_error(local, other, UdpError::Refused);
        assert_eq!(sockets.take_error(local), None);
        sockets.on_error(local, peer, UdpError::Refused);
        assert_eq!(sockets.take_error(local), Some(UdpError::Refused));
        assert_eq!(sockets.take_error(local), None);
    }

    #[test]
    fn a_datagram_that_is_written_has_its_length_and_checksum() {
        let mut outbox = Outbox::new(1);
        let (source, target) = (address("10.0.0.2:53"), address("10.0.0.9:5000"));
        let write = |outbox: &mut Outbox, payload: &[u8]| {
            UdpSockets::write(source, target, Ecn::Capable0, payload, 1500, outbox)
        };
        assert_eq!(write(&mut outbox, b"answer"), Ok(()));
        let mut packets = Vec::new();
        outbox.transmit(|_, bytes| {
            packets.push(bytes.to_vec());
            Offered::Sent
        });
        let (ip, at) = Ipv4Header::parse(&packets[0]).unwrap();
        assert_eq!((ip.protocol, ip.ecn), (Protocol::UDP, Ecn::Capable0));
        let datagram = &packets[0][at..];
        let pseudo_header = Sum::of_pseudo_header(source.ip(), target.ip(), 17, datagram.len());
        assert!(udp::verify(pseudo_header, datagram, false));
        let (header, len) = UdpHeader::parse(datagram).unwrap();
        assert_eq!((header.source, header.target, header.len), (53, 5000, 14));
        assert_eq!(&datagram[len..], b"answer");
        let largest = vec![0; 65_507];
        assert_eq!(write(&mut outbox, &largest), Ok(()));
        for too_large in [65_508, 65_528] {
            let written = write(&mut outbox, &vec![0; too_large]);
            assert_eq!(written, Err(UdpWriteError::TooLarge), "{too_large}");
        }
    }
}
