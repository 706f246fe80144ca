//! The names of one worker whose addresses are known.

use super::addresses::Addresses;
use super::host_name::HostName;
use mill_runtime::time::Instant;
use std::collections::BTreeMap;

/// Answers until their time to live ends, bounded in number and in bytes. Names that do not exist are not kept: nginx
/// asks for them again each time.
#[derive(Debug)]
pub(super) struct Cache {
    entries: BTreeMap<Box<[u8]>, Entry>,
    bytes: usize,
    limits: Limits,
}

/// How much a cache keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) names_max: usize,
    pub(super) bytes_max: usize,
}

#[derive(Debug)]
struct Entry {
    addresses: Addresses,
    used: Instant,
}

impl Cache {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            entries: BTreeMap::new(),
            bytes: 0,
            limits,
        }
    }

    /// The addresses of a name, if they still hold. Allocates nothing.
    pub(super) fn find(&mut self, name: &HostName, now: Instant) -> Option<Addresses> {
        let entry = self.entries.get_mut(name.as_bytes())?;
        if now >= entry.addresses.valid_until() {
            return None;
        }
        entry.used = now;
        Some(entry.addresses.clone())
    }

    /// Keeps an answer; others make room for it, first those that no longer hold, then those least recently used.
    pub(super) fn insert(&mut self, name: &HostName, addresses: Addresses, now: Instant) {
        self.remove(name.as_bytes());
        let size = size_bytes(name.as_bytes(), &addresses);
        if addresses.valid_until() <= now || size > self.limits.bytes_max {
            return;
        }
        while self.entries.len() >= self.limits.names_max
            || self.bytes + size > self.limits.bytes_max
        {
            let Some(name) = self.dispensable(now) else {
                return;
            };
            self.remove(&name);
        }
        self.bytes += size;
        let entry = Entry {
            addresses,
            used: now,
        };
        self.entries.insert(name.as_bytes().into(), entry);
    }

    pub(super) fn names(&self) -> usize {
        self.entries.len()
    }

    fn dispensable(&self, now: Instant) -> Option<Box<[u8]>> {
        let rank = |entry: &Entry| (now < entry.addresses.valid_until(), entry.used);
        let least = self.entries.iter().min_by_key(|(_, entry)| rank(entry));
        least.map(|(name, _)| name.clone())
    }

    fn remove(&mut self, name: &[u8]) {
        if let Some(entry) = self.entries.remove(name) {
            self.bytes -= size_bytes(name, &entry.addresses);
        }
    }
}

/// What an entry takes, without the map's own nodes.
fn size_bytes(name: &[u8], addresses: &Addresses) -> usize {
    name.len() + size_of::<Entry>() + size_of_val(addresses.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::rc::Rc;

    const ROOMY: Limits = Limits {
        names_max: 3,
        bytes_max: 100_000,
    };

    fn name(text: &str) -> HostName {
        HostName::parse(text.as_bytes()).unwrap()
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn addresses(count: usize, valid_until: u64) -> Addresses {
        let all: Rc<[IpAddr]> = vec![[10, 0, 0, 1].into(); count].into();
        Addresses::new(all, at(valid_until))
    }

    /// The names that still hold at `now`, without using them later than that.
    fn held(cache: &mut Cache, now: u64, names: &[&'static str]) -> Vec<&'static str> {
        let mut names = names.to_vec();
        names.retain(|text| cache.find(&name(text), at(now)).is_some());
        names
    }

    #[test]
    fn an_answer_holds_until_its_end_and_not_at_it() {
        let mut cache = Cache::new(ROOMY);
        cache.insert(&name("a"), addresses(1, 10), at(5));
        assert!(cache.find(&name("a"), at(9)).is_some());
        assert!(cache.find(&name("b"), at(9)).is_none());
        assert!(cache.find(&name("a"), at(10)).is_none());
    }

    #[test]
    fn an_answer_that_does_not_hold_at_all_is_not_kept_and_ends_the_former_one() {
        let mut cache = Cache::new(ROOMY);
        cache.insert(&name("a"), addresses(1, 10), at(5));
        cache.insert(&name("a"), addresses(1, 5), at(5));
        assert_eq!((cache.names(), cache.bytes), (0, 0));
    }

    #[test]
    fn expired_answers_make_room_before_those_least_recently_used() {
        let mut cache = Cache::new(ROOMY);
        cache.insert(&name("long"), addresses(1, 100), at(0));
        cache.insert(&name("short"), addresses(1, 10), at(1));
        cache.insert(&name("other"), addresses(1, 100), at(2));
        assert!(cache.find(&name("short"), at(9)).is_some());
        cache.insert(&name("new"), addresses(1, 100), at(10));
        let all = ["long", "short", "other", "new"];
        assert_eq!(held(&mut cache, 10, &all), ["long", "other", "new"]);
        // Now all three hold, and were used at the same time but one.
        assert!(cache.find(&name("long"), at(11)).is_some());
        assert!(cache.find(&name("new"), at(11)).is_some());
        cache.insert(&name("newer"), addresses(1, 100), at(12));
        let all = ["long", "other", "new", "newer"];
        assert_eq!(held(&mut cache, 12, &all), ["long", "new", "newer"]);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut cache = Cache::new(Limits {
            bytes_max: 2 * size_bytes(b"a", &addresses(10, 0)),
            ..ROOMY
        });
        cache.insert(&name("a"), addresses(10, 100), at(0));
        cache.insert(&name("b"), addresses(10, 100), at(1));
        assert_eq!(cache.names(), 2);
        cache.insert(&name("c"), addresses(1, 100), at(2));
        assert_eq!(held(&mut cache, 2, &["a", "b", "c"]), ["b", "c"]);
        cache.insert(&name("d"), addresses(1000, 100), at(3));
        assert_eq!(held(&mut cache, 3, &["b", "c", "d"]), ["b", "c"]);
        let sum = size_bytes(b"b", &addresses(10, 0)) + size_bytes(b"c", &addresses(1, 0));
        assert_eq!(cache.bytes, sum);
    }
}
