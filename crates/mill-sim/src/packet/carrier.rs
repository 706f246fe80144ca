//! One direction of a cable at work.

use super::flying::Flying;
use super::layout::Layout;
use super::router::{Says, TooBig};
use super::wire::{LossState, Wire};
use crate::random::Random;
use mill_runtime::time::{Duration, Instant};

/// A wire and what is on it.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) wire: Wire,
    random: Random,
    loss: LossState,
    /// When the wire takes the next frame.
    free_at: Instant,
    last_arrival: Instant,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Arrives {
        at: Instant,
        /// And a second time.
        again: Option<Instant>,
    },
    Dropped(Effect),
}

/// What a wire did to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Lost,
    Cut,
    QueueFull,
    TooBig(u16),
    Marked,
    Corrupted,
    Duplicated,
    Overtaken(Duration),
    /// The receiver's ring was full.
    Overrun,
}

impl Carrier {
    pub(super) const fn new(wire: Wire, seed: u64) -> Self {
        Self {
            wire,
            random: Random::new(seed),
            loss: LossState::new(),
            free_at: Instant::from_nanos(0),
            last_arrival: Instant::from_nanos(0),
        }
    }

    /// Other properties for what is sent from now on; what is on the wire arrives as it would have.
    pub(super) fn set_wire(&mut self, wire: Wire) {
        self.wire = wire;
        self.loss = LossState::new();
    }

    /// Bytes that wait for the wire.
    pub(super) fn backlog(&self, now: Instant) -> u64 {
        self.wire.bytes_in(self.free_at.since(now))
    }

    /// When no more than half of `bytes` wait.
    pub(super) fn has_room_at(&self, bytes: u64) -> Instant {
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX);
        self.free_at - self.wire.transmission_time(half)
    }

    /// Puts a frame on the wire.
    pub(super) fn carry(
        &mut self,
        now: Instant,
        frame: &mut Flying,
        mut note: impl FnMut(Effect),
    ) -> Outcome {
        let wire = self.wire;
        if wire.cut {
            return Outcome::Dropped(Effect::Cut);
        }
        if let Some(mtu) = wire
            .mtu
            .filter(|mtu| frame.largest_packet() > usize::from(*mtu))
        {
            return Outcome::Dropped(Effect::TooBig(mtu));
        }
        let len = frame.bytes.len() as u64;
        let backlog = self.backlog(now);
        if wire.bits_per_second.is_some() && backlog + len > wire.queue_bytes {
            return Outcome::Dropped(Effect::QueueFull);
        }
        if wire.mark_bytes.is_some_and(|threshold| backlog > threshold)
            && Layout::of(&frame.bytes).is_some_and(|it| it.mark_congested(&mut frame.bytes))
        {
            note(Effect::Marked);
        }
        self.free_at = self.free_at.max(now) + wire.transmission_time(frame.bytes.len());
        if self.loss.loses_next(wire.loss, now, &mut self.random) {
            return Outcome::Dropped(Effect::Lost);
        }
        if self.random.happens(wire.corrupt_per_million) {
            if !frame.corrupt(&mut self.random) {
                return Outcome::Dropped(Effect::Lost);
            }
            note(Effect::Corrupted);
        }
        self.arrival(note)
    }

    /// What the router says of a packet that is longer than `mtu`, if anything.
    pub(super) fn too_big(&mut self, mtu: u16) -> Option<TooBig> {
        let router = self.wire.router;
        if self.random.happens(router.silent_per_million) {
            return None;
        }
        Some(TooBig {
            mtu: match router.says {
                Says::Mtu(mtu) => mtu,
                Says::Truth | Says::OfForeignFlow => mtu,
            },
            is_foreign: router.says == Says::OfForeignFlow,
            after: self.wire.delay + router.late,
        })
    }

    /// What the router says of a packet that fits.
    pub(super) fn slander(&mut self, frame: &Flying) -> Option<TooBig> {
        if !self.random.happens(self.wire.router.slanders_per_million) {
            return None;
        }
        self.too_big(u16::try_from(frame.largest_packet() - 1).unwrap_or(u16::MAX))
    }

    fn arrival(&mut self, mut note: impl FnMut(Effect)) -> Outcome {
        let wire = self.wire;
        let at = self.free_at + wire.delay + self.some(wire.jitter);
        let at = if self.random.happens(wire.reorder_per_million) {
            let later = self.some(wire.reorder_delay);
            note(Effect::Overtaken(later));
            at + later
        } else {
            self.last_arrival = self.last_arrival.max(at);
            self.last_arrival
        };
        let again = self.random.happens(wire.duplicate_per_million).then(|| {
            note(Effect::Duplicated);
            at + self.some(wire.jitter)
        });
        Outcome::Arrives { at, again }
    }

    /// A random part of a duration; without one no number is drawn.
    fn some(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(if most == 0 {
            0
        } else {
            self.random.up_to(most)
        })
    }
}
