//! `ip_hash`: by the first three octets of an IPv4 address, or a whole IPv6 address.

use super::Turn;
use super::tried::Probes;
use std::net::IpAddr;

pub(super) fn pick(
    turn: &mut Turn<'_>,
    probes: &mut Probes,
    client: Option<IpAddr>,
) -> Option<usize> {
    let (mut octets, mut len) = ([0; 16], 3);
    match client {
        Some(IpAddr::V4(address)) => octets[..4].copy_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => (octets, len) = (address.octets(), 16),
        None => {}
    }
    let candidates = turn.candidates;
    turn.probe(probes, |probes| {
        let add = |hash, octet: &u8| (hash * 113 + u32::from(*octet)) % 6271;
        let hash = octets[..len].iter().fold(probes.hash.unwrap_or(89), add);
        probes.hash = Some(hash);
        candidates.at_weight(u64::from(hash) % candidates.total_weight())
    })
}
