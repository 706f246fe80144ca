//! What routers say of the path (RFC 1191, RFC 8201, RFC 5927; RFC 5461).

use crate::arrived::Events;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::handshake::TIMESTAMPS_BYTES;
use crate::state::State;
use mill_wire::seq::SeqNumber;

/// The smallest MSS that a router is believed, bytes: an MTU of 552 less 40, as Linux's `min_pmtu`. Routers that say
/// less have always been attackers; below it the path would have to fragment.
const PATH_MSS_MIN: u16 = 512;

impl Connection {
    /// A router says that a segment with this sequence number was too large for a path of `mss` (the MTU less all
    /// headers but TCP options). Believed only if that segment is in flight and the MSS smaller and not absurd
    /// (RFC 5927 7.2, RFC 8201 4); says whether it was.
    pub fn on_packet_too_big(&mut self, seq: SeqNumber, mss: u16, env: &mut Env<'_>) -> bool {
        let has_timestamps = self.flags.has(ConnectionFlags::TIMESTAMPS);
        let options = if has_timestamps { TIMESTAMPS_BYTES } else { 0 };
        let is_in_flight = seq.is_at_or_after(self.snd_una) && seq.is_before(self.snd_nxt);
        let snd_mss = mss.saturating_sub(options);
        let is_sensible = mss >= PATH_MSS_MIN && snd_mss < self.snd_mss;
        if self.state == State::SynSent && is_sensible {
            return self.on_syn_too_big(seq, mss);
        }
        let is_known = self.state.is_synchronized();
        if !is_known || !is_in_flight || !is_sensible {
            return false;
        }
        self.snd_mss = snd_mss;
        self.on_smaller_mss(env);
        true
    }

    /// The link itself carries no more than segments of `mss` now (the MTU less all headers but TCP options); says
    /// whether that is less than before.
    pub fn on_smaller_link(&mut self, mss: u16, env: &mut Env<'_>) -> bool {
        let has_timestamps = self.flags.has(ConnectionFlags::TIMESTAMPS);
        let options = if has_timestamps { TIMESTAMPS_BYTES } else { 0 };
        let snd_mss = mss.saturating_sub(options).max(1);
        if !self.state.is_synchronized() || snd_mss >= self.snd_mss {
            return false;
        }
        self.snd_mss = snd_mss;
        self.on_smaller_mss(env);
        true
    }

    /// A router or the peer says that it can't be reached. Ends an active open if hard (RFC 1122 4.2.3.9, RFC 5461);
    /// a connection that is established goes on: retransmission finds out whether it is true. Says whether the
    /// connection is Closed now.
    pub fn on_unreachable(&mut self, seq: SeqNumber, hard: bool, env: &mut Env<'_>) -> bool {
        // RFC 5927 4: the SYN it quotes is ours.
        let is_ours = seq == self.snd_una && self.snd_nxt != self.snd_una;
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        if hard && is_opening && is_ours {
            self.end(Events::REFUSED, env);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests;
