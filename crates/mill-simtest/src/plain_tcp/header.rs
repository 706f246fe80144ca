//! The bytes of a frame: Ethernet, IPv4 (RFC 791) or IPv6 (RFC 8200), TCP (RFC 9293 3.1), read and written by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A TCP segment and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) source: SocketAddr,
    pub(super) target: SocketAddr,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// The eight control bits, CWR first.
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) urgent: u16,
    /// The four bits beside the data offset.
    pub(super) reserved: u8,
    /// The two bits of explicit congestion notification in the IP header.
    pub(super) ecn: u8,
    pub(super) options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const PSH: u8 = 8;
pub(super) const ACK: u8 = 16;
pub(super) const URG: u8 = 32;
pub(super) const ECE: u8 = 64;
pub(super) const CWR: u8 = 128;

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Short,
    IpChecksum,
    TcpChecksum,
    Fragment,
    Options,
}

impl Segment {
    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Its length in sequence numbers.
    pub(super) fn seq_len(&self) -> u32 {
        let controls = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        super::sequence::len(self.payload.len()) + controls
    }

    /// Kinds and values of its options, without padding; an error if they do not fit their list.
    pub(super) fn options(&self) -> Result<Vec<(u8, &[u8])>, Fault> {
        let (mut rest, mut found) = (&self.options[..], Vec::new());
        loop {
            match rest {
                [] | [0, ..] => return Ok(found),
                [1, more @ ..] => rest = more,
                [kind, len, ..] => {
                    let value = rest.get(2..usize::from(*len)).ok_or(Fault::Options)?;
                    found.push((*kind, value));
                    rest = &rest[usize::from(*len)..];
                }
                [_] => return Err(Fault::Options),
            }
        }
    }

    /// The maximum segment size that it announces.
    pub(super) fn mss(&self) -> Option<u16> {
        let options = self.options().ok()?;
        let value = options.into_iter().find(|(kind, _)| *kind == 2)?.1;
        Some(u16::from_be_bytes(value.try_into().ok()?))
    }

    /// Reads a frame; `None` if it carries no TCP. `lacks_sum` is what the card says of a frame that has never left the
    /// machine: then the field holds the sum of the pseudo header alone.
    pub(super) fn read(frame: &[u8], lacks_sum: bool) -> Result<Option<Self>, Fault> {
        let packet = frame.get(14..).ok_or(Fault::Short)?;
        match frame.get(12..14) {
            Some([0x08, 0x00]) => Self::read_ipv4(packet, lacks_sum),
            Some([0x86, 0xdd]) => Self::read_ipv6(packet, lacks_sum),
            _ => Ok(None),
        }
    }

    fn read_ipv4(packet: &[u8], lacks_sum: bool) -> Result<Option<Self>, Fault> {
        let header_len = usize::from(packet.first().ok_or(Fault::Short)? & 15) * 4;
        let header = packet.get(..header_len.max(20)).ok_or(Fault::Short)?;
        if sum(header, 0) != 0xffff {
            return Err(Fault::IpChecksum);
        }
        if header[9] != 6 {
            return Ok(None);
        }
        if u16_at(header, 6) & 0x3fff != 0 {
            return Err(Fault::Fragment);
        }
        let source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
        let target = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
        let total = usize::from(u16_at(header, 2));
        let bytes = packet.get(header.len()..total).ok_or(Fault::Short)?;
        let ends = (source.into(), target.into());
        Self::read_tcp(bytes, ends, header[1] & 3, lacks_sum).map(Some)
    }

    fn read_ipv6(packet: &[u8], lacks_sum: bool) -> Result<Option<Self>, Fault> {
        let header = packet.get(..40).ok_or(Fault::Short)?;
        if header[6] != 6 {
            return Ok(None);
        }
        let address = |at: usize| {
            let bytes: [u8; 16] = header[at..at + 16].try_into().unwrap_or_default();
            IpAddr::from(Ipv6Addr::from(bytes))
        };
        let end = 40 + usize::from(u16_at(header, 4));
        let bytes = packet.get(40..end).ok_or(Fault::Short)?;
        let ecn = header[1] >> 4 & 3;
        Self::read_tcp(bytes, (address(8), address(24)), ecn, lacks_sum).map(Some)
    }

    fn read_tcp(
        bytes: &[u8],
        (source, target): (IpAddr, IpAddr),
        ecn: u8,
        lacks_sum: bool,
    ) -> Result<Self, Fault> {
        if bytes.len() < 20 {
            return Err(Fault::Short);
        }
        let pseudo = pseudo_sum(source, target, 6, bytes.len());
        let is_right = if lacks_sum {
            u32::from(u16_at(bytes, 16)) == u32::from(sum(&[], pseudo))
        } else {
            sum(bytes, pseudo) == 0xffff
        };
        if !is_right {
            return Err(Fault::TcpChecksum);
        }
        let offset = usize::from(bytes[12] >> 4) * 4;
        let options = bytes.get(20..offset).ok_or(Fault::Short)?;
        Ok(Self {
            source: SocketAddr::new(source, u16_at(bytes, 0)),
            target: SocketAddr::new(target, u16_at(bytes, 2)),
            seq: u32_at(bytes, 4),
            ack: u32_at(bytes, 8),
            flags: bytes[13],
            window: u16_at(bytes, 14),
            urgent: u16_at(bytes, 18),
            reserved: bytes[12] & 15,
            ecn,
            options: options.to_vec(),
            payload: bytes[offset..].to_vec(),
        })
    }

    /// The frame from one hardware address to another.
    pub(super) fn write(&self, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.source.port().to_be_bytes());
        tcp.extend(self.target.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let words = u8::try_from(5 + self.options.len().div_ceil(4)).unwrap_or(5);
        tcp.extend([words << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(self.urgent.to_be_bytes());
        tcp.extend(&self.options);
        tcp.resize(usize::from(words) * 4, 0);
        tcp.extend(&self.payload);
        let (source, target) = (self.source.ip(), self.target.ip());
        let checksum = !sum(&tcp, pseudo_sum(source, target, 6, tcp.len()));
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        packet((source, target), 6, &tcp, (from, to))
    }
}

/// A frame with an IP packet of this protocol.
pub(super) fn packet(
    ends: (IpAddr, IpAddr),
    protocol: u8,
    content: &[u8],
    (from, to): ([u8; 6], [u8; 6]),
) -> Vec<u8> {
    let mut frame = [to, from].concat();
    match ends {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let total = u16::try_from(20 + content.len()).unwrap_or(u16::MAX);
            // Not to be fragmented, 64 hops.
            let mut header = vec![0x45, 0];
            header.extend(total.to_be_bytes());
            header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            header.extend(source.octets());
            header.extend(target.octets());
            let checksum = !sum(&header, 0);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            frame.extend([0x08, 0x00]);
            frame.extend(header);
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            let len = u16::try_from(content.len()).unwrap_or(u16::MAX);
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            // 255 hops: neighbour discovery takes no less (RFC 4861 7.1).
            frame.extend([protocol, 255]);
            frame.extend(source.octets());
            frame.extend(target.octets());
        }
        _ => unreachable!("both ends have addresses of one family"),
    }
    frame.extend(content);
    frame
}

/// The sum of the pseudo header (RFC 9293 3.1, RFC 8200 8.1), not folded.
pub(super) fn pseudo_sum(source: IpAddr, target: IpAddr, protocol: u8, len: usize) -> u32 {
    let of = |address| match address {
        IpAddr::V4(address) => u32::from(sum(&address.octets(), 0)),
        IpAddr::V6(address) => u32::from(sum(&address.octets(), 0)),
    };
    of(source) + of(target) + u32::from(protocol) + super::sequence::len(len)
}

/// The ones' complement sum of 16-bit words (RFC 1071).
pub(super) fn sum(bytes: &[u8], start: u32) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(*high) << 8 | u32::from(*low),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum = words.fold(start, |sum, word| sum + word);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(sum).unwrap_or(0)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

#[cfg(test)]
mod tests;
