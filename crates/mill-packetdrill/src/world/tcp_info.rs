//! `struct tcp_info` of Linux, as far as the stack has its numbers; the others are 0.
//!
//! ```text
//! 0 state  1 ca_state  2 retransmits  3 probes  4 backoff  5 options  6 wscale  7 flags
//! 8 rto  12 ato  16 snd_mss  20 rcv_mss  24 unacked  28 sacked  32 lost  36 retrans  40 fackets
//! 44 .. 60 times of the last …  60 pmtu  64 rcv_ssthresh  68 rtt  72 rttvar  76 snd_ssthresh
//! 80 snd_cwnd  84 advmss  88 reordering …
//! ```

use mill_stack::tcp::info::{CongestionState, Info};
use mill_stack::tcp::state::State;
use mill_stack::tcp::time::Duration;

/// More bytes than any kernel's structure has; a caller takes what it has room for.
const BYTES: usize = 512;

const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_WSCALE: u8 = 4;
const OPTION_ECN: u8 = 8;
const OPTION_SYN_DATA: u8 = 32;

/// `TCP_LISTEN`, also for a socket that does nothing yet.
const LISTEN: u8 = 10;

/// `mss_announced` is what our SYN said.
pub(super) fn to_bytes(info: Option<&Info>, mss_announced: u16) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    let Some(info) = info else {
        bytes[0] = LISTEN;
        return bytes;
    };
    bytes[0] = state(info.state);
    bytes[1] = congestion_state(info.congestion_state);
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
        (24, info.in_flight.div_ceil(mss)),
        (28, info.sacked.div_ceil(mss)),
        (32, info.lost.div_ceil(mss)),
        (36, info.retransmitted.div_ceil(mss)),
        (68, micros(info.rtt)),
        (72, micros(info.rtt_variation)),
        (76, ssthresh),
        (80, info.cwnd / mss),
        (84, mss_announced.into()),
        (88, (info.reordering / mss).max(REORDERING_MIN)),
    ] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
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
