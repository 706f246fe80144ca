//! Pairs that stay loaded between handshakes (`ssl_certificate_cache`): found by what their names came to, at most `max` of
//! them, ordered by their last use.

use super::PairNames;
use mill_config::config::settings::CertificateCache;
use mill_runtime::files::Metadata;
use mill_runtime::time::{Instant, UnixTime};
use mill_tls::certificate::Certified;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Kept {
    setting: CertificateCache,
    entries: BTreeMap<Arc<PairNames>, Entry>,
    /// Names by the number of their last use.
    uses: BTreeMap<u64, Arc<PairNames>>,
    use_last: u64,
}

struct Entry {
    certified: Certified,
    marks: [Mark; 2],
    /// Until then nothing is asked about its files.
    valid_until: Instant,
    used: Instant,
    /// Its place in `uses`.
    use_number: u64,
}

/// A pair that was found.
pub(super) struct Found {
    pub(super) certified: Certified,
    /// Its files may have become other ones: what they were.
    pub(super) in_doubt: Option<[Mark; 2]>,
}

/// By what a file is told from a later one of the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    file: (u64, u64),
    len: u64,
    modified: UnixTime,
}

impl Mark {
    pub(super) const fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.device, metadata.inode),
            len: metadata.len,
            modified: metadata.modified,
        }
    }
}

impl Kept {
    pub(super) const fn new(setting: CertificateCache) -> Self {
        Self {
            setting,
            entries: BTreeMap::new(),
            uses: BTreeMap::new(),
            use_last: 0,
        }
    }

    /// Counts as a use.
    pub(super) fn find(&mut self, names: &PairNames, now: Instant) -> Option<Found> {
        self.remove_inactive(now);
        self.use_last += 1;
        let entry = self.entries.get_mut(names)?;
        let place = self.uses.remove(&entry.use_number)?;
        entry.use_number = self.use_last;
        entry.used = now;
        self.uses.insert(self.use_last, place);
        Some(Found {
            certified: entry.certified.clone(),
            in_doubt: (entry.valid_until <= now).then_some(entry.marks),
        })
    }

    /// Its files are still the ones that were read.
    pub(super) fn confirm(&mut self, names: &PairNames, now: Instant) {
        if let Some(entry) = self.entries.get_mut(names) {
            entry.valid_until = now + self.setting.valid;
        }
    }

    pub(super) fn insert(
        &mut self,
        names: PairNames,
        certified: Certified,
        marks: [Mark; 2],
        now: Instant,
    ) {
        self.use_last += 1;
        let names = Arc::new(names);
        let entry = Entry {
            certified,
            marks,
            valid_until: now + self.setting.valid,
            used: now,
            use_number: self.use_last,
        };
        if let Some(replaced) = self.entries.insert(Arc::clone(&names), entry) {
            self.uses.remove(&replaced.use_number);
        }
        self.uses.insert(self.use_last, names);
        while self.entries.len() as u64 > self.setting.max {
            self.remove_oldest();
        }
    }

    /// At most two with each use, as with nginx: the work of one handshake is bounded, and at most one is added by it.
    fn remove_inactive(&mut self, now: Instant) {
        for _ in 0..2 {
            let oldest = self.uses.first_key_value();
            let entry = oldest.and_then(|(_, names)| self.entries.get(names));
            if entry.is_none_or(|entry| entry.used + self.setting.inactive > now) {
                return;
            }
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        if let Some((_, names)) = self.uses.pop_first() {
            self.entries.remove(&names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;
    use mill_config::Text;
    use mill_runtime::time::Duration;

    const MARK: Mark = Mark {
        file: (1, 2),
        len: 3,
        modified: UnixTime::from_seconds(4),
    };

    fn names(name: &str) -> PairNames {
        let source = Source::Path(Text::from(name));
        PairNames {
            certificate: source.clone(),
            key: source,
        }
    }

    fn certified() -> Certified {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![String::from("a.example")]).unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let key = key.serialize_pem();
        mill_tls::certificate::load(certificate.as_bytes(), key.as_bytes(), []).unwrap()
    }

    fn kept(max: u64) -> Kept {
        Kept::new(CertificateCache {
            max,
            inactive: Duration::from_secs(10),
            valid: Duration::from_secs(60),
        })
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_pair_that_was_not_used_for_longest_makes_room() {
        let mut kept = kept(2);
        let certified = certified();
        kept.insert(names("a"), certified.clone(), [MARK; 2], at(0));
        kept.insert(names("b"), certified.clone(), [MARK; 2], at(0));
        assert!(kept.find(&names("a"), at(1)).is_some());
        kept.insert(names("c"), certified, [MARK; 2], at(1));
        let found = ["a", "b", "c"].map(|name| kept.find(&names(name), at(1)).is_some());
        assert_eq!(found, [true, false, true]);
        assert_eq!((kept.entries.len(), kept.uses.len()), (2, 2));
    }

    #[test]
    fn a_pair_that_is_not_used_for_so_long_is_removed() {
        let mut kept = kept(9);
        kept.insert(names("a"), certified(), [MARK; 2], at(0));
        assert!(kept.find(&names("a"), at(9)).is_some());
        assert!(kept.find(&names("a"), at(18)).is_some());
        assert!(kept.find(&names("a"), at(28)).is_none());
        assert!(kept.uses.is_empty());
    }

    #[test]
    fn after_its_time_a_pair_is_in_doubt_until_it_is_confirmed() {
        let mut kept = kept(9);
        kept.insert(names("a"), certified(), [MARK; 2], at(0));
        let mut is_in_doubt = |seconds| {
            let found = kept.find(&names("a"), at(seconds)).unwrap();
            let is_in_doubt = found.in_doubt == Some([MARK; 2]);
            if is_in_doubt {
                kept.confirm(&names("a"), at(seconds));
            }
            is_in_doubt
        };
        let seconds = (0..130).step_by(5);
        let found: Vec<u64> = seconds.filter(|at| is_in_doubt(*at)).collect();
        assert_eq!(found, [60, 120]);
    }

    #[test]
    fn a_pair_that_comes_again_replaces_the_first_one() {
        let mut kept = kept(9);
        kept.insert(names("a"), certified(), [MARK; 2], at(0));
        kept.insert(names("a"), certified(), [MARK; 2], at(1));
        assert_eq!((kept.entries.len(), kept.uses.len()), (1, 1));
    }
}
