//! The host under attack, its link, and the clock.

use crate::raw_peer::{Seen, emit};
use mill_stack::config::{HostConfig, Prefix, Route};
use mill_stack::host::Host;
use mill_stack::host::status::Usage;
use mill_stack::link::Link;
use mill_stack::memory_link::{Frame, MemoryLink};
use mill_stack::queue::ByteQueue;
use mill_stack::socket::{ListenOptions, ListenerId, SocketId};
use mill_tcp::time::Instant;
use mill_wire::arp::{ArpOperation, ArpPacket};
use mill_wire::ethernet::{EtherType, EthernetHeader, MacAddress};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A server at 10.0.0.1; all other hosts are behind its gateway, 10.0.0.254.
pub(crate) struct Target {
    pub(crate) host: Host<ByteQueue>,
    pub(crate) link: MemoryLink,
    pub(crate) now: Instant,
    pub(crate) listener: ListenerId,
    /// Segments that the host sent and the test has not taken.
    pub(crate) seen: Vec<Seen>,
}

pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const PORT: u16 = 80;
pub(crate) const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub(crate) const GATEWAY_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xfe]);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);

impl Target {
    pub(crate) fn new(change: impl FnOnce(&mut HostConfig)) -> Self {
        Self::listening(&ListenOptions::default(), change)
    }

    pub(crate) fn listening(options: &ListenOptions, change: impl FnOnce(&mut HostConfig)) -> Self {
        let prefix = |address: Ipv4Addr, len| Prefix {
            address: IpAddr::V4(address),
            len,
        };
        let mut config = HostConfig::new(vec![prefix(ADDRESS, 24)], [1; 16]);
        config.routes = vec![Route {
            target: prefix(Ipv4Addr::UNSPECIFIED, 0),
            gateway: IpAddr::V4(GATEWAY),
        }];
        change(&mut config);
        let link = MemoryLink::ethernet(1);
        let now = Instant::from_nanos(1_000_000_000_000);
        let mut host = Host::new(config, link.properties(), now);
        let address = SocketAddr::new(IpAddr::V4(ADDRESS), PORT);
        let listener = host.listen(address, options).expect("the port is free");
        let mut target = Self {
            host,
            link,
            now,
            listener,
            seen: Vec::new(),
        };
        target.arp(ArpOperation::Request);
        target.turn();
        target.seen.clear();
        target
    }

    /// One turn of the host; what it sends is in `seen`.
    pub(crate) fn turn(&mut self) {
        while self.host.receive(&mut self.link, self.now) > 0 {}
        self.host.expire(self.now);
        while self.host.transmit(&mut self.link, self.now) {}
        self.host.settle(&mut self.link);
        assert_eq!(self.link.held(), 0);
        while let Some(frame) = self.link.sent.pop_front() {
            let (header, _) =
                EthernetHeader::parse(&frame.bytes).expect("the host sends whole frames");
            if header.ether_type == EtherType::ARP {
                self.arp(ArpOperation::Reply);
            } else {
                assert_eq!(header.target, GATEWAY_MAC);
                self.seen.push(Seen::parse(&frame.bytes));
            }
        }
    }

    /// Takes what was seen since the last call.
    pub(crate) fn take_seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Lets time pass from timer to timer.
    pub(crate) fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            self.turn();
            match self.host.next_expiry() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
        }
        self.now = end;
        self.turn();
    }

    /// A segment arrives.
    pub(crate) fn arrive(&mut self, seen: &Seen) {
        self.link.arrived.push_back(Frame::new(&emit(seen)));
    }

    pub(crate) fn accept(&mut self) -> Option<SocketId> {
        self.host.accept(self.listener, 1)
    }

    pub(crate) fn read(&mut self, socket: SocketId) -> Vec<u8> {
        self.host.read(socket, &mut self.link, |bytes| {
            (bytes.len(), bytes.to_vec())
        })
    }

    pub(crate) fn write(&mut self, socket: SocketId, bytes: &[u8]) {
        self.host
            .queue(socket)
            .expect("the connection has not ended")
            .push(bytes);
        self.host.wrote(socket);
    }

    /// Nothing is left of any connection, and every frame was handled or dropped for one reason.
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.host.usage(), Usage::default());
        let counters = self.host.counters();
        let received = counters.drops().filter(|(reason, _)| !reason.is_late());
        let dropped: u64 = received.map(|(_, count)| count).sum();
        assert_eq!(counters.frames_in, counters.frames_handled + dropped);
    }

    fn arp(&mut self, operation: ArpOperation) {
        let packet = ArpPacket {
            operation,
            sender_mac: GATEWAY_MAC,
            sender: GATEWAY,
            target_mac: MAC,
            target: ADDRESS,
        };
        let header = EthernetHeader {
            target: MAC,
            source: GATEWAY_MAC,
            ether_type: EtherType::ARP,
        };
        let mut bytes = [0; 60];
        let len = header.emit(&mut bytes);
        packet.emit(&mut bytes[len..]);
        self.link.arrived.push_back(Frame::new(&bytes));
    }
}
