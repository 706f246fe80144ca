//! What a name resolved to.

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

impl Addresses {
    pub(super) fn new(all: Rc<[IpAddr]>, valid_until: Instant) -> Self {
        debug_assert!(!all.is_empty(), "a name without addresses is an error");
        Self {
            all,
            first: 0,
            valid_until,
        }
    }

    /// The same addresses, beginning at one that `random` chooses: requests spread over them, as with nginx.
    #[must_use]
    pub(super) fn rotated(mut self, random: u64) -> Self {
        let count = self.all.len() as u64;
        self.first = usize::try_from(random % count.max(1)).unwrap_or(0);
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
        for random in 0..7 {
            let rotated = addresses.clone().rotated(random);
            let first = usize::try_from(random % 3).unwrap();
            let expected = [&all[first..], &all[..first]].concat();
            assert!(rotated.iter().eq(expected), "{random}");
            assert_eq!(rotated.as_slice(), all);
        }
    }
}
