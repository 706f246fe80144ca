//! Frames as a host would make them: TCP over IPv4.

use mill_sim::packet::sim_link::SimLink;
use mill_stack::link::{Link, Offload, PartialChecksum, Segmentation};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{Flags, TcpHeader};
use mill_wire::tcp_option::TcpOptions;

/// What a frame is made of.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) payload: Vec<u8>,
    pub(super) header: TcpHeader,
    /// From the second host to the first.
    pub(super) is_answer: bool,
    mss: Option<u16>,
    ecn: u8,
    sums: Sums,
}

/// How its checksums are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sums {
    Right,
    WrongIp,
    WrongTransport,
    /// Left to a card that does not do it.
    NotLeft,
}

impl Frame {
    pub(super) fn data(seq: u32, len: usize) -> Self {
        Self {
            payload: (0..len)
                .map(|at| u8::try_from(at % 251).unwrap_or(0))
                .collect(),
            header: TcpHeader {
                source: 1000,
                target: 80,
                seq: SeqNumber(seq),
                ack: SeqNumber(7),
                flags: Flags::ACK,
                window: 65_535,
                ..TcpHeader::default()
            },
            is_answer: false,
            mss: None,
            ecn: 0,
            sums: Sums::Right,
        }
    }

    pub(super) fn syn(seq: u32) -> Self {
        let mut frame = Self::data(seq, 0);
        frame.header.flags = Flags::SYN;
        frame.header.options = TcpOptions {
            mss: Some(1460),
            ..TcpOptions::default()
        };
        frame
    }

    /// With FIN and CWR.
    pub(super) fn finishing(mut self) -> Self {
        self.header.flags |= Flags::FIN | Flags::CWR;
        self
    }

    pub(super) fn segmented(mut self, mss: u16) -> Self {
        self.mss = Some(mss);
        self
    }

    pub(super) fn with_ecn(mut self, ecn: u8) -> Self {
        self.ecn = ecn;
        self
    }

    pub(super) fn with(mut self, sums: Sums) -> Self {
        self.sums = sums;
        self
    }

    pub(super) fn emit(&self, from: &SimLink, to: &SimLink) -> (Vec<u8>, Offload) {
        let mut options = [0; 60];
        let mut header = self.header;
        let mut addresses = [10, 0, 0, 1, 10, 0, 0, 2];
        if self.is_answer {
            (header.source, header.target) = (header.target, header.source);
            addresses.rotate_left(4);
        }
        let header_len = header.emit(&mut options);
        let total = u16::try_from(20 + header_len + self.payload.len()).expect("it fits");
        let mut frame = Vec::new();
        frame.extend_from_slice(&to.properties().address);
        frame.extend_from_slice(&from.properties().address);
        frame.extend_from_slice(&[8, 0, 0x45, self.ecn]);
        frame.extend_from_slice(&total.to_be_bytes());
        // Identification 9, don't fragment, 64 hops, TCP.
        frame.extend_from_slice(&[0, 9, 0x40, 0, 64, 6, 0, 0]);
        frame.extend_from_slice(&addresses);
        frame.extend_from_slice(&options[..header_len]);
        frame.extend_from_slice(&self.payload);
        let ip = !sum(&frame[14..34]) ^ u16::from(self.sums == Sums::WrongIp);
        frame[24..26].copy_from_slice(&ip.to_be_bytes());
        let leaves = self.mss.is_some() || self.sums == Sums::NotLeft;
        let transport = if leaves {
            sum(&pseudo(&frame))
        } else {
            !sum(&[&pseudo(&frame), &frame[34..]].concat())
        };
        let transport = transport ^ u16::from(self.sums == Sums::WrongTransport);
        frame[50..52].copy_from_slice(&transport.to_be_bytes());
        let offload = Offload {
            checksum: leaves.then_some(PartialChecksum {
                start: 34,
                offset: 16,
            }),
            segmentation: self.mss.map(|mss| Segmentation {
                mss,
                header_len: u16::try_from(34 + header_len).expect("it fits"),
                is_ipv6: false,
            }),
        };
        (frame, offload)
    }
}

fn pseudo(frame: &[u8]) -> Vec<u8> {
    let len = u16::try_from(frame.len() - 34).expect("it fits");
    [&frame[26..34], &[0, 6], &len.to_be_bytes()].concat()
}

/// RFC 1071, a third time and as plainly as can be.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(sum).expect("folded")
}

/// Whether a frame is IPv4 with a right checksum, and its TCP or ICMP too.
pub(super) fn has_right_sums(frame: &[u8]) -> bool {
    if frame[12..14] != [8, 0] || frame[14] != 0x45 || sum(&frame[14..34]) != 0xffff {
        return false;
    }
    match frame[23] {
        6 => sum(&[&pseudo(frame), &frame[34..]].concat()) == 0xffff,
        1 => sum(&frame[34..]) == 0xffff,
        _ => false,
    }
}

pub(super) fn payload_of(frame: &[u8]) -> &[u8] {
    &frame[34 + usize::from(frame[46] >> 4) * 4..]
}

pub(super) fn seq_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[38..42].try_into().expect("four bytes"))
}
