//! The index of the files of a folder: which there are, how large they are together, and which goes first.

use std::sync::Mutex;
use std::time::Duration;

use hashbrown::HashTable;

use super::name::DiskName;
use crate::lock::locked;
use crate::siphash::siphash;

/// A file takes a multiple of this on disk, with its own i-node not counted, as most file systems and nginx count it.
pub const FILE_UNIT_BYTES: u64 = 4096;

/// What a folder may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimits {
    /// Bytes of all files (`max_size`).
    pub bytes: u64,
    /// Files (`keys_zone`).
    pub files: u64,
    /// A file whose object nothing has asked for in so long goes (`inactive`).
    pub inactive: Duration,
    /// Files of one key, each a variant; the oldest goes for one more.
    pub variants: usize,
}

/// What is told of a folder; counts are since the process has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskFigures {
    pub files: u64,
    /// Bytes of these, and of those that are being removed.
    pub bytes: u64,
    /// Files that went because there was no room.
    pub evicted: u64,
    /// Files that went because nothing had asked for them.
    pub inactive: u64,
}

/// A file that is in the index no more: to be removed, and then told to [`DiskIndex::removed`].
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub name: DiskName,
    bytes: u64,
}

impl Leaving {
    /// What is free once it is removed.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// All files of a folder. About 70 bytes of memory for each.
#[derive(Debug)]
pub struct DiskIndex {
    limits: DiskLimits,
    seed: [u64; 2],
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    table: HashTable<u32>,
    rows: Vec<Row>,
    free: Option<u32>,
    /// The one that was used last, and the one that goes first.
    newest: Option<u32>,
    oldest: Option<u32>,
    files: u64,
    units: u64,
    /// Of files that are not in the index any more, and not yet removed.
    leaving_units: u64,
    evicted: u64,
    inactive: u64,
}

/// One file, or a free place, of which `older` is the next one.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: DiskName,
    /// The hash of its key in memory, if its object was there; 0 if not.
    memory_hash: u64,
    units: u32,
    used_s: u32,
    newer: Option<u32>,
    older: Option<u32>,
    is_taken: bool,
}

impl Row {
    fn leaving(&self) -> Leaving {
        Leaving {
            name: self.name,
            bytes: u64::from(self.units) * FILE_UNIT_BYTES,
        }
    }
}

impl DiskIndex {
    /// An empty one. The seed is drawn by the caller at random: peers choose the keys.
    pub fn new(limits: DiskLimits, seed: [u64; 2]) -> Self {
        Self {
            limits,
            seed,
            rows: Mutex::default(),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> &DiskLimits {
        &self.limits
    }

    /// The files of the keys with this hash, newest number first.
    pub fn find(&self, hash: u64) -> Vec<DiskName> {
        let rows = locked(&self.rows);
        let mut found = rows.names(self.place(hash), |name| name.hash == hash);
        found.sort_unstable_by_key(|name| std::cmp::Reverse(name.number));
        found
    }

    /// Whether there is a file of a key with this hash: one lock, no allocation.
    pub fn has(&self, hash: u64) -> bool {
        let rows = locked(&self.rows);
        rows.find(self.place(hash), |name| name.hash == hash)
            .is_some()
    }

    /// The object of this file was asked for, and is in memory under this hash from now on.
    pub fn used(&self, name: &DiskName, memory_hash: u64, now: Duration) {
        let mut rows = locked(&self.rows);
        if let Some(at) = rows.find(self.place(name.hash), |known| known == name) {
            rows.row(at).used_s = seconds(now);
            rows.row(at).memory_hash = memory_hash;
            rows.unlink(at);
            rows.link_newest(at);
        }
    }

    /// A file is there. Returns those whose place it takes: older ones of the same key that are the same variant or vary by
    /// other fields, and the oldest one if there are too many; they are to be removed.
    pub fn insert(&self, name: DiskName, bytes: u64, now: Duration) -> Vec<Leaving> {
        let place = self.place(name.hash);
        let mut rows = locked(&self.rows);
        let mut gone = rows.names(place, |known| {
            let is_same = known.variant == name.variant || !known.varies_like(name.variant);
            known.hash == name.hash && known.number <= name.number && is_same
        });
        let mut others = rows.names(place, |known| {
            known.hash == name.hash && !gone.contains(known)
        });
        others.sort_unstable();
        others.sort_by_key(|known| known.number);
        let most = self.limits.variants.saturating_sub(1);
        gone.extend(others.drain(..others.len().saturating_sub(most)));
        let gone = rows.take_all_out(place, &gone);
        rows.put_in(place, name, bytes, now, |name| self.place(name.hash));
        gone
    }

    /// Takes a file out, if it is there. Its bytes count until it is [`removed`](Self::removed).
    pub fn remove(&self, name: &DiskName) -> Option<Leaving> {
        locked(&self.rows).take_out(self.place(name.hash), name)
    }

    /// Takes all files of the keys with this hash out.
    pub fn remove_key(&self, hash: u64) -> Vec<Leaving> {
        self.remove_of_key(hash, |_| true)
    }

    /// Takes those files out whose place a new object takes that varies so: the same variant, and those that vary by other
    /// fields.
    pub fn remove_variant(&self, hash: u64, variant: u64) -> Vec<Leaving> {
        self.remove_of_key(hash, |name| {
            name.variant == variant || !name.varies_like(variant)
        })
    }

    fn remove_of_key(&self, hash: u64, goes: impl Fn(&DiskName) -> bool) -> Vec<Leaving> {
        let place = self.place(hash);
        let mut rows = locked(&self.rows);
        let gone = rows.names(place, |name| name.hash == hash && goes(name));
        rows.take_all_out(place, &gone)
    }

    /// A file that was taken out is removed: its bytes are free.
    pub fn removed(&self, leaving: Leaving) {
        let mut rows = locked(&self.rows);
        rows.leaving_units = rows
            .leaving_units
            .saturating_sub(leaving.bytes / FILE_UNIT_BYTES);
    }

    /// Takes the file out that is to go first so that one of `bytes` has room; `None` if there is room, or nothing can go.
    /// Where memory knows that an object was used since (`last_used` of its hash there), its file is passed over, at most
    /// 256 at once.
    pub fn evict_for(
        &self,
        bytes: u64,
        last_used: impl Fn(u64) -> Option<Duration>,
    ) -> Option<Leaving> {
        let mut rows = locked(&self.rows);
        let wanted = u64::from(units(bytes)) + rows.units + rows.leaving_units;
        let is_full = wanted > self.limits.bytes / FILE_UNIT_BYTES;
        if !is_full && rows.files < self.limits.files {
            return None;
        }
        self.take_first(&mut rows, last_used)
    }

    /// Takes the file out that is to go first, although there is room within the limits. Files that were used are passed
    /// over as for [`evict_for`](Self::evict_for).
    pub fn evict(&self, last_used: impl Fn(u64) -> Option<Duration>) -> Option<Leaving> {
        self.take_first(&mut locked(&self.rows), last_used)
    }

    fn take_first(
        &self,
        rows: &mut Rows,
        last_used: impl Fn(u64) -> Option<Duration>,
    ) -> Option<Leaving> {
        let at = rows.oldest_unused(last_used)?;
        rows.evicted += 1;
        Some(rows.take(at, |name| self.place(name.hash)))
    }

    /// Whether a file of `bytes` has room now.
    pub fn has_room(&self, bytes: u64) -> bool {
        let rows = locked(&self.rows);
        let wanted = u64::from(units(bytes)) + rows.units + rows.leaving_units;
        wanted <= self.limits.bytes / FILE_UNIT_BYTES && rows.files < self.limits.files
    }

    /// Takes the oldest file out if nothing has asked for its object in the time of `inactive`.
    pub fn expire(
        &self,
        now: Duration,
        last_used: impl Fn(u64) -> Option<Duration>,
    ) -> Option<Leaving> {
        let mut rows = locked(&self.rows);
        let at = rows.oldest_unused(last_used)?;
        let used = Duration::from_secs(rows.row(at).used_s.into());
        if used + self.limits.inactive > now {
            return None;
        }
        rows.inactive += 1;
        Some(rows.take(at, |name| self.place(name.hash)))
    }

    /// Up to `count` files from the place `from` on, and the next place; `None` after the last one. Files that come in
    /// between may be missed.
    pub fn slice(&self, from: usize, count: usize) -> (Vec<DiskName>, Option<usize>) {
        let rows = locked(&self.rows);
        let end = from.saturating_add(count).min(rows.rows.len());
        let slice = rows.rows.get(from..end).unwrap_or_default();
        let names = slice.iter().filter(|row| row.is_taken).map(|row| row.name);
        (names.collect(), (end < rows.rows.len()).then_some(end))
    }

    /// Takes all files out.
    pub fn clear(&self) -> Vec<Leaving> {
        let mut rows = locked(&self.rows);
        let taken = rows.rows.iter().filter(|row| row.is_taken);
        let gone: Vec<_> = taken.map(Row::leaving).collect();
        let leaving_units = rows.units + rows.leaving_units;
        *rows = Rows {
            leaving_units,
            evicted: rows.evicted,
            inactive: rows.inactive,
            ..Rows::default()
        };
        gone
    }

    /// The counts of this moment.
    pub fn figures(&self) -> DiskFigures {
        let rows = locked(&self.rows);
        DiskFigures {
            files: rows.files,
            bytes: (rows.units + rows.leaving_units) * FILE_UNIT_BYTES,
            evicted: rows.evicted,
            inactive: rows.inactive,
        }
    }

    /// Where the rows of a hash are in the table.
    fn place(&self, hash: u64) -> u64 {
        siphash(self.seed, &hash.to_le_bytes())
    }
}

/// Files that one eviction passes over because they were used in memory.
const LOOKS_MAX: usize = 256;

impl Rows {
    fn row(&mut self, at: u32) -> &mut Row {
        &mut self.rows[at as usize]
    }

    fn find(&self, place: u64, is_it: impl Fn(&DiskName) -> bool) -> Option<u32> {
        let is_it = |at: &u32| is_it(&self.rows[*at as usize].name);
        self.table.find(place, is_it).copied()
    }

    fn names(&self, place: u64, wanted: impl Fn(&DiskName) -> bool) -> Vec<DiskName> {
        let names = self
            .table
            .iter_hash(place)
            .map(|at| self.rows[*at as usize].name);
        names.filter(wanted).collect()
    }

    fn put_in(
        &mut self,
        place: u64,
        name: DiskName,
        bytes: u64,
        now: Duration,
        place_of: impl Fn(&DiskName) -> u64,
    ) {
        let row = Row {
            name,
            memory_hash: 0,
            units: units(bytes),
            used_s: seconds(now),
            newer: None,
            older: None,
            is_taken: true,
        };
        let at = match self.free {
            Some(at) => {
                self.free = self.row(at).older;
                *self.row(at) = row;
                at
            }
            None => {
                self.rows.push(row);
                u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.link_newest(at);
        self.files += 1;
        self.units += u64::from(row.units);
        let rows = &self.rows;
        self.table
            .insert_unique(place, at, |at| place_of(&rows[*at as usize].name));
    }

    fn take_out(&mut self, place: u64, name: &DiskName) -> Option<Leaving> {
        let at = self.find(place, |known| known == name)?;
        Some(self.take(at, |_| place))
    }

    fn take_all_out(&mut self, place: u64, names: &[DiskName]) -> Vec<Leaving> {
        let names = names.iter();
        names
            .filter_map(|name| self.take_out(place, name))
            .collect()
    }

    /// Takes the row out; its bytes are leaving.
    fn take(&mut self, at: u32, place_of: impl Fn(&DiskName) -> u64) -> Leaving {
        let Row { name, units, .. } = *self.row(at);
        let leaving = self.row(at).leaving();
        if let Ok(entry) = self.table.find_entry(place_of(&name), |known| *known == at) {
            entry.remove();
        }
        self.unlink(at);
        let free = self.free;
        let row = self.row(at);
        row.is_taken = false;
        row.older = free;
        self.free = Some(at);
        self.files -= 1;
        self.units -= u64::from(units);
        self.leaving_units += u64::from(units);
        leaving
    }

    /// The oldest one; those that memory has seen used since are not.
    fn oldest_unused(&mut self, last_used: impl Fn(u64) -> Option<Duration>) -> Option<u32> {
        for _ in 0..LOOKS_MAX {
            let at = self.oldest?;
            let Row {
                memory_hash,
                used_s,
                ..
            } = *self.row(at);
            let known = Some(memory_hash).filter(|hash| *hash != 0);
            let used = known.and_then(&last_used).map_or(0, seconds);
            if used <= used_s {
                break;
            }
            self.row(at).used_s = used;
            self.unlink(at);
            self.link_newest(at);
        }
        self.oldest
    }

    fn unlink(&mut self, at: u32) {
        let Row { newer, older, .. } = *self.row(at);
        match newer {
            Some(newer) => self.row(newer).older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.row(older).newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, at: u32) {
        let older = self.newest.replace(at);
        let row = self.row(at);
        row.newer = None;
        row.older = older;
        match older {
            Some(older) => self.row(older).newer = Some(at),
            None => self.oldest = Some(at),
        }
    }
}

/// Units of a file; one of more than 16 TiB counts as that.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(FILE_UNIT_BYTES)).unwrap_or(u32::MAX)
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
