//! What the two SYNs of a connection agree on (RFC 9293 3.7.1; RFC 7323 2, 3; RFC 2018 2; RFC 3168 6.1.1).

use crate::config::{Config, EcnMode};
use crate::connection::{Connection, ConnectionFlags};
use crate::env::Env;
use crate::segment::Segment;
use crate::timestamps::TimestampState;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{TcpOptions, Timestamps};

/// MSS of a peer that announces none (RFC 9293 3.7.1), bytes. IPv6 would allow 1220; 536 is right for both.
pub(crate) const MSS_DEFAULT: u16 = 536;

/// The smallest MSS that is believed, bytes: Linux's `TCP_MIN_SND_MSS`. Smaller ones make a peer cheap and us dear
/// (CVE-2019-11479).
pub(crate) const MSS_MIN: u16 = 48;

/// The largest shift (RFC 7323 2.3): windows stay below 2^30.
pub(crate) const WIND_SHIFT_MAX: u8 = 14;

/// Bytes that timestamps take in every segment, padding included (RFC 7323 appendix A).
pub(crate) const TIMESTAMPS_BYTES: u16 = 12;

/// What the peer's SYN and our settings have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// What the peer announced.
    pub(crate) mss: u16,
    pub(crate) snd_wind_shift: Option<u8>,
    /// The peer's first timestamp.
    pub(crate) timestamps: Option<u32>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

impl Agreement {
    /// From the peer's SYN or SYN-ACK.
    pub(crate) fn with(syn: &Segment<'_>, config: &Config) -> Self {
        debug_assert!(syn.flags.has(Flags::SYN));
        let options = syn.options;
        Self {
            mss: options.mss.unwrap_or(MSS_DEFAULT),
            // RFC 7323 2.3: a larger shift than 14 is taken as 14.
            snd_wind_shift: options
                .window_scale
                .filter(|_| config.window_scaling)
                .map(|shift| shift.min(WIND_SHIFT_MAX)),
            timestamps: options
                .timestamps
                .filter(|_| config.timestamps)
                .map(|timestamps| timestamps.value),
            sack: options.sack_permitted && config.sack,
            ecn: is_ecn_setup(syn.flags, config.ecn),
        }
    }
}

/// Whether a SYN asks for, or a SYN-ACK accepts, classic ECN that we want (RFC 3168 6.1.1). A SYN with AE too asks for
/// accurate ECN, and is content with the classic one (RFC 9768 3.1.2).
fn is_ecn_setup(flags: Flags, mode: EcnMode) -> bool {
    match (flags.has(Flags::ACK), mode) {
        (_, EcnMode::Off) | (true, EcnMode::Accept | EcnMode::AcceptAccurate) => false,
        (false, _) => flags.has(Flags::ECE | Flags::CWR),
        (true, EcnMode::Ask) => flags.has(Flags::ECE) && !flags.has_any(Flags::CWR | Flags::AE),
    }
}

/// The shift for a buffer that may grow to `receive_buffer_bytes_max`: the smallest with which the largest window
/// fits into 16 bits.
pub(crate) fn wind_shift(config: &Config) -> u8 {
    let bits = 32 - config.receive_buffer_bytes_max.leading_zeros();
    let shift = u8::try_from(bits.saturating_sub(16)).unwrap_or(WIND_SHIFT_MAX);
    shift.min(WIND_SHIFT_MAX)
}

/// The window of a SYN or SYN-ACK, which is never scaled (RFC 7323 2.2).
pub(crate) fn syn_window(config: &Config) -> u16 {
    u16::try_from(config.receive_buffer_bytes).unwrap_or(u16::MAX)
}

/// Payload bytes of a full segment: what both sides can take, less the options of every segment (RFC 6691).
pub(crate) fn effective_mss(peer: u16, local: u16, timestamps: bool) -> u16 {
    let options = if timestamps { TIMESTAMPS_BYTES } else { 0 };
    peer.min(local).saturating_sub(options).max(MSS_MIN)
}

/// The options of a SYN-ACK that answers what was agreed.
pub(crate) fn syn_ack_options(
    agreement: &Agreement,
    mss_local: u16,
    ts: &TimestampState,
    env: &Env<'_>,
) -> TcpOptions {
    TcpOptions {
        mss: Some(mss_local),
        window_scale: agreement.snd_wind_shift.map(|_| wind_shift(env.config)),
        sack_permitted: agreement.sack,
        timestamps: agreement.timestamps.map(|echo| Timestamps {
            value: ts.value_at(env.tick()),
            echo,
        }),
        ..TcpOptions::default()
    }
}

impl Connection {
    /// Makes what was agreed the connection's own, but for the scale of the peer's window: the window of a SYN is
    /// not scaled, and `snd_wind_shift` is set when that has been read.
    pub(crate) fn agree(&mut self, agreement: &Agreement, mss_local: u16, env: &Env<'_>) {
        let flags = &mut self.flags;
        flags.set(ConnectionFlags::TIMESTAMPS, agreement.timestamps.is_some());
        flags.set(ConnectionFlags::SACK, agreement.sack);
        flags.set(ConnectionFlags::ECN, agreement.ecn);
        flags.set(ConnectionFlags::SCALING, agreement.snd_wind_shift.is_some());
        self.ts.set_recent(agreement.timestamps.unwrap_or_default());
        self.snd_mss = effective_mss(agreement.mss, mss_local, agreement.timestamps.is_some());
        self.shifts.set_rcv(
            agreement
                .snd_wind_shift
                .map_or(0, |_| wind_shift(env.config)),
        );
    }
}

#[cfg(test)]
mod tests;
