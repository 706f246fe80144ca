//! `hash KEY consistent`: 160 points for each unit of weight on a ring of 32 bits (ketama), as Cache::Memcached::Fast does.

use super::crc32::Crc32;
use super::tried::Probes;
use super::{Turn, round_robin};
use crate::peer::Peer;
use std::sync::Arc;

/// The points, in order.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    points: Vec<Point>,
    /// For each peer, the index of the first of the same server: its addresses share points.
    servers: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    hash: u32,
    /// The index of the server's first peer.
    server: u32,
}

impl Ring {
    pub(crate) fn new(peers: &[Arc<Peer>]) -> Self {
        let mut points = Vec::new();
        let mut servers = Vec::with_capacity(peers.len());
        for peer in peers {
            let name = peer.settings.name.as_bytes();
            let is_same = |other: &&Arc<Peer>| other.settings.name.as_bytes() == name;
            let first = peers.iter().take_while(|other| !is_same(other)).count();
            let server = u32::try_from(first).unwrap_or(u32::MAX);
            servers.push(server);
            let hashes = hashes(name).take(peer.settings.weight as usize * POINTS_PER_WEIGHT);
            points.extend(hashes.map(|hash| Point { hash, server }));
        }
        points.sort_by_key(|point| point.hash);
        points.dedup_by_key(|point| point.hash);
        Self { points, servers }
    }

    /// The index of the first point at or behind this hash; that of the end is the first point too.
    fn find(&self, hash: u32) -> usize {
        self.points.partition_point(|point| point.hash < hash)
    }
}

/// Each candidate is the server of a point; of its addresses, round robin chooses.
pub(super) fn pick(turn: &mut Turn<'_>, probes: &mut Probes, key: &[u8]) -> Option<usize> {
    let ring = &turn.candidates.ring;
    while !probes.are_over() && !ring.points.is_empty() {
        let at = match probes.hash {
            Some(at) => at,
            None => u32::try_from(ring.find(Crc32::default().update(key).value())).ok()?,
        };
        probes.hash = Some(at);
        let server = ring.points[at as usize % ring.points.len()].server;
        let found = round_robin::pick(turn, |index, _| ring.servers[index] == server);
        if found.is_some() {
            return found;
        }
        probes.hash = Some(at + 1);
        probes.count += 1;
    }
    turn.round_robin()
}

/// nginx's points of a server: each is the hash of the host, a zero byte, the port and the point before.
fn hashes(name: &[u8]) -> impl Iterator<Item = u32> {
    let (host, port) = host_and_port(name);
    let base = Crc32::default().update(host).update(b"\0").update(port);
    let next = move |before: u32| base.update(&before.to_le_bytes()).value();
    std::iter::successors(Some(next(0)), move |before| Some(next(*before)))
}

/// The port is what stands behind the last colon, if it is made of digits.
fn host_and_port(name: &[u8]) -> (&[u8], &[u8]) {
    if name
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"unix:"))
    {
        return (&name[5..], b"");
    }
    let digits = name
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    match name[..name.len() - digits].split_last() {
        Some((b':', host)) => (host, &name[name.len() - digits..]),
        _ => (name, b""),
    }
}

/// nginx's number.
const POINTS_PER_WEIGHT: usize = 160;

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn the_port_of_a_name_is_what_nginx_takes_for_it() {
        let check = |name: &str, host: &str, port: &str| {
            let expected = (host.as_bytes(), port.as_bytes());
            assert_eq!(host_and_port(name.as_bytes()), expected, "{name}");
        };
        check("127.0.0.1:8080", "127.0.0.1", "8080");
        check("backend", "backend", "");
        check("10.0.0.1", "10.0.0.1", "");
        check("[::1]:80", "[::1]", "80");
        check("[::1]", "[::1]", "");
        check("Unix:/run/a:1", "/run/a:1", "");
        check("123", "123", "");
    }
}
