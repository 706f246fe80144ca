//! What a request has tried: it goes to another server each time.

use super::Selected;
use crate::peer::Peer;
use std::cell::Cell;
use std::sync::Arc;

/// The servers that a request has tried; empty at first. The first one needs no allocation.
#[derive(Debug, Default)]
pub struct Tried {
    first: Option<Arc<Peer>>,
    more: Vec<Arc<Peer>>,
    pub(super) probes: Cell<Probes>,
}

impl Tried {
    pub fn has(&self, peer: &Arc<Peer>) -> bool {
        let mut all = self.first.iter().chain(&self.more);
        all.any(|tried| Arc::ptr_eq(tried, peer))
    }

    pub fn add(&mut self, selected: &Selected) {
        let peer = Arc::clone(selected.peer());
        match &self.first {
            None => self.first = Some(peer),
            Some(_) => self.more.push(peer),
        }
    }

    /// The last one may be tried again: only a kept connection to it had failed.
    pub fn forget_last(&mut self) {
        if self.more.pop().is_none() {
            self.first = None;
        }
    }
}

/// Where the hashes and `random` are in their sequence of candidates; it goes on with the next try.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probes {
    /// Candidates that could not take the request.
    pub(super) count: u32,
    /// The hash up to the last candidate, `None` before the first.
    pub(super) hash: Option<u32>,
    /// How many times the key was hashed.
    pub(super) rehash: u32,
}

impl Probes {
    pub(super) fn are_over(self) -> bool {
        self.count > PROBES_MAX
    }
}

/// nginx's limit of candidates before round robin decides.
const PROBES_MAX: u32 = 20;
