//! Frames for the program, built from the Ethernet header on.

use std::net::{IpAddr, SocketAddr};

/// The description of a frame; [`Frame::bytes`] builds it.
#[derive(Clone, Copy, Debug)]
pub(in crate::steering) struct Frame {
    pub(in crate::steering) target_mac: [u8; 6],
    pub(in crate::steering) source: SocketAddr,
    pub(in crate::steering) target: SocketAddr,
    pub(in crate::steering) protocol: u8,
    /// TCP flags.
    pub(in crate::steering) flags: u8,
    /// Length of the IPv4 header in 32-bit words.
    pub(in crate::steering) header_words: u8,
    /// IPv4: flags and fragment offset. IPv6: offset and flag of a fragment header, if there should be one.
    pub(in crate::steering) fragment: Option<u16>,
}

pub(in crate::steering) const TCP: u8 = 6;
pub(in crate::steering) const UDP: u8 = 17;

pub(in crate::steering) const SYN: u8 = 2;
pub(in crate::steering) const ACK: u8 = 0x10;

/// A TCP segment.
pub(in crate::steering) fn tcp(source: &str, target: &str) -> Frame {
    Frame {
        target_mac: [2, 0, 0, 0, 0, 1],
        source: source.parse().unwrap(),
        target: target.parse().unwrap(),
        protocol: TCP,
        flags: ACK,
        header_words: 5,
        fragment: None,
    }
}

/// A UDP datagram.
pub(in crate::steering) fn udp(source: &str, target: &str) -> Frame {
    Frame {
        protocol: UDP,
        ..tcp(source, target)
    }
}

impl Frame {
    pub(in crate::steering) fn fragment(self, word: u16) -> Self {
        Self {
            fragment: Some(word),
            ..self
        }
    }

    /// Bytes before the IP header.
    pub(in crate::steering) fn link_len(&self) -> usize {
        14
    }

    /// Length of the IP header of a frame without fragment header and options.
    pub(in crate::steering) fn header_len(&self) -> usize {
        if self.source.is_ipv4() { 20 } else { 40 }
    }

    pub(in crate::steering) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.target_mac.to_vec();
        bytes.extend([2, 0, 0, 0, 0, 2]);
        match (self.source.ip(), self.target.ip()) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                bytes.extend([8, 0, 0x40 | self.header_words, 0, 0, 60, 0, 1]);
                bytes.extend(self.fragment.unwrap_or(0).to_be_bytes());
                bytes.extend([64, self.protocol, 0, 0]);
                bytes.extend(source.octets());
                bytes.extend(target.octets());
                // No-operation options.
                let options = usize::from(self.header_words).saturating_sub(5) * 4;
                bytes.resize(bytes.len() + options, 1);
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40]);
                let next = self.fragment.map_or(self.protocol, |_| 44);
                bytes.extend([next, 64]);
                bytes.extend(source.octets());
                bytes.extend(target.octets());
                if let Some(word) = self.fragment {
                    bytes.extend([self.protocol, 0]);
                    bytes.extend(word.to_be_bytes());
                    bytes.extend([0, 0, 0, 1]);
                }
            }
            mixed => panic!("{mixed:?}"),
        }
        bytes.extend(self.source.port().to_be_bytes());
        bytes.extend(self.target.port().to_be_bytes());
        if self.protocol == UDP {
            bytes.extend([0, 8, 0, 0]);
        } else {
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, self.flags, 0xff, 0xff]);
            bytes.extend([0; 4]);
        }
        bytes
    }
}
