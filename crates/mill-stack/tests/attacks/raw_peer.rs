//! A peer that sends whatever segments a test wants.

use crate::target::{ADDRESS, GATEWAY_MAC, MAC, PORT, Target};
use mill_stack::socket::SocketId;
use mill_wire::checksum;
use mill_wire::checksum::Sum;
use mill_wire::ethernet::{EtherType, EthernetHeader};
use mill_wire::ipv4::Ipv4Header;
use mill_wire::protocol::Protocol;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{CHECKSUM_OFFSET, Flags, TcpHeader};
use mill_wire::tcp_option::{TcpOptions, Timestamps};
use std::net::Ipv4Addr;

/// A segment on the wire, to the host or from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Any host but the one under attack.
    pub(crate) peer: Ipv4Addr,
    pub(crate) header: TcpHeader,
    pub(crate) payload: Vec<u8>,
}

impl Seen {
    pub(crate) fn parse(frame: &[u8]) -> Self {
        let (ip, len) = Ipv4Header::parse(&frame[14..]).expect("the host sends whole packets");
        assert_eq!((ip.source, ip.protocol), (ADDRESS, Protocol::TCP));
        let segment = &frame[14 + len..14 + usize::from(ip.total_len)];
        let sum = Sum::of_pseudo_header_v4(ip.source, ip.target, Protocol::TCP.0, segment.len());
        assert!(checksum::verify(sum, segment));
        let (header, len) = TcpHeader::parse(segment).expect("the host sends whole headers");
        Self {
            peer: ip.target,
            header,
            payload: segment[len..].to_vec(),
        }
    }

    pub(crate) fn is(&self, flags: Flags) -> bool {
        self.header.flags.has(flags)
    }
}

/// The frame of a segment to the host.
pub(crate) fn emit(seen: &Seen) -> Vec<u8> {
    let tcp_len = seen.header.len() + seen.payload.len();
    let mut frame = vec![0; 14 + 20 + tcp_len];
    EthernetHeader {
        target: MAC,
        source: GATEWAY_MAC,
        ether_type: EtherType::IPV4,
    }
    .emit(&mut frame);
    Ipv4Header {
        total_len: u16::try_from(20 + tcp_len).expect("a packet is short"),
        protocol: Protocol::TCP,
        source: seen.peer,
        target: ADDRESS,
        ..Ipv4Header::default()
    }
    .emit(&mut frame[14..]);
    let segment = &mut frame[34..];
    let len = seen.header.emit(segment);
    segment[len..].copy_from_slice(&seen.payload);
    let sum = Sum::of_pseudo_header_v4(seen.peer, ADDRESS, Protocol::TCP.0, tcp_len);
    checksum::fill(sum, segment, CHECKSUM_OFFSET);
    frame
}

/// One end of a connection, in the test's hands.
#[derive(Clone, Debug)]
pub(crate) struct RawPeer {
    pub(crate) address: Ipv4Addr,
    pub(crate) port: u16,
    /// Next to send.
    pub(crate) seq: SeqNumber,
    /// Next expected.
    pub(crate) ack: SeqNumber,
    pub(crate) window: u16,
    /// The clock of timestamps, if the peer has them; and what it echoes.
    pub(crate) timestamps: Option<Timestamps>,
}

impl RawPeer {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            address: Ipv4Addr::from_bits(0x0a01_0000 + number / 1000),
            port: u16::try_from(2000 + number % 1000).expect("a port"),
            seq: SeqNumber(number.wrapping_mul(0x9e37_79b9)),
            ack: SeqNumber(0),
            window: 65535,
            timestamps: None,
        }
    }

    pub(crate) fn with_timestamps(mut self) -> Self {
        self.timestamps = Some(Timestamps {
            value: 1000,
            echo: 0,
        });
        self
    }

    /// A segment with its present numbers.
    pub(crate) fn segment(&self, flags: Flags, payload: &[u8]) -> Seen {
        Seen {
            peer: self.address,
            header: TcpHeader {
                source: self.port,
                target: PORT,
                seq: self.seq,
                ack: self.ack,
                flags,
                window: self.window,
                urgent: 0,
                options: TcpOptions {
                    timestamps: self.timestamps,
                    ..TcpOptions::default()
                },
            },
            payload: payload.to_vec(),
        }
    }

    pub(crate) fn syn(&self) -> Seen {
        let mut syn = self.segment(Flags::SYN, &[]);
        syn.header.options.mss = Some(1460);
        syn.header.options.window_scale = Some(3);
        syn.header.options.sack_permitted = true;
        syn
    }

    /// Takes over the numbers of the SYN-ACK that the host sent.
    pub(crate) fn on_syn_ack(&mut self, syn_ack: &Seen) {
        assert!(syn_ack.is(Flags::SYN | Flags::ACK), "{syn_ack:?}");
        self.seq += 1;
        self.ack = syn_ack.header.seq + 1;
        if let (Some(own), Some(theirs)) = (&mut self.timestamps, syn_ack.header.options.timestamps)
        {
            own.echo = theirs.value;
            own.value += 1;
        }
    }

    /// SYN and SYN-ACK; the last acknowledgement is the caller's.
    pub(crate) fn begin(&mut self, target: &mut Target) -> Option<Seen> {
        target.arrive(&self.syn());
        target.turn();
        let syn_ack = self
            .take_seen(target)
            .into_iter()
            .find(|seen| seen.is(Flags::SYN))?;
        self.on_syn_ack(&syn_ack);
        Some(syn_ack)
    }

    /// A whole handshake, and the host's socket.
    pub(crate) fn connect(&mut self, target: &mut Target) -> SocketId {
        self.begin(target).expect("the host answers a SYN");
        self.send(target, Flags::ACK, &[]);
        target.turn();
        target.accept().expect("the handshake is complete")
    }

    /// Sends a segment and moves on by what it takes.
    pub(crate) fn send(&mut self, target: &mut Target, flags: Flags, payload: &[u8]) {
        target.arrive(&self.segment(flags, payload));
        self.seq += u32::try_from(payload.len()).expect("a payload is short")
            + u32::from(flags.has(Flags::FIN));
    }

    /// What the host has sent to this peer.
    pub(crate) fn take_seen(&self, target: &mut Target) -> Vec<Seen> {
        let (mine, others) = target
            .take_seen()
            .into_iter()
            .partition(|seen| seen.peer == self.address && seen.header.target == self.port);
        target.seen = others;
        mine
    }
}
