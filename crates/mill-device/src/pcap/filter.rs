//! Selection of frames by a port or an address of either end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Selects frames that match all that is given; without anything, all frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameFilter {
    pub port: Option<u16>,
    pub address: Option<IpAddr>,
}

impl FrameFilter {
    /// Whether a frame is selected: Ethernet with IPv4 or IPv6, and if a port is given, TCP or UDP directly after the
    /// IP header. Truncated frames are not.
    pub fn has(&self, frame: &[u8]) -> bool {
        if *self == Self::default() {
            return true;
        }
        let Some(ends) = ends_of(frame) else {
            return false;
        };
        let has_address = self
            .address
            .is_none_or(|address| ends.addresses.contains(&address));
        let has_port = self
            .port
            .is_none_or(|port| ends.ports.contains(&Some(port)));
        has_address && has_port
    }
}

struct Ends {
    addresses: [IpAddr; 2],
    ports: [Option<u16>; 2],
}

fn ends_of(frame: &[u8]) -> Option<Ends> {
    let (_, rest) = frame.split_first_chunk::<12>()?;
    let (ether_type, packet) = rest.split_first_chunk::<2>()?;
    let (addresses, protocol, payload) = match u16::from_be_bytes(*ether_type) {
        IPV4 => {
            let header = packet.first_chunk::<20>()?;
            let [length, .., a, b, c, d, e, f, g, h] = *header;
            let addresses = [Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h)];
            let payload = packet.get(usize::from(length & 15) * 4..)?;
            (addresses.map(IpAddr::V4), *packet.get(9)?, payload)
        }
        IPV6 => {
            let (header, payload) = packet.split_first_chunk::<40>()?;
            let address = |from: usize| -> Option<IpAddr> {
                let octets = header.get(from..)?.first_chunk::<16>()?;
                Some(IpAddr::V6(Ipv6Addr::from(*octets)))
            };
            ([address(8)?, address(24)?], *header.get(6)?, payload)
        }
        _ => return None,
    };
    let has_ports = matches!(protocol, TCP | UDP);
    let ports = payload.first_chunk::<4>().filter(|_| has_ports);
    let ports = ports.map_or([None; 2], |[a, b, c, d]| {
        [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])].map(Some)
    });
    Some(Ends { addresses, ports })
}

/// EtherTypes, and IP protocols.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45]);
        frame.extend([0; 8]);
        frame.push(protocol);
        frame.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0, 80]);
        frame
    }

    fn ipv6() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6, 64]);
        frame.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend([0, 80, 0x9c, 0x40]);
        frame
    }

    fn filter(port: Option<u16>, address: Option<&str>) -> FrameFilter {
        FrameFilter {
            port,
            address: address.map(|address| address.parse().unwrap()),
        }
    }

    #[test]
    fn either_end_counts() {
        let check = |frame: &[u8], port, address, expected| {
            assert_eq!(
                filter(port, address).has(frame),
                expected,
                "{port:?} {address:?}"
            );
        };
        for frame in [ipv4(TCP), ipv4(UDP), ipv6()] {
            check(&frame, None, None, true);
            check(&frame, Some(80), None, true);
            check(&frame, Some(40_000), None, true);
            check(&frame, Some(81), None, false);
        }
        check(&ipv4(TCP), Some(80), Some("10.0.0.2"), true);
        check(&ipv4(TCP), Some(80), Some("10.0.0.3"), false);
        check(&ipv6(), None, Some("fd00::1"), true);
        check(&ipv6(), None, Some("10.0.0.1"), false);
        // ICMP has no ports.
        check(&ipv4(1), Some(80), None, false);
        check(&ipv4(1), None, Some("10.0.0.1"), true);
    }

    #[test]
    fn truncated_frames_do_not_match_and_do_no_harm() {
        let frame = ipv6();
        for len in 0..frame.len() {
            let cut = frame.get(..len).unwrap();
            assert!(!filter(Some(80), None).has(cut), "{len}");
            assert!(FrameFilter::default().has(cut));
        }
    }
}
