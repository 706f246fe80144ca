//! How large packets to a target may be, as far as routers have said (RFC 1191, RFC 8201).

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use mill_tcp::time::{Duration, Instant};

/// What is known of the paths to targets: only of those that carry less than the link.
#[derive(Debug)]
pub struct PathMtus {
    link_mtu: u16,
    paths: BTreeMap<IpAddr, Path>,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    mtu: u16,
    since: Instant,
}

impl PathMtus {
    pub const fn new(link_mtu: u16) -> Self {
        Self {
            link_mtu,
            paths: BTreeMap::new(),
        }
    }

    /// The link carries more or less now.
    pub const fn set_link_mtu(&mut self, mtu: u16) {
        self.link_mtu = mtu;
    }

    /// Bytes of the largest packet to `target`.
    pub fn path_mtu(&self, target: IpAddr, now: Instant) -> u16 {
        self.paths
            .get(&target)
            .filter(|path| now.since(path.since) < LIFETIME)
            .map_or(self.link_mtu, |path| path.mtu.min(self.link_mtu))
    }

    /// A router said that packets to `target` may have `mtu` bytes; whoever calls has checked that it speaks of a packet
    /// of ours (RFC 5927 7). Says how many they may have now, if that is less than before.
    pub fn on_packet_too_big(&mut self, target: IpAddr, mtu: u32, now: Instant) -> Option<u16> {
        let before = self.path_mtu(target, now);
        let mtu = match target {
            // Less than what Linux takes is an attack, or a link that cannot be served well.
            IpAddr::V4(_) => mtu.max(MTU_MIN_V4.into()),
            // RFC 8201 4: less than every link carries is no news.
            IpAddr::V6(_) if mtu < u32::from(mill_wire::ipv6::MTU_MIN) => return None,
            IpAddr::V6(_) => mtu,
        };
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        if mtu >= before {
            return None;
        }
        if self.paths.len() >= COUNT_MAX && !self.paths.contains_key(&target) {
            self.forget_oldest();
        }
        self.paths.insert(target, Path { mtu, since: now });
        debug_assert!(self.paths.len() <= COUNT_MAX);
        Some(mtu)
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .paths
            .iter()
            .min_by_key(|(_, path)| path.since)
            .map(|(target, _)| *target);
        if let Some(oldest) = oldest {
            self.paths.remove(&oldest);
        }
    }
}

/// RFC 1191 7.1: what a router means that names no size: the next usual one below that of the packet.
pub fn plateau_below(total_len: u16) -> u16 {
    PLATEAUS
        .into_iter()
        .find(|plateau| *plateau < total_len)
        .unwrap_or(MTU_MIN_V4)
}

/// RFC 1191 6.3, RFC 8201 4: afterwards larger packets are tried again.
const LIFETIME: Duration = Duration::from_secs(600);

/// Bytes; as `net.ipv4.route.min_pmtu` of Linux.
const MTU_MIN_V4: u16 = 552;

/// Paths remembered; beyond, the oldest is forgotten, and found again if it matters.
const COUNT_MAX: usize = 1024;

/// RFC 1191 7.1, table 7-1, as far as it is above the minimum, and tunnels over Ethernet.
const PLATEAUS: [u16; 8] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1280, 1006];

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    #[test]
    fn a_path_carries_less_for_ten_minutes() {
        let target = "10.0.0.1".parse().unwrap();
        let mut paths = PathMtus::new(1500);
        assert_eq!(paths.path_mtu(target, at(0)), 1500);
        assert_eq!(paths.on_packet_too_big(target, 1400, at(1)), Some(1400));
        assert_eq!(paths.path_mtu(target, at(600)), 1400);
        assert_eq!(paths.path_mtu(target, at(601)), 1500);
        assert_eq!(paths.path_mtu("10.0.0.2".parse().unwrap(), at(1)), 1500);
    }

    #[test]
    fn a_path_does_not_grow_because_somebody_says_so() {
        let target = "10.0.0.1".parse().unwrap();
        let mut paths = PathMtus::new(1500);
        for (mtu, expected) in [
            (1500, None),
            (u32::MAX, None),
            (1499, Some(1499)),
            (1499, None),
            (1500, None),
            (1000, Some(1000)),
        ] {
            let found = paths.on_packet_too_big(target, mtu, at(1));
            assert_eq!(found, expected, "{mtu}");
        }
    }

    #[test]
    fn no_path_carries_less_than_the_minimum_of_its_family() {
        let mut paths = PathMtus::new(1500);
        for (target, mtu, expected) in [
            ("10.0.0.1", 553, 553),
            ("10.0.0.1", 552, 552),
            ("10.0.0.2", 551, 552),
            ("10.0.0.3", 0, 552),
            ("fd00::1", 1281, 1281),
            ("fd00::1", 1280, 1280),
            ("fd00::2", 1279, 1500),
        ] {
            let target = target.parse().unwrap();
            paths.on_packet_too_big(target, mtu, at(1));
            assert_eq!(paths.path_mtu(target, at(1)), expected, "{target} {mtu}");
        }
        // A link that carries no more than the minimum has no smaller paths.
        let mut small = PathMtus::new(1280);
        assert_eq!(
            small.on_packet_too_big("fd00::1".parse().unwrap(), 1000, at(1)),
            None
        );
    }

    #[test]
    fn paths_are_bounded_and_the_oldest_goes_first() {
        let mut paths = PathMtus::new(1500);
        let target = |number: u32| IpAddr::V4(core::net::Ipv4Addr::from_bits(number));
        for number in 0..1025 {
            paths.on_packet_too_big(target(number), 1000, at(u64::from(number)).min(at(500)));
        }
        assert_eq!(paths.paths.len(), COUNT_MAX);
        assert_eq!(paths.path_mtu(target(0), at(500)), 1500);
        assert_eq!(paths.path_mtu(target(1), at(500)), 1000);
    }

    #[test]
    fn a_router_without_a_size_means_the_next_usual_one() {
        for (total_len, expected) in [
            (9000, 8166),
            (1500, 1492),
            (1492, 1280),
            (1006, 552),
            (1007, 1006),
            (0, 552),
            (u16::MAX, 32_000),
        ] {
            assert_eq!(plateau_below(total_len), expected, "{total_len}");
        }
    }
}
