//! Ports for active opens (RFC 6056 3.3.3): the first port to try depends on a secret hash of the target, and a
//! counter moves on from there, so that ports are reused late and those of another target cannot be predicted.

use crate::flow::Flow;
use crate::siphash::Key;
use alloc::boxed::Box;
use core::ops::RangeInclusive;
use mill_tcp::time::Instant;

/// Which ports there are, and how many were given.
#[derive(Debug)]
pub(crate) struct Ports {
    first: u16,
    count: u32,
    /// RFC 6056 3.3.4: one counter for all targets would tell one of them how many connections go to others.
    next: [u32; COUNTERS],
    /// Targets for which no port was left, without and with those that can be taken over, and when that was: one for
    /// each counter, so that a client with many source addresses does not look through all ports of one of them since
    /// another one was the last to have none.
    exhausted: Box<[[Option<Exhausted>; 2]; COUNTERS]>,
}

/// Nothing has changed for a target since no port was left for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exhausted {
    target_hash: u64,
    vacated: u64,
    /// Ports can be taken over once they have waited long enough.
    second: u64,
}

/// How far the search for one port has come.
#[derive(Debug)]
pub(crate) struct Search {
    /// What is true if it finds nothing.
    exhausted: Exhausted,
    may_take_over: bool,
    /// Ports not tried yet.
    left: u32,
}

impl Ports {
    pub(crate) fn new(range: RangeInclusive<u16>) -> Self {
        let (first, last) = (*range.start(), *range.end());
        Self {
            first,
            count: u32::from(last).saturating_sub(u32::from(first)) + u32::from(first <= last),
            next: [0; COUNTERS],
            exhausted: Box::new([[None; 2]; COUNTERS]),
        }
    }

    /// A port for `flow`, whose own is not known yet, that `is_vacant` accepts.
    #[cfg(test)]
    fn choose(
        &mut self,
        flow: &Flow,
        key: Key,
        may_take_over: bool,
        vacated: u64,
        now: Instant,
        mut is_vacant: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let mut search = self.search(flow, key, may_take_over, vacated, now)?;
        core::iter::from_fn(|| self.next(&mut search)).find(|port| is_vacant(*port))
    }

    /// Begins to look for a port for `flow`, whose own is not known yet; `None` if there is none, as was found out
    /// before. Constant on average; when there is none, all are looked at, but only once until a flow ends or a
    /// second passes. `vacated` flows have ended so far.
    pub(crate) fn search(
        &self,
        flow: &Flow,
        key: Key,
        may_take_over: bool,
        vacated: u64,
        now: Instant,
    ) -> Option<Search> {
        let without_port = Flow {
            local_port: 0,
            ..*flow
        };
        let hash = without_port.secret_hash(key, 0);
        let exhausted = Exhausted {
            target_hash: hash,
            vacated,
            second: if may_take_over {
                now.as_millis() / 1000
            } else {
                0
            },
        };
        let known = self.exhausted.get(counter_of(hash))?;
        let known = known.get(usize::from(may_take_over))?;
        (*known != Some(exhausted)).then_some(Search {
            exhausted,
            may_take_over,
            left: self.count,
        })
    }

    /// The next port to try; `None` after the last one, which is remembered.
    pub(crate) fn next(&mut self, search: &mut Search) -> Option<u16> {
        let hash = search.exhausted.target_hash;
        let Some(left) = search.left.checked_sub(1) else {
            let known = self.exhausted.get_mut(counter_of(hash))?;
            let known = known.get_mut(usize::from(search.may_take_over))?;
            *known = Some(search.exhausted);
            return None;
        };
        search.left = left;
        let counter = self.next.get_mut(counter_of(hash))?;
        let offset = (hash & u64::from(u32::MAX)) + u64::from(*counter);
        *counter = counter.wrapping_add(1);
        let offset = u16::try_from(offset % u64::from(self.count)).ok()?;
        Some(self.first + offset)
    }
}

/// The counter of a target.
const fn counter_of(target_hash: u64) -> usize {
    (target_hash >> 32) as usize % COUNTERS
}

/// RFC 6056 3.3.4 has a table of counters; more of them hide more.
const COUNTERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    const KEY: Key = Key::new([5; 16]);
    const NOW: Instant = Instant::from_nanos(0);

    fn flow(remote: &str) -> Flow {
        Flow::new("10.0.0.1:0".parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn every_port_is_given_once_and_then_none_until_one_is_vacant() {
        let mut ports = Ports::new(1000..=1099);
        let target = flow("10.0.0.2:80");
        let mut used = BTreeSet::new();
        for _ in 0..100 {
            let port = ports
                .choose(&target, KEY, false, 0, NOW, |port| !used.contains(&port))
                .unwrap();
            assert!((1000..=1099).contains(&port) && used.insert(port));
        }
        let mut asked = 0;
        for _ in 0..10 {
            assert_eq!(
                ports.choose(&target, KEY, false, 0, NOW, |_| {
                    asked += 1;
                    false
                }),
                None
            );
        }
        assert_eq!(asked, 100);
        assert_eq!(
            ports.choose(&target, KEY, false, 1, NOW, |port| port == 1050),
            Some(1050)
        );
    }

    #[test]
    fn many_sources_without_a_port_are_looked_through_once_each() {
        let mut ports = Ports::new(1000..=1099);
        let sources = ["10.0.0.1:0", "10.0.0.3:0", "10.0.0.4:0", "10.0.0.5:0"];
        let mut asked = 0;
        for _ in 0..10 {
            for source in sources {
                let flow = Flow::new(source.parse().unwrap(), "10.0.0.2:80".parse().unwrap());
                let found = ports.choose(&flow, KEY, false, 0, NOW, |_| {
                    asked += 1;
                    false
                });
                assert_eq!(found, None);
            }
        }
        // Their counters differ with this key.
        assert_eq!(asked, 400);
    }

    #[test]
    fn targets_begin_at_places_of_their_own_and_go_on_one_by_one() {
        let mut ports = Ports::new(32768..=60999);
        let firsts: BTreeSet<u16> = (1..=50)
            .map(|port| {
                let target = Flow {
                    remote_port: port,
                    ..flow("10.0.0.2:80")
                };
                ports.choose(&target, KEY, false, 0, NOW, |_| true).unwrap()
            })
            .collect();
        assert!(firsts.len() > 45);
        let target = flow("10.0.0.3:80");
        let port = ports.choose(&target, KEY, false, 0, NOW, |_| true).unwrap();
        let next = ports.choose(&target, KEY, false, 0, NOW, |_| true).unwrap();
        assert!(next == port + 1 || next == 32768);
    }

    #[test]
    fn a_range_without_ports_gives_none_and_one_with_all_ports_gives_any() {
        #[expect(clippy::reversed_empty_ranges, reason = "this is the case")]
        let mut none = Ports::new(2..=1);
        assert_eq!(
            none.choose(&flow("10.0.0.2:80"), KEY, false, 0, NOW, |_| true),
            None
        );
        let mut all = Ports::new(0..=u16::MAX);
        assert_eq!(
            all.choose(&flow("10.0.0.2:80"), KEY, false, 0, NOW, |port| port
                == u16::MAX),
            Some(u16::MAX)
        );
    }
}
