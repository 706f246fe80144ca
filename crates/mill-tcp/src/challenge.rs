//! Answers to segments that may be forged, and their limits (RFC 5961 5, 7).

use crate::connection::{Connection, ConnectionFlags};
use crate::env::{Env, Shared};
use crate::segment::Segment;

impl Connection {
    /// A challenge ACK (RFC 5961 3.2, 4.2, 5.2), if the connection's and the host's limits allow one.
    pub(crate) fn challenge(&mut self, env: &mut Env<'_>) {
        if !self.may_answer_invalid(env) {
            env.shared.counters.challenge_acks_suppressed += 1;
            return;
        }
        if allows_challenge(env) {
            self.note_invalid_answer(env);
            self.flags.set(ConnectionFlags::ACK_NOW, true);
        }
    }

    /// The acknowledgement that an unacceptable segment gets (RFC 9293 3.10.7.4, first). What carries data is always
    /// answered; what carries none may be one half of a loop of such answers, and is answered now and then.
    pub(crate) fn answer_unacceptable(&mut self, segment: &Segment<'_>, env: &Env<'_>) {
        if segment.payload.is_empty() {
            if !self.may_answer_invalid(env) {
                return;
            }
            self.note_invalid_answer(env);
        }
        self.flags.set(ConnectionFlags::ACK_NOW, true);
    }

    /// Linux's `tcp_invalid_ratelimit`: one such answer of this connection in so long.
    fn may_answer_invalid(&self, env: &Env<'_>) -> bool {
        let elapsed_ms = answer_tick(env).wrapping_sub(self.invalid_answered_at);
        !self.flags.has(ConnectionFlags::INVALID_ANSWERED)
            || u128::from(elapsed_ms) >= env.config.invalid_ratelimit.as_millis()
    }

    fn note_invalid_answer(&mut self, env: &Env<'_>) {
        self.invalid_answered_at = answer_tick(env);
        self.flags.set(ConnectionFlags::INVALID_ANSWERED, true);
    }
}

/// Whether this second still allows a challenge ACK; counts it. Each second begins with a random number between half and
/// one and a half times the setting (RFC 5961 7; CVE-2016-5696).
pub(crate) fn allows_challenge(env: &mut Env<'_>) -> bool {
    let second = env.now.as_millis() / 1000;
    let limit = env.config.challenge_acks_per_second;
    let Shared {
        counters,
        random,
        challenge_acks,
        ..
    } = &mut *env.shared;
    if challenge_acks.second != second + 1 {
        // Zero stands for no second at all.
        challenge_acks.second = second + 1;
        let spread = random.below(u64::from(limit) + 1);
        challenge_acks.left = (limit / 2).saturating_add(u32::try_from(spread).unwrap_or(0));
    }
    if challenge_acks.left == 0 {
        counters.challenge_acks_suppressed += 1;
        return false;
    }
    challenge_acks.left -= 1;
    counters.challenge_acks += 1;
    true
}

/// Ticks modulo 2^16.
#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
const fn answer_tick(env: &Env<'_>) -> u16 {
    env.tick().0 as u16
}

#[cfg(test)]
mod tests;
