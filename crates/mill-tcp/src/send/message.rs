//! Messages (`MSG_EOR`): what follows one does not share a segment with it, the first time or again.

use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::state::State;
use mill_wire::seq::SeqNumber;

impl Connection {
    /// What is queued now, so many bytes, ends a message. It costs four bytes until the message has been sent.
    pub fn end_message(&mut self, queued: u64, env: &mut Env<'_>) {
        // Sequence numbers tell the order of ends only within half of their range; no application queues messages
        // that long.
        let Ok(queued) = u32::try_from(queued.min(QUEUED_MAX + 1)) else {
            return;
        };
        if u64::from(queued) > QUEUED_MAX {
            return;
        }
        let is_syn_open = matches!(self.state, State::SynSent | State::SynReceived);
        let syn = u32::from(is_syn_open && !self.is_fast_open());
        let end = self.snd.una() + syn + queued;
        if end.is_at_or_before(self.snd.nxt()) {
            return;
        }
        self.flags.set(ConnectionFlags::MESSAGES, true);
        let ends = &mut self.cold_part(env).message_ends;
        if ends.back() != Some(&end) {
            ends.push_back(end);
        }
    }

    /// Of `unsent` bytes, those until the end of the message.
    #[inline]
    pub(super) fn until_message_end(&mut self, unsent: u32) -> u32 {
        if self.flags.has(ConnectionFlags::MESSAGES) {
            self.rest_of_message(unsent)
        } else {
            unsent
        }
    }

    fn rest_of_message(&mut self, unsent: u32) -> u32 {
        let sent = self.snd.nxt();
        let Some(cold) = &mut self.cold else {
            return unsent;
        };
        while let Some(end) = cold.message_ends.front() {
            if end.is_after(sent) {
                return unsent.min(*end - sent);
            }
            cold.message_ends.pop_front();
        }
        self.flags.set(ConnectionFlags::MESSAGES, false);
        unsent
    }

    /// Whether a message ends before `at`.
    pub(super) fn is_message_end(&self, at: SeqNumber) -> bool {
        if !self.flags.has(ConnectionFlags::MESSAGES) {
            return false;
        }
        let ends = self.cold.as_ref().map(|cold| &cold.message_ends);
        ends.and_then(|ends| ends.front()) == Some(&at)
    }
}

/// Bytes of a queue in which the ends of messages are kept.
const QUEUED_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::pair::{Pair, SERVER, pattern};
    use crate::segment::SegmentOut;
    use crate::time::Duration;
    use alloc::vec::Vec;
    use mill_wire::tcp::Flags;

    const MSS: u32 = 1_448;

    /// Writes of so many bytes, each of which ends a message or not.
    fn write(pair: &mut Pair, writes: &[(u32, bool)]) {
        for (len, ends) in writes {
            pair.write(SERVER, &pattern(*len as usize));
            if *ends {
                let queued = pair.sides[SERVER].queue.len() as u64;
                pair.command(SERVER, |connection, env| {
                    connection.end_message(queued, env);
                });
            }
        }
    }

    fn lens(sent: &[SegmentOut]) -> Vec<u32> {
        sent.iter().map(|segment| segment.len).collect()
    }

    /// The lengths of the segments that these writes leave in.
    fn check(writes: &[(u32, bool)], expected: &[u32]) {
        let config = Config::with(|config| config.nodelay = false);
        let mut pair = Pair::alone(&config);
        write(&mut pair, writes);
        let before = pair.log.len();
        pair.flush();
        let sent = pair.sent_since(before, SERVER);
        assert_eq!(lens(&sent), expected, "{writes:?}");
    }

    #[test]
    fn what_follows_a_message_has_a_segment_of_its_own() {
        check(&[(400, false), (400, false), (200, false)], &[1_000]);
        check(&[(400, true), (400, true), (200, true)], &[400, 400]);
        check(&[(400, true), (400, true), (MSS, false)], &[400, 400, MSS]);
        check(&[(400, false), (400, true), (MSS, false)], &[800, MSS]);
        check(&[(MSS, true), (MSS, true), (MSS, false)], &[MSS, MSS, MSS]);
        check(
            &[(2 * MSS + 100, true), (2 * MSS, false)],
            &[MSS, MSS, 100, MSS, MSS],
        );
    }

    #[test]
    fn the_end_of_a_message_is_pushed() {
        let mut pair = Pair::alone(&Config::default());
        write(&mut pair, &[(400, true), (MSS, true), (5_000, false)]);
        let before = pair.log.len();
        pair.flush();
        let sent = pair.sent_since(before, SERVER);
        assert!(sent[..2].iter().all(|sent| sent.flags.has(Flags::PSH)));
    }

    /// All but the last message is lost.
    #[test]
    fn messages_are_sent_again_one_by_one() {
        let mut pair = Pair::alone(&Config::default());
        write(
            &mut pair,
            &[
                (400, true),
                (MSS, true),
                (MSS, true),
                (300, true),
                (MSS, false),
            ],
        );
        pair.flush();
        pair.run_for(Duration::from_millis(20));
        let mut draft = pair.draft(SERVER);
        draft.ack = pair.connection(SERVER).snd.una();
        let begin = draft.ack + 400 + 2 * MSS + 300;
        draft.options.sack.push(begin, begin + MSS);
        let before = pair.log.len();
        pair.give(SERVER, &draft);
        pair.run_for(Duration::from_millis(40));
        let again = pair.sent_since(before, SERVER);
        assert_eq!(lens(&again), [400, MSS, MSS, 300]);
    }
}
