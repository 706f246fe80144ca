//! Streams of which the program was told something that it may answer: until it does, or has nothing to say, their acknowledgements wait
//! ([`mill_tcp::config::Config::lazy_acks`]). A program that handles many events in a row would send an acknowledgement and an answer for
//! each otherwise, as turns lie between.

use crate::socket::SocketNumber;
use mill_tcp::time::{Duration, Instant};

/// Since the program had nothing to say last.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// Some of them twice, some that have ended since.
    pub(super) streams: Vec<SocketNumber>,
    /// When the first of them was noted.
    since: Option<Instant>,
}

impl Unanswered {
    #[inline]
    pub(super) fn note(&mut self, stream: SocketNumber, now: Instant) {
        if self.streams.is_empty() {
            self.since = Some(now);
        }
        self.streams.push(stream);
    }

    /// Whether they have waited as long as they may.
    #[inline]
    pub(super) fn have_waited(&self, now: Instant) -> bool {
        let waited = self.since.map(|since| now.since(since));
        !self.streams.is_empty() && waited.is_some_and(|waited| waited >= PATIENCE)
    }
}

/// As long as a program takes for some hundred events. A peer that measures the round trip finds it that much longer at most.
const PATIENCE: Duration = Duration::from_millis(2);
