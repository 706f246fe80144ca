//! What `ss -ti` would show.

use crate::config::Config;
use crate::connection::{Connection, ConnectionFlags};
use crate::state::State;
use crate::time::Duration;

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
    /// Bytes.
    pub cwnd: u32,
    pub ssthresh: u32,
    pub snd_wnd: u32,
    /// The window that the peer knows of.
    pub rcv_wnd: u32,
    /// Sent and not acknowledged.
    pub in_flight: u32,
    pub backoff: u8,
    pub snd_wind_shift: u8,
    pub rcv_wind_shift: u8,
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
}

impl Connection {
    /// The figures; `rto` is without backoff.
    pub fn info(&self, config: &Config) -> Info {
        Info {
            state: self.state,
            rtt: micros(self.srtt_us),
            rtt_variation: micros(self.rttvar_us),
            rtt_min: micros(self.rtt_min_us),
            rto: self.rto_with(config),
            mss: self.snd_mss,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            snd_wnd: self.snd_wnd,
            rcv_wnd: self.rcv_wnd(),
            in_flight: self.in_flight(),
            backoff: self.backoff,
            snd_wind_shift: self.snd_wind_shift,
            rcv_wind_shift: self.rcv_wind_shift,
            timestamps: self.flags.has(ConnectionFlags::TIMESTAMPS),
            sack: self.flags.has(ConnectionFlags::SACK),
            ecn: self.flags.has(ConnectionFlags::ECN),
        }
    }
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(u64::from(micros))
}
