//! Random neighbours that appear, vanish, and change their Ethernet addresses, against their real state.

use super::*;

/// The real state of a neighbour.
#[derive(Clone, Copy)]
struct Real {
    address: IpAddr,
    mac: MacAddress,
    is_there: bool,
}

struct World {
    neighbors: Neighbors,
    real: Vec<Real>,
    random: Random,
    now: Instant,
    /// The neighbours that are waited for, and since when.
    waiting: Vec<(IpAddr, Instant)>,
    questions: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let real = (20..30)
            .map(|last| Real {
                address: if last % 2 == 0 {
                    v4(last)
                } else {
                    v6(last.into())
                },
                mac: MacAddress([2, 1, 0, 0, 0, last]),
                is_there: last % 3 != 0,
            })
            .collect();
        Self {
            neighbors: quiet(8),
            real,
            random: Random::new(seed),
            now: at(10_000),
            waiting: Vec::new(),
            questions: 0,
        }
    }

    fn pick(&mut self) -> usize {
        usize::try_from(self.random.below(10)).unwrap()
    }

    fn step(&mut self) {
        let chosen = self.pick();
        let real = self.real[chosen];
        match self.random.below(8) {
            0..=3 => self.resolve(real),
            4 => self.neighbors.confirm(real.address, self.now),
            5 => self.real[chosen].is_there = self.random.below(3) > 0,
            6 if self.random.below(4) == 0 => {
                let last = u8::try_from(self.random.below(256)).unwrap();
                self.real[chosen].mac = MacAddress([2, 2, 0, 0, last, real.mac.0[5]]);
            }
            _ => self.sleep(),
        }
        self.exchange();
        self.take();
        assert!(self.neighbors.len() <= 8);
    }

    fn resolve(&mut self, real: Real) {
        match self.neighbors.resolve(real.address, self.now) {
            // All addresses that a neighbour ever has end alike.
            Resolution::Known(mac) => assert_eq!(mac.0[5], real.mac.0[5], "{mac}"),
            Resolution::Asking => {
                if self
                    .waiting
                    .iter()
                    .all(|(address, _)| *address != real.address)
                {
                    self.waiting.push((real.address, self.now));
                }
            }
            Resolution::Failed => {}
        }
    }

    fn sleep(&mut self) {
        let until = self.now + Duration::from_millis(self.random.below(6000));
        while let Some(due) = self.neighbors.next_expiry().filter(|due| *due <= until) {
            assert!(due >= self.now, "what was due is not done");
            self.now = due;
            self.neighbors.expire(due);
            self.exchange();
            self.take();
        }
        self.now = until;
        self.neighbors.expire(until);
    }

    /// Neighbours that exist answer requests.
    fn exchange(&mut self) {
        while let Some(outgoing) = self.neighbors.next_outgoing() {
            self.questions += 1;
            let (wanted, to) = match outgoing {
                Outgoing::Arp { to, packet } => (IpAddr::V4(packet.target), to),
                Outgoing::Ndp { to, message, .. } => match message {
                    Ndp::NeighborSolicitation { target, .. } => (IpAddr::V6(target), to),
                    other => panic!("unexpected frame {other:?}"),
                },
            };
            let asked = self
                .real
                .iter()
                .find(|real| real.address == wanted)
                .copied();
            let hears = |real: &Real| real.is_there && (to.is_multicast() || to == real.mac);
            if let Some(real) = asked.filter(hears) {
                answer(&mut self.neighbors, real.mac, wanted, self.now);
            }
        }
    }

    fn take(&mut self) {
        let (resolved, failed) = resolved(&mut self.neighbors);
        self.waiting
            .retain(|(address, _)| !resolved.contains(address) && !failed.contains(address));
        for (address, since) in &self.waiting {
            // Three requests, a second apart, and the second after the last.
            let waited = self.now.since(*since);
            assert!(
                waited <= Duration::from_secs(3),
                "{address} is waited for since {waited:?}"
            );
        }
    }
}

#[test]
fn every_wait_ends_and_only_real_addresses_are_known() {
    for seed in 1..=60 {
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.step();
        }
        assert!(world.questions > 0, "seed {seed}");
    }
}
