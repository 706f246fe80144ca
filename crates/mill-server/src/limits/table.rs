//! Keys and what is known of them, at most so many that they have room.
//!
//! Every key is in a slot; the slots form a ring of indices from the most to the least recently used:
//!
//! ```text
//! newest → slot → slot → … → oldest        (`older` points right, `newer` points left)
//! ```
//!
//! What a key takes is counted as nginx takes it: its tree node in a piece of 2^n bytes. What it takes here is less for keys
//! of any length: a slot, five bytes of the index, and the key.

use hashbrown::HashTable;

/// The keys of one part of a zone.
#[derive(Debug)]
pub(super) struct Table<V> {
    slots: Vec<Slot<V>>,
    vacant: Vec<u32>,
    by_key: HashTable<u32>,
    newest: u32,
    oldest: u32,
    used_bytes: u64,
    bytes_max: u64,
    /// What a key takes beside its own bytes.
    node_bytes: u64,
}

#[derive(Debug)]
struct Slot<V> {
    hash: u64,
    key: Box<[u8]>,
    newer: u32,
    older: u32,
    value: V,
}

/// The index that no slot has.
const NONE: u32 = u32::MAX;

impl<V: Default> Table<V> {
    /// An empty one of at most `bytes_max`, in which a key takes `node_bytes` beside its own, rounded up.
    pub(super) fn new(bytes_max: u64, node_bytes: u64) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            by_key: HashTable::new(),
            newest: NONE,
            oldest: NONE,
            used_bytes: 0,
            bytes_max,
            node_bytes,
        }
    }

    /// Keys that it has.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The slot of a key.
    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let is_it = |slot: &u32| {
            let slot = &self.slots[*slot as usize];
            slot.hash == hash && *slot.key == *key
        };
        self.by_key.find(hash, is_it).copied()
    }

    /// What is known of the key in a slot that [`Self::find`] or [`Self::insert`] told and that was not removed.
    pub(super) fn value(&mut self, slot: u32) -> &mut V {
        &mut self.slots[slot as usize].value
    }

    /// Adds a key that it does not have, as the newest; `None` if there is no room.
    pub(super) fn insert(&mut self, hash: u64, key: &[u8]) -> Option<u32> {
        let bytes = self.bytes_of(key.len());
        if self.used_bytes + bytes > self.bytes_max {
            return None;
        }
        let new = Slot {
            hash,
            key: key.into(),
            newer: NONE,
            older: NONE,
            value: V::default(),
        };
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(new);
                slot
            }
        };
        let slots = &self.slots;
        self.by_key
            .insert_unique(hash, slot, |slot| slots[*slot as usize].hash);
        self.used_bytes += bytes;
        self.link_newest(slot);
        Some(slot)
    }

    /// It was used now.
    pub(super) fn touch(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link_newest(slot);
        }
    }

    /// The key that was not used for longest.
    pub(super) const fn oldest(&self) -> Option<u32> {
        match self.oldest {
            NONE => None,
            slot => Some(slot),
        }
    }

    /// Forgets a key.
    pub(super) fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        let hash = self.slots[slot as usize].hash;
        if let Ok(entry) = self.by_key.find_entry(hash, |known| *known == slot) {
            entry.remove();
        }
        let key = std::mem::take(&mut self.slots[slot as usize].key);
        self.used_bytes -= self.bytes_of(key.len());
        self.vacant.push(slot);
    }

    /// What a key takes: its node in a piece of 2^n bytes, or in whole pages.
    fn bytes_of(&self, key_bytes: usize) -> u64 {
        let bytes = self.node_bytes + key_bytes as u64;
        if bytes > PAGE_BYTES / 2 {
            bytes.next_multiple_of(PAGE_BYTES)
        } else {
            bytes.next_power_of_two()
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let before = self.newest;
        let linked = &mut self.slots[slot as usize];
        (linked.newer, linked.older) = (NONE, before);
        match before {
            NONE => self.oldest = slot,
            before => self.slots[before as usize].newer = slot,
        }
        self.newest = slot;
    }
}

/// What nginx has of a zone for keys: whole pages, with 24 bytes for each before the first of them; one has the name of the
/// zone, and `root_bytes` of another have what leads to the keys.
pub(super) const fn bytes_for_keys(zone_bytes: u64, root_bytes: u64) -> u64 {
    let pages = zone_bytes.saturating_sub(POOL_BYTES) / (PAGE_BYTES + PAGE_ENTRY_BYTES);
    let first = (POOL_BYTES + pages * PAGE_ENTRY_BYTES).next_multiple_of(PAGE_BYTES);
    let room = zone_bytes.saturating_sub(first) / PAGE_BYTES;
    let pages = if room < pages { room } else { pages };
    (pages.saturating_sub(1) * PAGE_BYTES).saturating_sub(root_bytes)
}

/// Of nginx's allocator: a page, what it notes of each, what it notes of the zone.
const PAGE_BYTES: u64 = 4096;
const PAGE_ENTRY_BYTES: u64 = 24;
const POOL_BYTES: u64 = 704;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(table: &Table<u32>) -> Vec<u8> {
        let mut keys = Vec::new();
        let mut slot = table.oldest;
        while slot != NONE {
            keys.push(table.slots[slot as usize].key[0]);
            slot = table.slots[slot as usize].newer;
        }
        keys
    }

    #[test]
    fn keys_are_in_the_order_of_their_uses() {
        let mut table = Table::new(4 * 128, 80);
        let slots: Vec<u32> = (0..4)
            .map(|key| table.insert(7, &[key; 4]).unwrap())
            .collect();
        assert_eq!(keys(&table), [0, 1, 2, 3]);
        assert!(table.insert(7, &[4; 4]).is_none());
        table.touch(slots[1]);
        table.touch(slots[1]);
        table.touch(slots[0]);
        assert_eq!(keys(&table), [2, 3, 1, 0]);
        table.remove(slots[3]);
        assert_eq!(keys(&table), [2, 1, 0]);
        // All have the same hash: keys tell them apart.
        assert_eq!(table.find(7, &[3; 4]), None);
        assert_eq!(table.find(7, &[1; 4]), Some(slots[1]));
        let again = table.insert(7, &[9; 4]).unwrap();
        assert_eq!((again, keys(&table)), (slots[3], vec![2, 1, 0, 9]));
        for slot in slots {
            table.remove(slot);
        }
        assert_eq!(
            (table.len(), table.used_bytes, table.oldest()),
            (0, 0, None)
        );
    }

    #[test]
    fn a_key_takes_what_nginx_takes() {
        let table: Table<u32> = Table::new(0, 80);
        let check = |key_bytes, expected| assert_eq!(table.bytes_of(key_bytes), expected);
        check(4, 128);
        check(48, 128);
        check(49, 256);
        check(2048 - 80, 2048);
        check(2048 - 79, 4096);
        check(4096, 8192);
    }

    /// Zones of nginx 1.22.1 were filled until they refused or forgot a key.
    #[test]
    fn a_zone_has_room_for_as_many_keys_as_in_nginx() {
        let check = |zone_bytes, piece_bytes, expected| {
            let bytes = bytes_for_keys(zone_bytes, piece_bytes);
            assert_eq!(bytes / piece_bytes, expected);
        };
        check(32 << 10, 128, 191);
        check(1 << 20, 128, 8095);
        check(32 << 10, 64, 383);
        check(0, 64, 0);
    }

    #[test]
    fn a_slot_takes_less_than_it_is_counted() {
        assert!(size_of::<Slot<super::super::owed::Owed>>() <= 72);
    }
}
