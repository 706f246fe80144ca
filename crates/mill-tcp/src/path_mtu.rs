//! How much the path carries: what routers say of it (RFC 1191, RFC 8201, RFC 5927; RFC 5461), and what is found out where
//! they say nothing (RFC 4821).

use crate::arrived::Events;
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::handshake::TIMESTAMPS_BYTES;
use crate::state::State;
use mill_wire::seq::SeqNumber;

/// Paths that drop large segments silently.
mod black_hole;

/// Larger segments, tried with data.
pub(crate) mod probe;

/// What the connection has found out about its path, for its owner to remember. Sizes are the MTU less all headers but TCP
/// options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews {
    /// Segments of `lost` bytes did not arrive again and again, and then smaller ones did; `mss` is smaller now.
    BlackHole { arrived: u16, lost: u16 },
    /// The probe that was wanted has arrived; `mss` is larger now.
    Arrived(u16),
    /// It has not.
    Lost(u16),
}

/// The smallest MSS that a router is believed, bytes: an MTU of 552 less 40, as Linux's `min_pmtu`. Routers that say
/// less have always been attackers; below it the path would have to fragment.
const PATH_MSS_MIN: u16 = 512;

impl Connection {
    /// A router says that a segment with this sequence number was too large for a path of `mss` (the MTU less all
    /// headers but TCP options). Believed only if that segment is in flight and the MSS smaller and not absurd
    /// (RFC 5927 7.2, RFC 8201 4); says whether it was.
    pub fn on_packet_too_big(&mut self, seq: SeqNumber, mss: u16, env: &mut Env<'_>) -> bool {
        let is_in_flight = self.snd.is_unacknowledged(seq);
        let snd_mss = mss.saturating_sub(options_bytes(self));
        let is_smaller = mss >= PATH_MSS_MIN && snd_mss < self.snd_mss;
        if self.state == State::SynSent && is_smaller {
            return self.on_syn_too_big(seq, mss);
        }
        let is_known = self.state.is_synchronized();
        if !is_known || !is_in_flight || mss < PATH_MSS_MIN {
            return false;
        }
        if snd_mss >= self.snd_mss {
            return self.is_probe_refused(seq, snd_mss, env);
        }
        self.take_smaller(snd_mss, env);
        true
    }

    /// The link itself carries no more than segments of `mss` now (the MTU less all headers but TCP options); says
    /// whether that is less than before.
    pub fn on_smaller_link(&mut self, mss: u16, env: &mut Env<'_>) -> bool {
        let snd_mss = mss.saturating_sub(options_bytes(self)).max(1);
        if !self.state.is_synchronized() || snd_mss >= self.snd_mss {
            return false;
        }
        self.take_smaller(snd_mss, env);
        true
    }

    /// The path is known to carry segments of `mss` (the MTU less all headers but TCP options), be that less or more than
    /// before; `agreed` is what `mss()` gave when the connection was established.
    pub fn on_path(&mut self, mss: u16, agreed: u16, env: &mut Env<'_>) {
        let snd_mss = mss.saturating_sub(options_bytes(self)).max(1).min(agreed);
        if !self.state.is_synchronized() || snd_mss == self.snd_mss {
            return;
        }
        if snd_mss < self.snd_mss {
            self.take_smaller(snd_mss, env);
            return;
        }
        // A search that probes smaller segments at this moment has a reason.
        let is_suspicious = self.cold.as_ref().is_some_and(|cold| {
            let search = &cold.path;
            search.suspected.is_some() || search.news.is_some()
        });
        if !is_suspicious {
            self.take_larger(snd_mss);
        }
    }

    /// What was found out about the path since the last call; to be asked after `Events::PATH_MTU`.
    pub fn take_path_news(&mut self, env: &mut Env<'_>) -> Option<PathNews> {
        let news = self.cold.as_mut()?.path.news.take();
        self.release_cold(env);
        news
    }

    /// Whether there are such.
    #[inline]
    pub(crate) fn has_path_news(&self) -> bool {
        let cold = self.cold.as_deref();
        cold.is_some_and(|cold| cold.path.has_news())
    }

    fn take_larger(&mut self, snd_mss: u16) {
        self.snd_mss = snd_mss;
        self.congestion.on_mss(snd_mss.into());
    }

    fn take_smaller(&mut self, snd_mss: u16, env: &mut Env<'_>) {
        if let Some(mut cold) = self.cold.take() {
            // A probe of what is smaller than the path was before says nothing any more.
            self.end_path_probe(&mut cold, env);
            cold.path = probe::PathSearch::default();
            self.cold = Some(cold);
        }
        self.snd_mss = snd_mss;
        self.on_smaller_mss(env);
    }

    /// A router refuses the probe that is out, and nothing that is not larger than other segments.
    fn is_probe_refused(&mut self, seq: SeqNumber, snd_mss: u16, env: &mut Env<'_>) -> bool {
        let Some(mut cold) = self.cold.take() else {
            return false;
        };
        let search = &cold.path;
        let len = search.probe_bytes;
        let is_refused = snd_mss < len && search.probe_end == Some(seq + u32::from(len));
        if is_refused {
            self.end_path_probe(&mut cold, env);
        }
        self.cold = Some(cold);
        if is_refused {
            self.on_smaller_mss(env);
        }
        is_refused
    }

    /// A router or the peer says that it can't be reached. Ends an active open if hard (RFC 1122 4.2.3.9, RFC 5461);
    /// a connection that is established goes on: retransmission finds out whether it is true. Says whether the
    /// connection is Closed now.
    pub fn on_unreachable(&mut self, seq: SeqNumber, hard: bool, env: &mut Env<'_>) -> bool {
        // RFC 5927 4: the SYN it quotes is ours.
        let is_ours = seq == self.snd.una() && self.snd.is_unacknowledged(seq);
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        if hard && is_opening && is_ours {
            self.end(Events::REFUSED, env);
            return true;
        }
        false
    }
}

/// Bytes of TCP options in every segment.
fn options_bytes(connection: &Connection) -> u16 {
    if connection.flags.has(ConnectionFlags::TIMESTAMPS) {
        TIMESTAMPS_BYTES
    } else {
        0
    }
}
