//! What joins the two sides: it loses frames, doubles them, delays them, and so brings them in another order.

use mill_sim::random::Random;
use mill_stack::memory_link::{Frame, MemoryLink};
use mill_tcp::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Wire {
    lost_per_million: u32,
    doubled_per_million: u32,
    late_per_million: u32,
    latency_us: u64,
    /// Frames on their way to each side.
    ways: [Vec<Flying>; 2],
    order: u64,
}

#[derive(Debug)]
struct Flying {
    at: Instant,
    order: u64,
    frame: Frame,
}

impl Wire {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            lost_per_million: random.one_of(&[0, 0, 5_000, 40_000, 120_000]),
            doubled_per_million: random.one_of(&[0, 0, 10_000, 60_000]),
            late_per_million: random.one_of(&[0, 0, 20_000, 200_000]),
            latency_us: random.one_of(&[0, 20, 300, 5_000, 60_000]),
            ways: [Vec::new(), Vec::new()],
            order: 0,
        }
    }

    /// Takes what a side has sent.
    pub(super) fn take(
        &mut self,
        from: usize,
        link: &mut MemoryLink,
        now: Instant,
        random: &mut Random,
    ) {
        for frame in link.sent.drain(..) {
            if random.happens(self.lost_per_million) && !is_arp(&frame) {
                continue;
            }
            let copies = 1 + usize::from(random.happens(self.doubled_per_million));
            for _ in 0..copies {
                let late_us = match random.happens(self.late_per_million) {
                    true => random.up_to(LATE_US_MAX),
                    false => 0,
                };
                let at = now + Duration::from_micros(self.latency_us + late_us);
                self.order += 1;
                self.ways[1 - from].push(Flying {
                    at,
                    order: self.order,
                    frame: frame.clone(),
                });
            }
        }
    }

    /// Whether frames for a side are there now.
    pub(super) fn has_arrived(&self, to: usize, now: Instant) -> bool {
        self.ways[to].iter().any(|flying| flying.at <= now)
    }

    /// Gives a side the frames that are there now.
    pub(super) fn deliver(&mut self, to: usize, link: &mut MemoryLink, now: Instant) {
        let mut arrived: Vec<Flying> = self.ways[to]
            .extract_if(.., |flying| flying.at <= now)
            .collect();
        arrived.sort_by_key(|flying| (flying.at, flying.order));
        link.arrived
            .extend(arrived.into_iter().map(|flying| flying.frame));
    }

    /// When the next frame arrives.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ways.iter().flatten().map(|flying| flying.at).min()
    }
}

/// A neighbour that is not found fails connections as they send, at any moment: that is not what these worlds are about.
fn is_arp(frame: &Frame) -> bool {
    frame.bytes.get(12..14) == Some(&[0x08, 0x06])
}

/// Microseconds: longer than the shortest timer of retransmission.
const LATE_US_MAX: u64 = 300_000;
