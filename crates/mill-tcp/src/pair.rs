//! Two connections, a wire between them that can be bad, and virtual time.
//!
//! ```
//! client: owner's queue -> next_segment -> wire (delay, loss, reordering, duplication) -> on_segment -> server's bytes
//! ```

use crate::arrived::Events;
use crate::config::Config;
use crate::connection::{Connection, Opening};
use crate::env::Env;
use crate::random::Random;
use crate::segment::SegmentOut;
use crate::state::State;
use crate::time::{Duration, Instant};
use crate::time_wait::TimeWait;
use alloc::vec::Vec;

mod draft;
mod owner;
mod side;
mod wire;

pub(crate) use draft::Draft;
pub(crate) use side::{Peer, Side};
pub(crate) use wire::Wire;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Where the clock of a pair begins: not at zero, so that nothing works by accident.
const START_NS: u64 = 5_000_000_000;

#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) sides: [Side; 2],
    pub(crate) wire: Wire,
    /// All segments sent, with time and sender, lost ones too.
    pub(crate) log: Vec<(Instant, usize, SegmentOut)>,
}

impl Pair {
    pub(crate) fn new(config: &Config) -> Self {
        Self::with_seed(config, 1)
    }

    pub(crate) fn with_seed(config: &Config, seed: u64) -> Self {
        Self {
            now: Instant::from_nanos(START_NS),
            // The client's numbers wrap soon, the server's do not.
            sides: [
                Side::new(config, u32::MAX - 3000, seed),
                Side::new(config, 7000, seed + 1),
            ],
            wire: Wire::new(seed),
            log: Vec::new(),
        }
    }

    /// The client opens.
    pub(crate) fn connect(&mut self) {
        self.open(CLIENT);
        self.flush();
    }

    /// An active open by either side.
    pub(crate) fn open(&mut self, who: usize) {
        let opening = Opening {
            iss: self.sides[who].iss,
            ts_offset: 1_000_000 * u32::try_from(who + 1).unwrap(),
            mss: self.sides[who].mss,
        };
        let connection = self.call(who, |_, env| Connection::connect(&opening, env));
        self.sides[who].peer = Peer::Open(connection);
    }

    /// Opens and waits until both sides are ESTABLISHED.
    pub(crate) fn established(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.connect();
        pair.run_for(Duration::from_millis(50));
        assert_eq!(pair.state(CLIENT), State::Established);
        assert_eq!(pair.state(SERVER), State::Established);
        pair
    }

    /// As `established`, and from now on whatever is sent is lost: what the other side does disturbs no test.
    pub(crate) fn alone(config: &Config) -> Self {
        let mut pair = Self::established(config);
        pair.wire.lost = 1000;
        pair
    }

    pub(crate) fn write(&mut self, who: usize, bytes: &[u8]) {
        self.sides[who].queue.extend(bytes);
    }

    pub(crate) fn connection(&mut self, who: usize) -> &mut Connection {
        match &mut self.sides[who].peer {
            Peer::Open(connection) => connection,
            other => panic!("no connection: {other:?}"),
        }
    }

    pub(crate) fn state(&self, who: usize) -> State {
        match &self.sides[who].peer {
            Peer::Open(connection) => connection.state(),
            Peer::HalfOpen(_) => State::SynReceived,
            _ => State::Closed,
        }
    }

    /// A command of the application to its connection.
    pub(crate) fn command<T>(
        &mut self,
        who: usize,
        command: impl FnOnce(&mut Connection, &mut Env<'_>) -> T,
    ) -> T {
        let mut peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
        let Peer::Open(connection) = &mut peer else {
            panic!("no connection: {peer:?}");
        };
        let result = self.call(who, |_, env| command(connection, env));
        self.sides[who].peer = peer;
        result
    }

    /// Closes, and sends the RST that this may give.
    pub(crate) fn close(&mut self, who: usize) {
        if let Some(reset) = self.command(who, |connection, env| connection.close(env)) {
            self.transmit(who, reset);
            self.sides[who].peer = Peer::Gone;
        }
    }

    /// Sends what is to be sent now.
    pub(crate) fn flush(&mut self) {
        for who in [CLIENT, SERVER] {
            loop {
                let queued = self.sides[who].queue.len() as u64;
                let mut peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
                let next = match &mut peer {
                    Peer::Open(connection) => {
                        self.call(who, |_, env| connection.next_segment(queued, env))
                    }
                    _ => None,
                };
                self.sides[who].peer = peer;
                match next {
                    Some(segment) => self.transmit(who, segment),
                    None => break,
                }
            }
            self.forget_closed(who);
        }
    }

    /// Advances to the next thing that happens, or to `end`; says whether there was one.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        self.flush();
        let next_packet = self
            .wire
            .packets
            .iter()
            .map(|packet| (packet.at, packet.number))
            .min();
        let next_timer = [CLIENT, SERVER]
            .into_iter()
            .filter_map(|who| self.next_timer(who))
            .min();
        let next = match (next_packet, next_timer) {
            (Some((packet, _)), Some(timer)) => packet.min(timer),
            (Some((packet, _)), None) => packet,
            (None, Some(timer)) => timer,
            (None, None) => end,
        };
        if next >= end {
            self.now = self.now.max(end);
            return false;
        }
        self.now = self.now.max(next);
        match next_packet {
            Some((at, number)) if at <= self.now => self.deliver(number),
            _ => self.expire(),
        }
        self.flush();
        true
    }

    pub(crate) fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.step(end) {}
    }

    /// Runs until nothing is queued or on the way and no application waits, or fails after `limit`.
    pub(crate) fn run_until(&mut self, limit: Duration, is_done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !is_done(self) {
            assert!(
                self.step(end),
                "not done after {limit:?}: {}",
                self.ladder(30)
            );
        }
    }

    pub(crate) fn call<T>(
        &mut self,
        who: usize,
        call: impl FnOnce(Instant, &mut Env<'_>) -> T,
    ) -> T {
        let now = self.now;
        let side = &mut self.sides[who];
        let mut env = Env {
            now,
            config: &side.config,
            shared: &mut side.shared,
            segment_bytes_max: side.segment_bytes_max,
            memory_left_bytes: side.memory_left_bytes,
        };
        call(now, &mut env)
    }

    fn next_timer(&self, who: usize) -> Option<Instant> {
        let tick = match &self.sides[who].peer {
            Peer::HalfOpen(half) => Some(half.retransmit_at),
            Peer::Open(connection) => connection.next_timer(),
            Peer::TimeWait(wait) => Some(wait.ends_at),
            Peer::Listening | Peer::Gone => None,
        }?;
        let wait_ms = u64::try_from(tick.since(self.now.tick())).unwrap_or(0);
        let at_ms = self.now.as_millis() + wait_ms;
        Some(Instant::from_nanos(at_ms * 1_000_000).max(self.now))
    }

    fn expire(&mut self) {
        for who in [CLIENT, SERVER] {
            let is_due = self.next_timer(who).is_some_and(|at| at <= self.now);
            if !is_due {
                continue;
            }
            let mut peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
            match &mut peer {
                Peer::Open(connection) => {
                    let events = self.call(who, |_, env| connection.on_timer(env));
                    self.sides[who].events |= events;
                }
                Peer::HalfOpen(half) => match self.call(who, |_, env| half.on_timer(env)) {
                    Some(again) => self.transmit(who, again),
                    None => peer = Peer::Listening,
                },
                Peer::TimeWait(_) => peer = Peer::Gone,
                Peer::Listening | Peer::Gone => {}
            }
            self.sides[who].peer = peer;
        }
    }

    /// A connection that said it is Closed, and has nothing more to send.
    fn forget_closed(&mut self, who: usize) {
        let Peer::Open(connection) = &self.sides[who].peer else {
            return;
        };
        if connection.state() != State::Closed {
            return;
        }
        let peer = core::mem::replace(&mut self.sides[who].peer, Peer::Gone);
        if let Peer::Open(connection) = peer
            && self.sides[who].events.has_any(Events::TIME_WAIT)
        {
            let wait = self.call(who, |_, env| TimeWait::new(&connection, env));
            self.sides[who].peer = Peer::TimeWait(wait);
        }
    }
}

/// Bytes that differ from their neighbours, also a page or a window away.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    core::iter::repeat_with(|| random.next().to_le_bytes())
        .flatten()
        .take(len)
        .collect()
}
