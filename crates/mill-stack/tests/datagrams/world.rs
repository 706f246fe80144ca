//! A host on a link, and a peer that it knows.

use crate::packet::{icmp, packet};
use mill_stack::config::HostConfig;
use mill_stack::config::Prefix;
use mill_stack::drop_reason::DropReason;
use mill_stack::host::Host;
use mill_stack::link::Offload;
use mill_stack::memory_link::Frame;
use mill_stack::memory_link::MemoryLink;
use mill_stack::queue::ByteQueue;
use mill_tcp::time::Instant;
use mill_wire::ethernet::EtherType;
use mill_wire::ethernet::EthernetHeader;
use mill_wire::ethernet::MacAddress;
use mill_wire::ndp::Ndp;
use mill_wire::protocol::Protocol;

pub(crate) const OURS: [&str; 2] = ["10.77.0.2", "fd00::2"];
pub(crate) const PEER: [&str; 2] = ["10.77.0.9", "fd00::9"];
pub(crate) const PEER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

pub(crate) struct World {
    pub(crate) host: Host<ByteQueue>,
    link: MemoryLink,
    pub(crate) now: Instant,
}

impl World {
    /// A host whose announcements are over, and that knows the peer.
    pub(crate) fn new() -> Self {
        let link = MemoryLink::ethernet(1);
        let addresses = [(OURS[0], 24), (OURS[1], 64)].map(|(text, len)| Prefix {
            address: text.parse().unwrap(),
            len,
        });
        let now = at(1000);
        let properties = *mill_stack::link::Link::properties(&link);
        let host = Host::new(
            HostConfig::new(addresses.to_vec(), [7; 16]),
            &properties,
            now,
        );
        let mut world = Self { host, link, now };
        for second in 1..8 {
            world.now = at(second * 1000);
            world.turn();
        }
        for family in 0..2 {
            world.introduce(family);
        }
        world
    }

    /// The peer asks for us, so that we know it.
    pub(crate) fn introduce(&mut self, family: usize) {
        let answers = match family {
            0 => {
                let mut request = [0, 1, 8, 0, 6, 4, 0, 1].to_vec();
                request.extend(PEER_MAC.0);
                request.extend([10, 77, 0, 9, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2]);
                self.exchange(EtherType::ARP, &request)
            }
            _ => {
                let question = Ndp::NeighborSolicitation {
                    target: "fd00::2".parse().unwrap(),
                    source_mac: Some(PEER_MAC),
                };
                let mut bytes = [0; 32];
                question.emit(&mut bytes);
                let body = icmp(PEER[1], OURS[1], &bytes);
                let mut packet = packet(PEER[1], OURS[1], Protocol::ICMPV6, &body);
                packet[7] = 255;
                self.exchange(EtherType::IPV6, &packet)
            }
        };
        assert_eq!(answers.len(), 1, "{answers:?}");
    }

    pub(crate) fn turn(&mut self) -> Vec<Vec<u8>> {
        while self.host.receive(&mut self.link, self.now) > 0 {}
        self.host.expire(self.now);
        self.host.transmit(&mut self.link, self.now);
        self.host.settle(&mut self.link);
        assert_eq!(self.link.held(), 0);
        self.link.sent.drain(..).map(|frame| frame.bytes).collect()
    }

    /// Gives the host a packet of the peer; the packets that it sends to the peer.
    pub(crate) fn exchange(&mut self, ether_type: EtherType, packet: &[u8]) -> Vec<Vec<u8>> {
        let target = MacAddress([2, 0, 0, 0, 0, 1]);
        self.exchange_with(target, ether_type, packet)
    }

    pub(crate) fn exchange_with(
        &mut self,
        target: MacAddress,
        ether_type: EtherType,
        packet: &[u8],
    ) -> Vec<Vec<u8>> {
        let mut bytes = vec![0; 14];
        let header = EthernetHeader {
            target,
            source: PEER_MAC,
            ether_type,
        };
        header.emit(&mut bytes);
        bytes.extend(packet);
        self.link.arrived.push_back(Frame {
            bytes,
            offload: Offload::default(),
        });
        let sent = self.turn();
        sent.into_iter().map(|frame| frame[14..].to_vec()).collect()
    }

    pub(crate) fn ip(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let ether_type = [EtherType::IPV4, EtherType::IPV6][usize::from(packet[0] >> 4 == 6)];
        self.exchange(ether_type, packet)
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.host.counters().dropped(reason)
    }
}

pub(crate) fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}
