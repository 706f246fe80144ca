//! The borrowed connections, by the places that the entries of their descriptors have.

use super::Borrowed;
use crate::descriptors::{self, Entry};
use std::collections::BTreeSet;

/// A place whose last descriptor was closed is found when some are needed, and descriptors are looked through: a process may get
/// millions of connections one after the other, and any of a connection's descriptors may be its last.
#[derive(Debug)]
pub(super) struct Table {
    places: Vec<Option<Borrowed>>,
    vacant: Vec<usize>,
    /// Without a vacant place, descriptors are looked through when there are so many places.
    look_at: usize,
    /// Places that no descriptor had at the last look: one may have been passed from a number to another just then, unseen.
    unseen: BTreeSet<usize>,
}

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            look_at: LOOK_AT_LEAST,
            unseen: BTreeSet::new(),
        }
    }

    /// The caller notes the place at a descriptor before it releases the table's lock.
    pub(super) fn add(&mut self, borrowed: Borrowed) -> u64 {
        if self.vacant.is_empty() && self.places.len() >= self.look_at {
            self.look();
        }
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.unseen.remove(&place);
        if let Some(vacant) = self.places.get_mut(place) {
            *vacant = Some(borrowed);
        }
        place as u64
    }

    pub(super) fn get_mut(&mut self, place: u64) -> Option<&mut Borrowed> {
        self.places.get_mut(usize::try_from(place).ok()?)?.as_mut()
    }

    /// Finds the places that no descriptor has.
    fn look(&mut self) {
        let places = descriptors::all().filter_map(|(_, entry)| match entry {
            Entry::Borrowed(place) => usize::try_from(place).ok(),
            _ => None,
        });
        let used: BTreeSet<usize> = places.collect();
        let unseen: BTreeSet<usize> = (0..self.places.len())
            .filter(|it| !used.contains(it))
            .collect();
        for place in unseen.intersection(&self.unseen) {
            if let Some(borrowed) = self.places.get_mut(*place) {
                *borrowed = None;
                self.vacant.push(*place);
            }
        }
        self.unseen = unseen;
        self.look_at = LOOK_AT_LEAST
            .max(2 * used.len())
            .max(self.places.len() + LOOK_AFTER);
    }
}

const LOOK_AT_LEAST: usize = 64;

/// Places that are added before the next look, where that has found none.
const LOOK_AFTER: usize = 64;
