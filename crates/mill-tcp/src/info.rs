//! What `ss -ti` would show.

use crate::connection::Connection;
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
    pub fn info(&self) -> Info {
        Info {
            state: self.state,
            mss: self.snd_mss,
            ..Info::default()
        }
    }
}
