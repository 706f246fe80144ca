//! What `ss -ti` would show.

use crate::config::Config;
use crate::connection::{Connection, ConnectionFlags};
use crate::recovery::Phase;
use crate::state::State;
use crate::time::Duration;
use mill_wire::seq::SeqNumber;

/// A connection's figures as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pub state: State,
    pub rtt: Duration,
    pub rtt_variation: Duration,
    /// Zero before the first measurement.
    pub rtt_min: Duration,
    pub rto: Duration,
    pub mss: u16,
    /// The largest segment seen from the peer lately, bytes.
    pub rcv_mss: u16,
    /// Bytes.
    pub cwnd: u32,
    pub ssthresh: u32,
    pub snd_wnd: u32,
    /// The window that the peer knows of.
    pub rcv_wnd: u32,
    /// Sent and not acknowledged.
    pub in_flight: u32,
    pub congestion_state: CongestionState,
    /// Of what is in flight, bytes that the peer has reported; without SACK, one segment for each duplicate
    /// acknowledgement.
    pub sacked: u32,
    /// … that were held for lost, whether they were sent again or wait for it.
    pub lost: u32,
    /// … that were sent again and are neither reported nor held for lost once more.
    pub retransmitted: u32,
    /// A segment has arrived behind one that was sent later.
    pub reordering_seen: bool,
    /// … and how far behind at most, while something has been in flight without a break; bytes.
    pub reordering: u32,
    pub backoff: u8,
    /// Probes without an answer: of a closed window, or whether the peer is there.
    pub probes: u8,
    pub snd_wind_shift: u8,
    pub rcv_wind_shift: u8,
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
    /// The SYN carried text, which was taken with it (RFC 7413).
    pub syn_text_taken: bool,
}

/// What loss recovery is doing, in the words of `ss` and of Linux's `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionState {
    #[default]
    Open,
    /// Something arrived ahead of what is missing, and nothing is held for lost yet.
    Disorder,
    /// ECN signalled congestion, and the window is being reduced.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// The retransmission timer has expired, or the path takes only smaller segments.
    Loss,
}

/// What is known of the bytes in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flight {
    state: CongestionState,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    reordering: u32,
}

impl Connection {
    /// SND.NXT and RCV.NXT (RFC 9293 3.3.1).
    pub fn next_numbers(&self) -> (SeqNumber, SeqNumber) {
        (self.snd.nxt(), self.rcv.nxt())
    }

    /// The figures; `rto` is without backoff.
    pub fn info(&self, config: &Config) -> Info {
        let flight = self.flight();
        Info {
            state: self.state,
            rtt: micros(self.rtt.srtt_us()),
            rtt_variation: micros(self.rtt.rttvar_us()),
            rtt_min: micros(self.rtt.min_us()),
            rto: Duration::from_micros(self.rto_base_us(config)),
            mss: self.snd_mss,
            rcv_mss: self.rcv.mss(),
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            snd_wnd: self.snd.wnd(),
            rcv_wnd: self.rcv.wnd(),
            in_flight: self.in_flight(),
            congestion_state: flight.state,
            sacked: flight.sacked,
            lost: flight.lost,
            retransmitted: flight.retransmitted,
            reordering_seen: self.flags.has(ConnectionFlags::REORDERED),
            reordering: flight.reordering,
            backoff: self.timer.backoff(),
            probes: if self.is_persisting() {
                self.timer.backoff()
            } else {
                self.timer.probes()
            },
            snd_wind_shift: self.shifts.snd(),
            rcv_wind_shift: self.shifts.rcv(),
            timestamps: self.flags.has(ConnectionFlags::TIMESTAMPS),
            sack: self.flags.has(ConnectionFlags::SACK),
            ecn: self
                .flags
                .has_any(ConnectionFlags::ECN | ConnectionFlags::ACCURATE),
            syn_text_taken: self.flags.has(ConnectionFlags::SYN_TEXT_TAKEN),
        }
    }

    fn flight(&self) -> Flight {
        let Some(cold) = &self.cold else {
            return Flight::default();
        };
        let scoreboard = &cold.scoreboard;
        let sacked = scoreboard.outstanding_bytes() - scoreboard.lost_bytes() - self.pipe(cold);
        let retransmitted = scoreboard.resent_bytes();
        Flight {
            state: match cold.recovery.phase() {
                Phase::Open if sacked > 0 => CongestionState::Disorder,
                Phase::Open => CongestionState::Open,
                Phase::Reduced => CongestionState::Cwr,
                Phase::Recovery => CongestionState::Recovery,
                Phase::Loss => CongestionState::Loss,
            },
            sacked,
            // A segment repeated by a loss probe was never marked lost; it is not distinguished.
            lost: scoreboard.lost_bytes() + retransmitted,
            retransmitted,
            reordering: cold.recovery.reordered_bytes(),
        }
    }
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(u64::from(micros))
}

#[cfg(test)]
mod tests;
