//! What the caller lends to every call: time, configuration, counters, randomness, pool.

use crate::config::Config;
use crate::connection::Cold;
use crate::counters::Counters;
use crate::random::Random;
use crate::time::{Instant, Tick};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Everything that a connection shares with the others of its host.
#[derive(Debug)]
pub struct Env<'a> {
    pub now: Instant,
    /// The settings of this connection.
    pub config: &'a Config,
    pub shared: &'a mut Shared,
    /// Payload bytes of the largest segment that the device takes; not less than any connection's MSS. More than
    /// the MSS where the device cuts segments.
    pub segment_bytes_max: u32,
    /// Bytes that the host could still spend on receive buffers; windows grow only while there are some.
    pub memory_left_bytes: u64,
}

impl Env<'_> {
    pub const fn tick(&self) -> Tick {
        self.now.tick()
    }
}

/// What all connections of a host have together.
#[derive(Debug)]
pub struct Shared {
    pub counters: Counters,
    pub random: Random,
    pub pool: Pool,
    pub challenge_acks: ChallengeAcks,
}

impl Shared {
    pub const fn new(seed: u64) -> Self {
        Self {
            counters: Counters::ZERO,
            random: Random::new(seed),
            pool: Pool { vacant: Vec::new() },
            challenge_acks: ChallengeAcks { second: 0, left: 0 },
        }
    }
}

/// How many challenge ACKs may still be sent in this second (RFC 5961 7). The number each second begins with is
/// random, so that peers cannot learn of one connection by counting those of another (CVE-2016-5696).
#[derive(Debug, Default)]
pub struct ChallengeAcks {
    pub second: u64,
    pub left: u32,
}

/// Cold parts that no connection needs now.
#[derive(Debug, Default)]
pub struct Pool {
    #[expect(clippy::vec_box, reason = "the boxes are handed out as they are")]
    vacant: Vec<Box<Cold>>,
}

impl Pool {
    /// Takes one, cleared. Allocates only while more connections need one at once than ever before.
    pub fn take(&mut self) -> Box<Cold> {
        self.vacant.pop().unwrap_or_default()
    }

    /// Clears it, keeping what capacity is modest, for the next connection.
    pub fn put(&mut self, mut cold: Box<Cold>) {
        if self.vacant.len() < Self::VACANT_MAX {
            cold.clear();
            self.vacant.push(cold);
        }
    }

    /// Boxes kept: enough for the connections that are busy in one turn.
    const VACANT_MAX: usize = 4096;
}
