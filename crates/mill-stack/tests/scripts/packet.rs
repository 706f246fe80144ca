//! Packets, to bytes and from them. Written apart from mill-wire, so that an error there is not made twice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A TCP segment with its IP header's fields, all numbers as they stand in the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) ecn: u8,
    pub(crate) source_port: u16,
    pub(crate) target_port: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    /// Kind and value of each option in its order.
    pub(crate) options: Vec<(u8, Vec<u8>)>,
    pub(crate) payload: Vec<u8>,
    /// IPv4's Don't Fragment; IPv6 never lets routers fragment.
    pub(crate) may_be_fragmented: bool,
}

/// The two ends: the stack's address and the peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) local: IpAddr,
    pub(crate) peer: IpAddr,
}

impl Ends {
    pub(crate) const V4: Self = Self {
        local: IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2)),
        peer: IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)),
    };
    pub(crate) const V6: Self = Self {
        local: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
        peer: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    };

    pub(crate) const fn is_ipv6(&self) -> bool {
        self.local.is_ipv6()
    }

    /// Bytes of the IP header.
    pub(crate) const fn header_bytes(&self) -> u16 {
        if self.is_ipv6() { 40 } else { 20 }
    }
}

pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_ICMP: u8 = 1;
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;

impl Packet {
    /// The IP packet, from the peer to the stack or the other way round.
    pub(crate) fn to_bytes(&self, ends: &Ends, from_peer: bool) -> Vec<u8> {
        let (source, target) = if from_peer {
            (ends.peer, ends.local)
        } else {
            (ends.local, ends.peer)
        };
        let mut tcp = self.tcp_header();
        tcp.extend(&self.payload);
        let sum = checksum(&[
            &pseudo_header(source, target, PROTOCOL_TCP, tcp.len()),
            &tcp,
        ]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = ip_header(source, target, PROTOCOL_TCP, self.ecn, tcp.len());
        packet.extend(tcp);
        packet
    }

    fn tcp_header(&self) -> Vec<u8> {
        let mut options = Vec::new();
        for (kind, value) in &self.options {
            options.push(*kind);
            if *kind > 1 {
                options.push(u8::try_from(value.len() + 2).expect("options are short"));
                options.extend(value);
            }
        }
        while options.len() % 4 != 0 {
            options.push(0);
        }
        let words = u16::try_from(5 + options.len() / 4).expect("options are short");
        assert!(words <= 15, "the options take more than 40 bytes");
        let mut header = Vec::new();
        header.extend(self.source_port.to_be_bytes());
        header.extend(self.target_port.to_be_bytes());
        header.extend(self.seq.to_be_bytes());
        header.extend(self.ack.to_be_bytes());
        header.extend((words << 12 | self.flags).to_be_bytes());
        header.extend(self.window.to_be_bytes());
        header.extend([0, 0]);
        header.extend(self.urgent.to_be_bytes());
        header.extend(options);
        header
    }

    /// A packet of the stack; says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8], ends: &Ends) -> Result<Self, String> {
        let (header, tcp) = parse_ip(bytes, ends, PROTOCOL_TCP)?;
        let pseudo = pseudo_header(ends.local, ends.peer, PROTOCOL_TCP, tcp.len());
        if checksum(&[&pseudo, tcp]) != 0 {
            return Err("the TCP checksum is wrong".into());
        }
        let at = |index: usize| tcp.get(index).copied().ok_or("shorter than a TCP header");
        let u16_at = |index| Ok::<_, String>(u16::from_be_bytes([at(index)?, at(index + 1)?]));
        let u32_at = |index| {
            Ok::<_, String>(u32::from(u16_at(index)?) << 16 | u32::from(u16_at(index + 2)?))
        };
        let header_bytes = usize::from(at(12)? >> 4) * 4;
        let options = tcp
            .get(20..header_bytes)
            .ok_or("a header length that can't be")?;
        Ok(Self {
            ecn: header.ecn,
            source_port: u16_at(0)?,
            target_port: u16_at(2)?,
            seq: u32_at(4)?,
            ack: u32_at(8)?,
            flags: u16_at(12)? & 0xfff,
            window: u16_at(14)?,
            urgent: u16_at(18)?,
            options: parse_options(options)?,
            payload: tcp.get(header_bytes..).unwrap_or_default().to_vec(),
            may_be_fragmented: header.may_be_fragmented,
        })
    }
}

fn parse_options(mut bytes: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, String> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        if *kind <= 1 {
            options.push((*kind, Vec::new()));
            bytes = rest;
            continue;
        }
        let len = usize::from(*rest.first().ok_or("an option without length")?);
        let value = bytes
            .get(2..len)
            .ok_or("an option with a length that can't be")?;
        options.push((*kind, value.to_vec()));
        bytes = bytes.get(len..).unwrap_or_default();
    }
    Ok(options)
}

struct IpHeader {
    ecn: u8,
    may_be_fragmented: bool,
}

fn parse_ip<'a>(
    bytes: &'a [u8],
    ends: &Ends,
    protocol: u8,
) -> Result<(IpHeader, &'a [u8]), String> {
    let problem = "an IP header that can't be";
    let (header, fields, source, target, found, len) = if ends.is_ipv6() {
        let header = bytes.get(..40).ok_or(problem)?;
        let len = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let class = u16::from_be_bytes([header[0], header[1]]) >> 4;
        let fields = IpHeader {
            ecn: (class & 3) as u8,
            may_be_fragmented: false,
        };
        (
            header,
            fields,
            &header[8..24],
            &header[24..40],
            header[6],
            len,
        )
    } else {
        let header = bytes.get(..20).ok_or(problem)?;
        if header[0] != 0x45 || checksum(&[header]) != 0 {
            return Err(problem.into());
        }
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fields = IpHeader {
            ecn: header[1] & 3,
            may_be_fragmented: header[6] & 0x40 == 0,
        };
        (
            header,
            fields,
            &header[12..16],
            &header[16..20],
            header[9],
            len,
        )
    };
    if source != octets(ends.local) || target != octets(ends.peer) {
        return Err("a packet from or to another host".into());
    }
    if found != protocol {
        return Err(format!("a packet of protocol {found}"));
    }
    if bytes.len() < len {
        return Err("a packet shorter than its header says".into());
    }
    Ok((fields, &bytes[header.len()..len]))
}

/// An IP header before `len` bytes of `protocol`.
pub(crate) fn ip_header(
    source: IpAddr,
    target: IpAddr,
    protocol: u8,
    ecn: u8,
    len: usize,
) -> Vec<u8> {
    let mut header = Vec::new();
    if source.is_ipv6() {
        header.extend([0x60, ecn << 4, 0, 0]);
        header.extend(u16::try_from(len).expect("a packet is short").to_be_bytes());
        header.extend([protocol, 64]);
        header.extend(octets(source));
        header.extend(octets(target));
    } else {
        let total = u16::try_from(20 + len).expect("a packet is short");
        header.extend([0x45, ecn]);
        header.extend(total.to_be_bytes());
        header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        header.extend(octets(source));
        header.extend(octets(target));
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    header
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// What TCP's and ICMPv6's checksums cover besides (RFC 9293 3.1, RFC 8200 8.1).
pub(crate) fn pseudo_header(source: IpAddr, target: IpAddr, protocol: u8, len: usize) -> Vec<u8> {
    let mut pseudo = octets(source);
    pseudo.extend(octets(target));
    let len = u32::try_from(len).expect("a packet is short");
    // For IPv4 the sum over 32 bits of length is the sum over 16.
    pseudo.extend(len.to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    pseudo
}

/// RFC 1071, word by word; all parts but the last are even.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("it was folded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_parsed_as_it_was_made_and_every_flipped_bit_is_seen() {
        let packet = Packet {
            ecn: 2,
            source_port: 80,
            target_port: 40_001,
            seq: u32::MAX,
            ack: 7,
            flags: 0x112,
            window: 9,
            urgent: 3,
            options: vec![
                (1, vec![]),
                (1, vec![]),
                (5, vec![9; 8]),
                (34, vec![1, 2]),
                (0, vec![]),
            ],
            payload: vec![1, 2, 3],
            may_be_fragmented: false,
        };
        let mut padded = packet.clone();
        padded
            .options
            .extend([(0, vec![]), (0, vec![]), (0, vec![])]);
        for ends in [Ends::V4, Ends::V6] {
            let bytes = packet.to_bytes(&ends, false);
            assert_eq!(Packet::parse(&bytes, &ends), Ok(padded.clone()));
            let tcp = usize::from(ends.header_bytes());
            for bit in tcp * 8..bytes.len() * 8 {
                let mut wrong = bytes.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(Packet::parse(&wrong, &ends).is_err(), "bit {bit}");
            }
        }
    }
}
