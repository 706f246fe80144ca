//! Wires, and what happens to them.

use super::{Change, WireChange};
use mill_runtime::time::Duration;
use mill_sim::packet::wire::{Loss, Wire};
use mill_sim::random::Random;

/// What kind of wires a world has: one trouble at a time finds more than all at once, which is the last kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Clean,
    Slow,
    Lossy,
    Bursty,
    Reordering,
    Duplicating,
    Corrupting,
    Everything,
}

impl Profile {
    pub(crate) fn draw(random: &mut Random) -> Self {
        random.one_of(&[
            Self::Clean,
            Self::Slow,
            Self::Slow,
            Self::Lossy,
            Self::Lossy,
            Self::Bursty,
            Self::Reordering,
            Self::Duplicating,
            Self::Corrupting,
            Self::Everything,
        ])
    }

    /// Both wires of a client: out and in.
    pub(crate) fn wires(self, mtu: u16, random: &mut Random) -> (Wire, Wire) {
        let far = random.up_to(150_000);
        let delay = Duration::from_micros(random.one_of(&[0, 50, 1_000, 10_000, far]));
        (self.wire(delay, mtu, random), self.wire(delay, mtu, random))
    }

    fn wire(self, delay: Duration, mtu: u16, random: &mut Random) -> Wire {
        let mut wire = Wire::delayed(delay);
        let all = self == Self::Everything;
        if random.happens(300_000) {
            wire.jitter = Duration::from_micros(random.up_to(20_000));
        }
        if self == Self::Slow || all {
            set_rate(&mut wire, mtu, random);
        }
        if self == Self::Lossy || all {
            wire.loss = Loss::Random {
                per_million: few(random, 100_000),
            };
        }
        if self == Self::Bursty {
            wire.loss = Loss::Bursts {
                good_to_bad_per_million: few(random, 20_000),
                bad_to_good_per_million: 100_000 + few(random, 400_000),
                lost_per_million: 300_000 + few(random, 600_000),
            };
        }
        if self == Self::Reordering || all {
            wire.reorder_per_million = few(random, 200_000);
            let most = random.one_of(&[1_000, 10_000, 300_000]);
            wire.reorder_delay = Duration::from_micros(most);
        }
        if self == Self::Duplicating || all {
            wire.duplicate_per_million = few(random, 200_000);
        }
        if self == Self::Corrupting || all {
            wire.corrupt_per_million = few(random, 50_000);
        }
        wire
    }
}

/// A rate, a queue from a few frames to seconds, and perhaps marking.
fn set_rate(wire: &mut Wire, mtu: u16, random: &mut Random) {
    let rate = random.one_of(&[500_000, 5_000_000, 50_000_000, 1_000_000_000]);
    wire.bits_per_second = Some(rate);
    // Ten frames at least, or as many bytes as leave within half a second at most. Whole super-segments fit always.
    let least = 10 * u64::from(mtu) + 70_000;
    wire.queue_bytes = least + random.up_to(rate / 16);
    if random.happens(400_000) {
        wire.mark_bytes = Some(wire.queue_bytes / (2 + random.up_to(4)));
    }
}

/// Up to a bound, mostly well below it.
fn few(random: &mut Random, most: u32) -> u32 {
    let bound = random.up_to(u64::from(most));
    u32::try_from(random.up_to(bound)).unwrap_or(most)
}

/// What happens while clients talk: in half of the worlds nothing.
pub(super) fn changes(clients: usize, mtu: u16, is_ipv6: bool, random: &mut Random) -> Vec<Change> {
    let mut changes = Vec::new();
    for station in 2..2 + clients {
        let at = Duration::from_millis(random.up_to(8_000));
        let mut enter = |at, what| {
            changes.push(Change { at, station, what });
        };
        match random.up_to(11) {
            0 | 1 => {
                let (outward, inward) =
                    random.one_of(&[(true, true), (true, false), (false, true)]);
                enter(at, WireChange::Cut { outward, inward });
                let heals_at = at + Duration::from_millis(random.up_to(30_000));
                enter(heals_at, WireChange::Heal);
            }
            2 | 3 => {
                enter(at, WireChange::Mtu(smaller(mtu, is_ipv6, random)));
            }
            // One client of several vanishes; if there is only one, the others' part would be nothing.
            4 if station > 2 => {
                let cut = WireChange::Cut {
                    outward: true,
                    inward: true,
                };
                enter(at, cut);
            }
            _ => {}
        }
    }
    changes
}

/// An MTU of which a family carries at least so much, and that is no more than this.
pub(super) fn smaller(mtu: u16, is_ipv6: bool, random: &mut Random) -> u16 {
    let least: u16 = if is_ipv6 { 1280 } else { 576 };
    let more = random.up_to(u64::from(mtu.saturating_sub(least)));
    u16::try_from(u64::from(least) + more).unwrap_or(mtu)
}
