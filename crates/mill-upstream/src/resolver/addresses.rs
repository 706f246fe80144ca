//! What a name resolved to.

use super::message::Service;
use mill_runtime::time::Instant;
use std::net::IpAddr;
use std::rc::Rc;

/// The addresses of a name, at least one, and until when they hold. Cloning copies no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    all: Rc<[IpAddr]>,
    /// Where [`Addresses::iter`] begins.
    first: usize,
    valid_until: Instant,
}

/// The SRV records of a service, at least one, and until when they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    pub all: Rc<[Service]>,
    pub valid_until: Instant,
}

impl Addresses {
    pub(super) fn new(all: Rc<[IpAddr]>, valid_until: Instant) -> Self {
        debug_assert!(!all.is_empty(), "a name without addresses is an error");
        Self {
            all,
            first: 0,
            valid_until,
        }
    }

    /// The same addresses, beginning at another one each turn, so that requests spread over them.
    #[must_use]
    pub(super) fn rotated(mut self, turn: usize) -> Self {
        self.first = turn % self.all.len().max(1);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        let (before, behind) = self.all.split_at(self.first);
        behind.iter().chain(before).copied()
    }

    /// All of them, in the order of the answers: IPv4 first.
    pub fn as_slice(&self) -> &[IpAddr] {
        &self.all
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// When the time to live of the records ends, or `valid=` does; [`Instant::FAR`] for a literal address.
    pub const fn valid_until(&self) -> Instant {
        self.valid_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_has_every_address_once() {
        let all: Vec<IpAddr> = (1..=3).map(|last| [10, 0, 0, last].into()).collect();
        let addresses = Addresses::new(all.clone().into(), Instant::FAR);
        for turn in 0..7 {
            let rotated = addresses.clone().rotated(turn);
            let first = turn % 3;
            let expected = [&all[first..], &all[..first]].concat();
            assert!(rotated.iter().eq(expected), "{turn}");
            assert_eq!(rotated.as_slice(), all);
        }
    }
}
