//! The path MTU of targets, as reported by routers (RFC 1191, RFC 8201) or found by connections where none reports it
//! (RFC 4821).

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use mill_tcp::time::{Duration, Instant};
use search::Search;

/// Between what passes and what does not.
mod search;

/// Paths to targets: only of those that carry less than the link.
#[derive(Debug)]
pub struct PathMtus {
    link_mtu: u16,
    paths: BTreeMap<IpAddr, Path>,
    paths_max: usize,
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    mtu: u16,
    since: Instant,
    /// Of a path whose routers send no errors.
    search: Option<Search>,
}

impl Path {
    /// A router reports it again where it still holds, with little loss; where it was found by timeouts, larger
    /// packets are probed carefully.
    fn is_valid(&self, now: Instant) -> bool {
        let lifetime = match self.search {
            None => LIFETIME,
            Some(_) => LIFETIME_FOUND,
        };
        now.since(self.since) < lifetime
    }
}

impl PathMtus {
    /// At most `paths_max` are kept; beyond, the oldest is dropped, and found again if it matters.
    pub const fn new(link_mtu: u16, paths_max: usize) -> Self {
        Self {
            link_mtu,
            paths: BTreeMap::new(),
            paths_max,
            forgotten: 0,
        }
    }

    /// The link carries more or less now.
    pub const fn set_link_mtu(&mut self, mtu: u16) {
        self.link_mtu = mtu;
    }

    /// Whether every path carries what the link does, as far as is known.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Paths kept.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Paths that were dropped because there were too many.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Bytes of the largest packet to `target`.
    pub fn path_mtu(&self, target: IpAddr, now: Instant) -> u16 {
        self.paths
            .get(&target)
            .filter(|path| path.is_valid(now))
            .map_or(self.link_mtu, |path| path.mtu.min(self.link_mtu))
    }

    /// A router reports that packets to `target` may have `mtu` bytes; the caller has checked that the message is
    /// about a packet of ours (RFC 5927 7). Returns how many they may have now, if that is less than before.
    pub fn on_packet_too_big(&mut self, target: IpAddr, mtu: u32, now: Instant) -> Option<u16> {
        let before = self.path_mtu(target, now);
        let mtu = match target {
            // Less than what Linux takes is an attack, or a link that cannot be served well.
            IpAddr::V4(_) => mtu.max(MTU_MIN_V4.into()),
            // RFC 8201 4: a value below the minimum that every link carries is ignored.
            IpAddr::V6(_) if mtu < u32::from(mill_wire::ipv6::MTU_MIN) => return None,
            IpAddr::V6(_) => mtu,
        };
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
        if mtu >= before {
            return None;
        }
        self.remember(target, mtu, None, now);
        Some(mtu)
    }

    /// Packets of `lost` bytes do not arrive at `target`, those of `arrived` do, and no router reports it.
    pub fn on_black_hole(&mut self, target: IpAddr, arrived: u16, lost: u16, now: Instant) {
        if arrived < self.path_mtu(target, now) {
            let search = Search::between(lost.min(self.link_mtu), now);
            self.remember(target, arrived, Some(search), now);
        }
    }

    /// The size to probe next, if it is time for that.
    pub fn next_probe(&self, target: IpAddr, now: Instant) -> Option<u16> {
        let path = self.paths.get(&target).filter(|path| path.is_valid(now))?;
        path.search?.next(path.mtu, now)
    }

    /// The probe leaves: other connections wait for its result.
    pub fn note_probe(&mut self, target: IpAddr, now: Instant) {
        if let Some(search) = self.search_of(target) {
            search.note_probe(now);
        }
    }

    /// A packet of so many bytes has arrived at `target`, or has not.
    pub fn on_probe(&mut self, target: IpAddr, mtu: u16, has_arrived: bool, now: Instant) {
        let link_mtu = self.link_mtu;
        let Some(path) = self.paths.get_mut(&target) else {
            return;
        };
        let Some(search) = &mut path.search else {
            return;
        };
        if has_arrived {
            path.mtu = path.mtu.max(mtu);
        }
        if search.on_probe(path.mtu, mtu, has_arrived, link_mtu, now) {
            path.since = now;
        }
        if path.mtu >= link_mtu {
            self.paths.remove(&target);
        }
    }

    fn search_of(&mut self, target: IpAddr) -> Option<&mut Search> {
        self.paths.get_mut(&target)?.search.as_mut()
    }

    fn remember(&mut self, target: IpAddr, mtu: u16, search: Option<Search>, now: Instant) {
        if self.paths.len() >= self.paths_max && !self.paths.contains_key(&target) {
            self.forget_oldest();
        }
        let since = now;
        self.paths.insert(target, Path { mtu, since, search });
        debug_assert!(self.paths.len() <= self.paths_max.max(1));
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .paths
            .iter()
            .min_by_key(|(_, path)| path.since)
            .map(|(target, _)| *target);
        if let Some(oldest) = oldest {
            self.paths.remove(&oldest);
            self.forgotten += 1;
        }
    }
}

/// RFC 1191 7.1: if a router names no size, the next usual one below that of the packet.
pub fn plateau_below(total_len: u16) -> u16 {
    PLATEAUS
        .into_iter()
        .find(|plateau| *plateau < total_len)
        .unwrap_or(MTU_MIN_V4)
}

/// RFC 1191 6.3, RFC 8201 4: after this time larger packets are tried again. Linux's `mtu_expires`.
const LIFETIME: Duration = Duration::from_secs(600);

/// How long a size that was found without routers is kept, if no packet has confirmed it: a connection after that
/// pays for two timeouts.
const LIFETIME_FOUND: Duration = Duration::from_secs(3600);

/// Bytes; as `net.ipv4.route.min_pmtu` of Linux.
const MTU_MIN_V4: u16 = 552;

/// RFC 1191 7.1, table 7-1, as far as it is above the minimum, and tunnels over Ethernet.
const PLATEAUS: [u16; 8] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1280, 1006];

#[cfg(test)]
mod tests;
