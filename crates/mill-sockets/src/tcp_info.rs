//! `struct tcp_info` of Linux, as far as the stack has its numbers; the others are 0.
//!
//! ```text
//! 0 state  1 ca_state  2 retransmits  3 probes  4 backoff  5 options  6 wscale  7 flags
//! 8 rto  12 ato  16 snd_mss  20 rcv_mss  24 unacked  28 sacked  32 lost  36 retrans  40 fackets
//! 44 .. 60 times of the last …  60 pmtu  64 rcv_ssthresh  68 rtt  72 rttvar  76 snd_ssthresh
//! 80 snd_cwnd  84 advmss  88 reordering … 120 bytes_acked … 144 notsent_bytes  148 min_rtt
//! … 220 reord_seen … 228 snd_wnd  232 rcv_wnd …
//! ```

use mill_tcp::info::{CongestionState, Info};
use mill_tcp::state::State;
use mill_tcp::time::Duration;

/// More bytes than any kernel's structure has; a caller takes what it has room for.
const BYTES: usize = 512;

const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_WSCALE: u8 = 4;
const OPTION_ECN: u8 = 8;
const OPTION_SYN_DATA: u8 = 32;

/// `TCP_LISTEN`, also for a socket that does nothing yet.
const LISTEN: u8 = 10;

/// What is known of a connection beside its [`Info`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// What our SYN said.
    pub mss_announced: u16,
    /// Bytes of the headers of IP and TCP.
    pub headers: u16,
    /// Bytes that the peer has acknowledged, and that were not sent yet.
    pub acked: u64,
    pub not_sent: u64,
}

/// The structure's bytes; without a connection, those of a listener.
pub fn to_bytes(info: Option<&Info>, beside: Beside) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    let Some(info) = info else {
        bytes[0] = LISTEN;
        return bytes;
    };
    bytes[0] = state(info.state);
    bytes[1] = congestion_state(info.congestion_state);
    bytes[3] = info.probes;
    bytes[4] = info.backoff;
    for (is_on, bit) in [
        (info.timestamps, OPTION_TIMESTAMPS),
        (info.sack, OPTION_SACK),
        (
            info.snd_wind_shift | info.rcv_wind_shift != 0,
            OPTION_WSCALE,
        ),
        (info.ecn, OPTION_ECN),
        (info.syn_text_taken, OPTION_SYN_DATA),
    ] {
        bytes[5] |= if is_on { bit } else { 0 };
    }
    bytes[6] = (info.snd_wind_shift & 0xf) | (info.rcv_wind_shift << 4);
    let mss = u32::from(info.mss).max(1);
    let ssthresh = match info.ssthresh {
        // Linux's TCP_INFINITE_SSTHRESH.
        u32::MAX => 0x7fff_ffff,
        bytes => bytes / mss,
    };
    for (at, value) in [
        (8, micros(info.rto)),
        (16, mss),
        (20, info.rcv_mss.into()),
        (24, info.in_flight.div_ceil(mss)),
        (28, info.sacked.div_ceil(mss)),
        (32, info.lost.div_ceil(mss)),
        (36, info.retransmitted.div_ceil(mss)),
        (60, mss + u32::from(beside.headers) + options_bytes(info)),
        (64, info.rcv_wnd),
        (68, micros(info.rtt)),
        (72, micros(info.rtt_variation)),
        (76, ssthresh),
        (80, info.cwnd / mss),
        (84, beside.mss_announced.into()),
        (88, (info.reordering / mss).max(REORDERING_MIN)),
        (144, u32::try_from(beside.not_sent).unwrap_or(u32::MAX)),
        (148, micros(info.rtt_min)),
        (220, u32::from(info.reordering_seen)),
        (228, info.snd_wnd),
        (232, info.rcv_wnd),
    ] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes[120..128].copy_from_slice(&beside.acked.to_ne_bytes());
    bytes
}

/// Bytes of TCP's options in every segment.
const fn options_bytes(info: &Info) -> u32 {
    if info.timestamps { 12 } else { 0 }
}

/// Segments by which a segment may be late without being held for lost (`tcp_reordering`).
const REORDERING_MIN: u32 = 3;

/// Linux's `enum tcp_ca_state`.
const fn congestion_state(state: CongestionState) -> u8 {
    match state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Cwr => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Linux's numbers, in the order of net/tcp_states.h.
const fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}
