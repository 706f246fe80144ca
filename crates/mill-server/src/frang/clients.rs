//! All clients, for all worker threads.
//!
//! The table is in parts behind locks of their own. A part that is full gives the place of a client that was not looked
//! up lately and has no connection to a new one: the places are gone through in a circle, and a client that was used since
//! the last round is passed over (CLOCK). Few are looked at for each new client; if all of these are in use, the last one
//! loses its place, and its next connection begins another account.

use super::account::Client;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The table.
#[derive(Debug)]
pub(crate) struct Clients {
    parts: Box<[Mutex<Part>]>,
    /// Most clients of a part.
    most: usize,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Part {
    by_address: HashMap<IpAddr, Arc<Client>>,
    /// The circle: each client of the part once.
    circle: VecDeque<Arc<Client>>,
}

impl Clients {
    /// For `most` clients.
    pub(super) fn new(most: u32) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        let parts = most.div_ceil(PART_CLIENTS_MIN).min(PARTS_MAX);
        Self {
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            most: most.div_ceil(parts),
            evicted: AtomicU64::new(0),
        }
    }

    /// The client of an address, with an account of its own from now on.
    pub(crate) fn enter(&self, address: IpAddr) -> Arc<Client> {
        let address = address.to_canonical();
        let part = &mut *self.part(address);
        if let Some(known) = part.by_address.get(&address) {
            known.mark_used();
            return Arc::clone(known);
        }
        if part.by_address.len() >= self.most {
            part.make_room();
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        let client = Arc::new(Client::new(address));
        part.by_address.insert(address, Arc::clone(&client));
        part.circle.push_back(Arc::clone(&client));
        client
    }

    /// The client of an address, if it has an account.
    pub(super) fn find(&self, address: IpAddr) -> Option<Arc<Client>> {
        let address = address.to_canonical();
        self.part(address).by_address.get(&address).map(Arc::clone)
    }

    /// Clients that have an account.
    pub(crate) fn count(&self) -> u64 {
        let counts = self
            .parts
            .iter()
            .map(|part| lock(part).by_address.len() as u64);
        counts.sum()
    }

    /// Clients whose place was given to others.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    fn part(&self, address: IpAddr) -> MutexGuard<'_, Part> {
        let bits = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
                half(bits >> 64) ^ half(bits)
            }
        };
        // Fibonacci hashing: neighbours are far apart.
        let hash = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let index = hash as usize % self.parts.len();
        lock(
            self.parts
                .get(index)
                .expect("a rest is less than the divisor"),
        )
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Part {
    /// Takes the place of a client.
    fn make_room(&mut self) {
        for tried in 1.. {
            let Some(client) = self.circle.pop_front() else {
                return;
            };
            let was_used = client.was_used.swap(false, Ordering::Relaxed);
            let stays = (was_used || client.is_connected()) && tried < LOOKED_AT_MAX;
            if stays {
                self.circle.push_back(client);
                continue;
            }
            self.by_address.remove(&client.address);
            return;
        }
    }
}

/// A lock for so many clients, and no more locks than this.
const PART_CLIENTS_MIN: usize = 256;
const PARTS_MAX: usize = 64;

/// Clients that are looked at for the place of a new one.
const LOOKED_AT_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::config::frang::FrangLimits;
    use mill_runtime::time::Instant;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn an_address_is_one_client_however_it_is_written() {
        let clients = Clients::new(10);
        let one = clients.enter("10.0.0.1".parse().unwrap());
        let same = clients.enter("::ffff:10.0.0.1".parse().unwrap());
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &clients.enter(address(1))));
        assert_eq!((clients.count(), clients.evicted()), (2, 0));
    }

    #[test]
    fn the_table_is_bounded_and_those_with_connections_stay() {
        let clients = Clients::new(100);
        let kept = clients.enter(address(1));
        let connected = kept.connect(&FrangLimits::default(), Instant::from_nanos(0), false);
        assert!(connected.is_ok());
        for number in 2..10_000 {
            clients.enter(address(number));
            assert!(clients.count() <= 100);
        }
        assert_eq!(clients.evicted(), 9_999 - 100);
        assert!(Arc::ptr_eq(&kept, &clients.enter(address(1))));
        kept.leave();
        for number in 2..10_000 {
            clients.enter(address(number));
        }
        assert!(clients.find(address(1)).is_none());
    }

    #[test]
    fn where_all_are_connected_a_new_one_still_gets_an_account() {
        let clients = Clients::new(20);
        let all: Vec<_> = (0..40)
            .map(|number| clients.enter(address(number)))
            .collect();
        for client in &all {
            let connected = client.connect(&FrangLimits::default(), Instant::from_nanos(0), false);
            assert!(connected.is_ok());
        }
        clients.enter(address(99));
        assert_eq!(clients.count(), 20);
        assert!(clients.find(address(99)).is_some());
    }

    #[test]
    fn the_size_is_spread_over_the_parts() {
        for most in [1, 255, 256, 257, 1000, 65_536, 1_000_003] {
            let clients = Clients::new(most);
            let room = clients.parts.len() * clients.most;
            let most = usize::try_from(most).unwrap();
            assert!(
                (most..most + clients.parts.len()).contains(&room),
                "{most}: {room}"
            );
        }
    }
}
