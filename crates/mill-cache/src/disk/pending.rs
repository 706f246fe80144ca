//! Purges that are in effect for files, and not carried out: each is a file of its own until it is.

use std::collections::{BTreeMap, BTreeSet};

use super::host_of_key::is_of_host;
use super::name::DiskName;
use super::record::{Damage, Reading};

/// Purges that may wait at once; one more is to be made one of all objects.
pub const PURGES_MAX: usize = 16 * 1024;

/// Prefixes and hosts among them, since each file's key is compared with all.
const TEXTS_MAX: usize = 256;

const MAGIC: [u8; 8] = *b"MILLPRG\n";

/// What is purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskPurge {
    All,
    /// The key with this hash ([`DiskName::hash_of`]).
    Key(u64),
    /// Keys that begin so.
    Prefix(Box<[u8]>),
    /// Keys that name this host ([`is_of_host`]).
    Host(Box<[u8]>),
    Tag(Box<[u8]>),
}

impl DiskPurge {
    /// The content of its file.
    pub fn emit(&self) -> Vec<u8> {
        let (kind, text): (u32, &[u8]) = match self {
            Self::All => (0, &[]),
            Self::Key(hash) => (1, &hash.to_le_bytes()),
            Self::Prefix(prefix) => (2, prefix),
            Self::Tag(tag) => (3, tag),
            Self::Host(host) => (4, host),
        };
        let mut file = [&MAGIC, &kind.to_le_bytes()[..], text].concat();
        let sum = crc32fast::hash(&file);
        file.extend_from_slice(&sum.to_le_bytes());
        file
    }

    /// Whether a text in it names the key.
    fn names(&self, key: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Host(host) => is_of_host(key, host),
            Self::All | Self::Key(_) | Self::Tag(_) => false,
        }
    }

    /// Of the content of a file.
    ///
    /// # Errors
    /// If it is not what was written.
    pub fn parse(file: &[u8]) -> Result<Self, Damage> {
        let (body, sum) = file
            .split_at_checked(file.len().wrapping_sub(4))
            .ok_or(Damage::Length)?;
        if Reading(sum).u32()? != crc32fast::hash(body) {
            return Err(Damage::Checksum);
        }
        let mut reading = Reading(body);
        if reading.take(MAGIC.len())? != MAGIC {
            return Err(Damage::Foreign);
        }
        match reading.u32()? {
            0 => Ok(Self::All),
            1 => Ok(Self::Key(reading.u64()?)),
            2 => Ok(Self::Prefix(reading.0.into())),
            3 => Ok(Self::Tag(reading.0.into())),
            4 => Ok(Self::Host(reading.0.into())),
            _ => Err(Damage::Version),
        }
    }
}

/// The purges of a folder that are not carried out, by what they concern; of each the last number.
#[derive(Clone, Debug, Default)]
pub struct DiskPurges {
    all: u64,
    keys: BTreeMap<u64, u64>,
    tags: BTreeMap<Box<[u8]>, u64>,
    /// By prefix and host.
    texts: Vec<(u64, DiskPurge)>,
    /// Those that have files.
    numbers: BTreeSet<u64>,
}

impl DiskPurges {
    /// Notes a purge under its number; false, and nothing is noted, if there are too many.
    #[must_use]
    pub fn note(&mut self, number: u64, purge: DiskPurge) -> bool {
        let is_all = purge == DiskPurge::All;
        if !is_all && self.numbers.len() >= PURGES_MAX {
            return false;
        }
        match purge {
            DiskPurge::All => self.all = self.all.max(number),
            DiskPurge::Key(hash) => later(self.keys.entry(hash).or_default(), number),
            DiskPurge::Tag(tag) => later(self.tags.entry(tag).or_default(), number),
            DiskPurge::Prefix(_) | DiskPurge::Host(_) if self.texts.len() >= TEXTS_MAX => {
                return false;
            }
            DiskPurge::Prefix(_) | DiskPurge::Host(_) => self.texts.push((number, purge)),
        }
        self.numbers.insert(number);
        true
    }

    /// Whether a purge that came after this file concerns it, as far as its name tells; `None` if its key and tags are
    /// needed to know.
    pub fn concerns_name(&self, name: &DiskName) -> Option<bool> {
        let by_key = self.keys.get(&name.hash).copied().unwrap_or(0);
        if name.number < self.all.max(by_key) {
            return Some(true);
        }
        let tags = if name.has_tags {
            self.tags.values().max()
        } else {
            None
        };
        let texts = self.texts.iter().map(|(number, _)| number).max();
        let last = tags.max(texts).copied().unwrap_or(0);
        (name.number > last).then_some(false)
    }

    /// Whether a purge that came after this file concerns it.
    pub fn concerns(&self, name: &DiskName, key: &[u8], tags: &[&[u8]]) -> bool {
        self.concerns_name(name).unwrap_or_else(|| {
            let mut tags = tags.iter().filter_map(|tag| self.tags.get(*tag));
            let mut texts = self.texts.iter();
            tags.any(|number| name.number < *number)
                || texts.any(|(number, purge)| name.number < *number && purge.names(key))
        })
    }

    /// The number of the last one; 0 of none.
    pub fn last(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }

    /// Whether one with this number is noted.
    pub fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// No file is left that purges up to this one concern: returns their numbers.
    pub fn settle(&mut self, last: u64) -> Vec<u64> {
        self.keys.retain(|_, number| *number > last);
        self.tags.retain(|_, number| *number > last);
        self.texts.retain(|(number, _)| *number > last);
        if self.all <= last {
            self.all = 0;
        }
        let later = self.numbers.split_off(&(last.saturating_add(1)));
        let settled = std::mem::replace(&mut self.numbers, later);
        settled.into_iter().collect()
    }
}

fn later(known: &mut u64, number: u64) {
    *known = number.max(*known);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64, has_tags: bool) -> DiskName {
        DiskName {
            hash: DiskName::hash_of(b"http://a/b"),
            variant: 0,
            number,
            has_tags,
        }
    }

    fn concerns(purges: &DiskPurges, number: u64) -> bool {
        purges.concerns(&name(number, true), b"http://a/b", &[b"red", b"green"])
    }

    #[test]
    fn purges_concern_what_was_there_before_them() {
        let check = |purge: DiskPurge, expected: bool| {
            let mut purges = DiskPurges::default();
            assert!(purges.note(10, purge.clone()));
            assert_eq!(concerns(&purges, 9), expected, "{purge:?}");
            assert!(!concerns(&purges, 11), "{purge:?}");
            assert_eq!(purges.settle(10), [10]);
            assert!(!concerns(&purges, 9) && purges.is_empty(), "{purge:?}");
        };
        check(DiskPurge::All, true);
        check(DiskPurge::Key(DiskName::hash_of(b"http://a/b")), true);
        check(DiskPurge::Key(DiskName::hash_of(b"http://a/c")), false);
        check(DiskPurge::Prefix(b"http://a/".as_slice().into()), true);
        check(DiskPurge::Prefix(b"http://b/".as_slice().into()), false);
        check(DiskPurge::Host(b"a".as_slice().into()), true);
        check(DiskPurge::Host(b"b".as_slice().into()), false);
        check(DiskPurge::Tag(b"green".as_slice().into()), true);
        check(DiskPurge::Tag(b"blue".as_slice().into()), false);
    }

    #[test]
    fn a_name_alone_tells_where_neither_key_nor_tags_count() {
        let mut purges = DiskPurges::default();
        assert_eq!(purges.concerns_name(&name(9, true)), Some(false));
        assert!(purges.note(10, DiskPurge::Tag(b"red".as_slice().into())));
        assert_eq!(purges.concerns_name(&name(9, false)), Some(false));
        assert_eq!(purges.concerns_name(&name(9, true)), None);
        assert_eq!(purges.concerns_name(&name(11, true)), Some(false));
        assert!(purges.note(12, DiskPurge::All));
        assert_eq!(purges.concerns_name(&name(9, false)), Some(true));
    }

    #[test]
    fn what_comes_later_stays_when_earlier_purges_are_settled() {
        let mut purges = DiskPurges::default();
        let tag = DiskPurge::Tag(b"red".as_slice().into());
        assert!(purges.note(10, tag.clone()) && purges.note(20, tag));
        assert_eq!(purges.settle(10), [10]);
        assert!(concerns(&purges, 15));
        assert_eq!((purges.last(), purges.len()), (20, 1));
    }

    #[test]
    fn there_are_no_more_than_the_limits() {
        let mut purges = DiskPurges::default();
        for number in 1..=PURGES_MAX as u64 {
            assert!(purges.note(number, DiskPurge::Key(number)));
        }
        let more = PURGES_MAX as u64 + 1;
        assert!(!purges.note(more, DiskPurge::Key(0)));
        assert!(purges.note(more, DiskPurge::All));
        assert_eq!(purges.settle(more).len(), PURGES_MAX + 1);
    }

    #[test]
    fn files_of_purges_are_read_as_they_were_written_and_damage_is_found() {
        let check = |purge: DiskPurge| {
            let file = purge.emit();
            assert_eq!(DiskPurge::parse(&file), Ok(purge));
            for at in 0..file.len() {
                let mut damaged = file.clone();
                damaged[at] ^= 4;
                assert!(DiskPurge::parse(&damaged).is_err());
                assert!(DiskPurge::parse(&file[..at]).is_err());
            }
        };
        check(DiskPurge::All);
        check(DiskPurge::Key(77));
        check(DiskPurge::Prefix(b"http://a".as_slice().into()));
        check(DiskPurge::Tag(b"".as_slice().into()));
        check(DiskPurge::Host(b"a".as_slice().into()));
    }
}
