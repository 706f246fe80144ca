//! Purges of many objects: in effect at once, carried out in slices.
//!
//! Each purge has a number. An object that was claimed before it, and that it concerns, is not given out from then on,
//! because look-ups compare; the sweep of [`Zone::expire`](crate::Zone::expire) removes it later. A purge that a whole
//! sweep has carried out, and that began after no fill under way, is forgotten.

use std::fmt;

use crate::limits::PENDING_PURGES_MAX;
use crate::object::Object;

/// What a purge does to the objects that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeMode {
    /// They are not found any more.
    Remove,
    /// They are found, but must be validated: [`Object::is_invalidated`].
    Invalidate,
}

/// More than [`PENDING_PURGES_MAX`] purges by predicate wait for the sweep; try again after
/// [`Zone::expire`](crate::Zone::expire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPurges;

impl fmt::Display for TooManyPurges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PENDING_PURGES_MAX} purges are not carried out yet")
    }
}

impl std::error::Error for TooManyPurges {}

/// Says of the bytes of a key whether a purge concerns it.
pub type KeyPredicate = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The purges that are not carried out.
#[derive(Default)]
pub(crate) struct Pending {
    /// The last purge of all objects, by mode.
    all_removed: u64,
    all_invalidated: u64,
    matching: Vec<Matching>,
}

struct Matching {
    purge: u64,
    mode: PurgeMode,
    concerns: KeyPredicate,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} purges by predicate", self.matching.len())
    }
}

impl Pending {
    pub(crate) fn purge_all(&mut self, mode: PurgeMode, purge: u64) {
        match mode {
            PurgeMode::Remove => self.all_removed = purge,
            PurgeMode::Invalidate => self.all_invalidated = purge,
        }
    }

    pub(crate) fn purge_matching(
        &mut self,
        concerns: KeyPredicate,
        mode: PurgeMode,
        purge: u64,
    ) -> Result<(), TooManyPurges> {
        if self.matching.len() >= PENDING_PURGES_MAX {
            return Err(TooManyPurges);
        }
        self.matching.push(Matching {
            purge,
            mode,
            concerns,
        });
        Ok(())
    }

    /// What the purges since it was last checked make of the object.
    pub(crate) fn verdict<M>(&self, object: &Object<M>) -> Option<PurgeMode> {
        let concerned = |mode| self.concerns(object, mode).then_some(mode);
        concerned(PurgeMode::Remove).or_else(|| concerned(PurgeMode::Invalidate))
    }

    fn concerns<M>(&self, object: &Object<M>, mode: PurgeMode) -> bool {
        let born = object.born();
        let all = match mode {
            PurgeMode::Remove => self.all_removed,
            PurgeMode::Invalidate => self.all_invalidated,
        };
        born < all
            || object.tag_rows().iter().any(|tag| born < tag.purged(mode))
            || self.matching.iter().any(|matching| {
                matching.mode == mode && born < matching.purge && (matching.concerns)(object.key())
            })
    }

    /// Purges by predicate that are not carried out.
    pub(crate) fn matching(&self) -> usize {
        self.matching.len()
    }

    /// Purges up to this one are carried out.
    pub(crate) fn settle(&mut self, purge: u64) {
        self.matching.retain(|matching| matching.purge > purge);
    }
}
