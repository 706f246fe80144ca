//! Answers to questions for a hardware address: ARP (RFC 826) and neighbour discovery (RFC 4861 4.3, 4.4). Nothing is asked:
//! a world's hardware addresses are known from its IP addresses, as those of a static table.

use super::header::{packet, pseudo_sum, sum, u16_at};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hardware address of a world's host: its number is the last byte of both.
pub(super) fn hardware_address(address: IpAddr) -> [u8; 6] {
    let last = match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    [2, 0, 0, 0, 0, last]
}

/// The answer to a frame that asks for an address that is `ours`, which all have the hardware address `own`.
pub(super) fn answer(frame: &[u8], own: [u8; 6], ours: impl Fn(IpAddr) -> bool) -> Option<Vec<u8>> {
    match frame.get(12..14)? {
        [0x08, 0x06] => answer_arp(frame, own, ours),
        [0x86, 0xdd] => answer_solicitation(frame, own, ours),
        _ => None,
    }
}

fn answer_arp(frame: &[u8], own: [u8; 6], ours: impl Fn(IpAddr) -> bool) -> Option<Vec<u8>> {
    let asked = frame.get(14..42)?;
    // Ethernet, IPv4, lengths, request.
    if asked[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
        return None;
    }
    let target = Ipv4Addr::new(asked[24], asked[25], asked[26], asked[27]);
    if !ours(target.into()) {
        return None;
    }
    let asker = &asked[8..18];
    let mut reply = Vec::new();
    reply.extend(&asker[..6]);
    reply.extend(own);
    reply.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 2]);
    reply.extend(own);
    reply.extend(target.octets());
    reply.extend(asker);
    Some(reply)
}

fn answer_solicitation(
    frame: &[u8],
    own: [u8; 6],
    ours: impl Fn(IpAddr) -> bool,
) -> Option<Vec<u8>> {
    let header = frame.get(14..54)?;
    let len = usize::from(u16_at(header, 4));
    let icmp = frame.get(54..54 + len)?;
    let address = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).map(Ipv6Addr::from).ok();
    let (asker, multicast) = (address(&header[8..24])?, address(&header[24..40])?);
    let target = address(icmp.get(8..24)?)?;
    let pseudo = pseudo_sum(asker.into(), multicast.into(), 58, len);
    let is_right = header[6] == 58 && icmp[..2] == [135, 0] && sum(icmp, pseudo) == 0xffff;
    if !is_right || !ours(target.into()) || asker.is_unspecified() {
        return None;
    }
    // Solicited, overriding; the target's hardware address is the only option.
    let mut advertisement = vec![136, 0, 0, 0, 0x60, 0, 0, 0];
    advertisement.extend(target.octets());
    advertisement.extend([2, 1]);
    advertisement.extend(own);
    let pseudo = pseudo_sum(target.into(), asker.into(), 58, advertisement.len());
    let checksum = !sum(&advertisement, pseudo);
    advertisement[2..4].copy_from_slice(&checksum.to_be_bytes());
    let to = frame.get(6..12)?.try_into().ok()?;
    let ends = (target.into(), asker.into());
    Some(packet(ends, 58, &advertisement, (own, to)))
}
