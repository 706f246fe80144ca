//! What must hold of any bytes given to the packet formats. Used by the fuzz target and by the ordinary test that
//! replays the corpus.

use mill_wire::Malformed;
use mill_wire::arp::ArpPacket;
use mill_wire::checksum::Sum;
use mill_wire::ethernet::{EtherType, EthernetHeader};
use mill_wire::icmpv4::Icmpv4;
use mill_wire::icmpv6::Icmpv6;
use mill_wire::ipv4::Ipv4Header;
use mill_wire::ipv6::Ipv6Header;
use mill_wire::ipv6_extension::{FragmentHeader, Start, walk};
use mill_wire::ndp::Ndp;
use mill_wire::protocol::Protocol;
use mill_wire::quoted::Quoted;
use mill_wire::tcp::TcpHeader;
use mill_wire::tcp_option::OPTIONS_BYTES_MAX;
use mill_wire::udp::UdpHeader;
use mill_wire::vlan::LinkHeader;
use std::fmt::Debug;

/// Panics if a format breaks a promise on `input`: as a frame from the outside to the inside, and as each format by
/// itself.
pub(crate) fn check(input: &[u8]) {
    frame(input);
    sums(input);
    read_again(input, EthernetHeader::parse, EthernetHeader::emit);
    read_again(input, ArpPacket::parse, ArpPacket::emit);
    read_again(input, FragmentHeader::parse, FragmentHeader::emit);
    packet(input, EtherType::IPV4);
    packet(input, EtherType::IPV6);
    for protocol in [
        Protocol::TCP,
        Protocol::UDP,
        Protocol::ICMPV4,
        Protocol::ICMPV6,
        Protocol::HOP_BY_HOP,
        Protocol::ROUTING,
        Protocol::DESTINATION_OPTIONS,
        Protocol::FRAGMENT,
    ] {
        upper(input, protocol);
    }
}

fn frame(input: &[u8]) {
    if let Some((header, len)) = read_again(input, LinkHeader::parse, LinkHeader::emit) {
        let payload = &input[len..];
        match header.ether_type {
            EtherType::ARP => {
                read_again(payload, ArpPacket::parse, ArpPacket::emit);
            }
            ether_type => packet(payload, ether_type),
        }
    }
}

fn packet(input: &[u8], ether_type: EtherType) {
    match ether_type {
        EtherType::IPV4 => {
            let Some((header, len)) = read_again(input, Ipv4Header::parse, Ipv4Header::emit) else {
                return;
            };
            let total_len = usize::from(header.total_len);
            assert!(len <= total_len && total_len <= input.len());
            upper(&input[len..total_len], header.protocol);
        }
        EtherType::IPV6 => {
            let Some((header, len)) = read_again(input, Ipv6Header::parse, Ipv6Header::emit) else {
                return;
            };
            upper(
                &input[len..len + usize::from(header.payload_len)],
                header.next_header,
            );
        }
        _ => {}
    }
}

fn upper(input: &[u8], protocol: Protocol) {
    for start in [Start::Packet, Start::Datagram] {
        if let Ok(upper) = walk(protocol, input, start) {
            assert!(upper.offset <= input.len());
            assert!(upper.fragment.is_none_or(|fragment| !fragment.is_atomic()));
        }
    }
    match protocol {
        Protocol::TCP => {
            // Options that fit as they came may not fit aligned, as they are written.
            let fits = |header: &TcpHeader| header.options.len() <= OPTIONS_BYTES_MAX;
            if TcpHeader::parse(input).is_ok_and(|(header, _)| fits(&header)) {
                read_again(input, TcpHeader::parse, TcpHeader::emit);
            }
        }
        Protocol::UDP => {
            if let Some((header, len)) = read_again(input, UdpHeader::parse, UdpHeader::emit) {
                assert!(len <= usize::from(header.len) && usize::from(header.len) <= input.len());
            }
        }
        Protocol::ICMPV4 => {
            if let Some((_, len)) = read_again(input, Icmpv4::parse, Icmpv4::emit) {
                let _ = Quoted::parse_v4(&input[len..]);
            }
        }
        Protocol::ICMPV6 => {
            if let Some((_, len)) = read_again(input, Icmpv6::parse, Icmpv6::emit) {
                let _ = Quoted::parse_v6(&input[len..]);
            }
            if let Ok((message, len)) = Ndp::parse(input) {
                assert_eq!(len, input.len());
                let mut bytes = [0; 512];
                let written = message.emit(&mut bytes);
                assert_eq!(Ndp::parse(&bytes[..written]), Ok((message, written)));
            }
        }
        _ => {}
    }
}

/// What is read out of `input` is within it, and is read as the same once it is written, as far as it can be: what
/// stands behind the header is taken along.
fn read_again<T: PartialEq + Debug>(
    input: &[u8],
    parse: impl Fn(&[u8]) -> Result<(T, usize), Malformed>,
    emit: impl Fn(&T, &mut [u8]) -> usize,
) -> Option<(T, usize)> {
    let (value, len) = parse(input).ok()?;
    assert!(len <= input.len());
    let mut again = vec![0; 128 + input.len()];
    let written = emit(&value, &mut again);
    again.truncate(written);
    again.extend_from_slice(&input[len..]);
    assert_eq!(parse(&again).map(|(value, _)| value), Ok(value));
    parse(input).ok()
}

/// The wide sum is the one of 16-bit words, wherever it is cut.
fn sums(input: &[u8]) {
    let naive = input.chunks(2).fold(0_u32, |sum, pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        let sum = sum + u32::from(u16::from_be_bytes([pair[0], low]));
        (sum & 0xffff) + (sum >> 16)
    });
    let sum = Sum::of(input);
    assert_eq!(u32::from(sum.folded()), naive);
    let cut = input.first().map_or(0, |first| usize::from(*first)) % (input.len() + 1);
    let (front, back) = input.split_at(cut);
    let mut back_sum = Sum::of(back);
    if cut % 2 == 1 {
        back_sum = back_sum.at_odd_offset();
    }
    assert_eq!(Sum::of(front) + back_sum, sum);
}
