//! What peers learn when the process of a stack is killed: its connections are noted where the process finds them that has the
//! link next, which tells their peers.

use crate::bypass::BypassLink;
use alloc::vec::Vec;
use mill_runtime::time::{Duration, Instant};
use mill_stack::host::Host;
use mill_stack::host::farewell::OTHER_TIMESTAMP;
use mill_stack::host::tables::NextNumbers;
use mill_stack::queue::SendQueue;

/// How far both are.
#[derive(Debug)]
pub(crate) struct Noting {
    /// The slot to go on with.
    next: u32,
    /// When the next slots are noted.
    at: Instant,
    /// Frames of the host when this round of all slots, or the last one, began: without others there is nothing new to note.
    frames: u64,
    /// Of a killed process, and how many of them have been told.
    left: Vec<NextNumbers>,
    told: usize,
    /// When they are told once more, in case that segments are lost or their answers were another process's.
    again_at: Option<Instant>,
}

impl Noting {
    /// Takes what the process has left that had the link before. The host's connections are noted as they begin from now on.
    pub(crate) fn new<Q: SendQueue, L: BypassLink>(
        host: &mut Host<Q>,
        link: &mut L,
        now: Instant,
    ) -> Self {
        host.list_young(true);
        let left = link.take_left();
        Self {
            next: 0,
            at: now,
            frames: 0,
            again_at: (!left.is_empty()).then(|| now + AGAIN_AFTER),
            left,
            told: 0,
        }
    }

    /// The part of a turn. Cheap until the next time has come.
    pub(crate) fn go_on<Q: SendQueue, L: BypassLink>(
        &mut self,
        host: &mut Host<Q>,
        link: &mut L,
        now: Instant,
    ) {
        if self.told < self.left.len() {
            self.tell(host);
        } else if self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            self.told = 0;
            self.tell(host);
        } else if self.again_at.is_none() && !self.left.is_empty() {
            self.left = Vec::new();
        }
        if self.at <= now {
            self.note(host, link);
            self.at = now + INTERVAL;
        }
    }

    /// Notes the connections that have begun in this turn, after what they send has been written and before it leaves: a peer that
    /// has all of its own acknowledged, and waits for the rest of an answer, would never hear of their end.
    pub(crate) fn note_young<Q: SendQueue, L: BypassLink>(&self, host: &mut Host<Q>, link: &mut L) {
        host.note_young(|slot, numbers| link.note(slot, numbers));
    }

    /// When a turn has to come without another reason.
    pub(crate) fn next_turn<Q: SendQueue>(&self, host: &Host<Q>) -> Option<Instant> {
        let has_news = self.next != 0 || self.frames != frames(host);
        let noting = has_news.then_some(self.at);
        noting.into_iter().chain(self.again_at).min()
    }

    /// Whether some are to be told without waiting.
    pub(crate) const fn is_telling(&self) -> bool {
        self.told < self.left.len()
    }

    fn tell<Q: SendQueue>(&mut self, host: &mut Host<Q>) {
        let rest = self.left.get(self.told..).unwrap_or_default();
        let some = rest.get(..TOLD_AT_ONCE).unwrap_or(rest);
        let timestamp = match self.again_at {
            Some(_) => 0,
            None => OTHER_TIMESTAMP,
        };
        for numbers in some {
            host.tell_ended(numbers, timestamp);
        }
        self.told += some.len();
    }

    fn note<Q: SendQueue, L: BypassLink>(&mut self, host: &Host<Q>, link: &mut L) {
        if self.next == 0 {
            let frames = frames(host);
            if core::mem::replace(&mut self.frames, frames) == frames {
                return;
            }
        }
        let (slots, next) = host.next_numbers_from(self.next, NOTED_AT_ONCE);
        for (slot, numbers) in slots {
            link.note(slot, numbers);
        }
        self.next = next.unwrap_or(0);
    }
}

fn frames<Q: SendQueue>(host: &Host<Q>) -> u64 {
    let counters = host.counters();
    counters.frames_in + counters.frames_out
}

/// How long what has happened to a connection may be unknown to the next process. The time of noting is a thousandth of it.
const INTERVAL: Duration = Duration::from_millis(10);

/// Slots of one time: about ten microseconds.
const NOTED_AT_ONCE: u32 = 1024;

/// Connections whose peers are told in a turn; two frames each.
const TOLD_AT_ONCE: usize = 128;

/// Answers of peers are dropped for a second where the process before may have had the connections (mill-device `handover.rs`);
/// and a peer answers one such probe in half a second (Linux: `tcp_invalid_ratelimit`).
const AGAIN_AFTER: Duration = Duration::from_millis(1200);
