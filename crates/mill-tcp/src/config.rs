//! What can be set, with defaults as Linux has them.

use crate::time::Duration;

/// The settings of connections. The owner may have several, and lends a connection the one that is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Segments of the first window (RFC 6928).
    pub initial_window_segments: u32,
    /// Offer and accept window scaling (RFC 7323 2).
    pub window_scaling: bool,
    /// Offer and accept timestamps (RFC 7323 3).
    pub timestamps: bool,
    /// Offer and accept selective acknowledgements (RFC 2018).
    pub sack: bool,
    pub ecn: EcnMode,
    pub congestion: Algorithm,
    /// CUBIC and Reno spread their window over the round trip; BBR always has a pace. Linux: what the `fq` queueing discipline
    /// does, or `SO_MAX_PACING_RATE`.
    pub pacing: bool,
    /// HyStart++ (RFC 9406) ends slow start before the first loss.
    pub hystart: bool,
    /// A window that was not used for a retransmission timeout is forgotten by and by (RFC 5681 4.1);
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// Bytes that may wait for the reader, at first; grows as the reader keeps pace. As much as the window of a SYN can say,
    /// which is what Linux offers at first: of its 128 KiB (`tcp_rmem`) half is for bookkeeping.
    pub receive_buffer_bytes: u32,
    /// … and at most. Linux's `tcp_rmem`. The same as at first: the window does not tune itself.
    pub receive_buffer_bytes_max: u32,
    /// Bytes out of order that one connection may hold.
    pub reassembly_bytes_max: u32,
    /// Separate ranges out of order that one connection may hold.
    pub reassembly_ranges_max: u32,
    /// RFC 6298 2.4 asks for 1 s; Linux (`TCP_RTO_MIN`) has had 200 ms for decades, because retransmissions are
    /// rarely spurious with timestamps.
    pub rto_min: Duration,
    /// RFC 6298 2.5: at least 60 s. Linux's `TCP_RTO_MAX`.
    pub rto_max: Duration,
    /// RFC 6298 2.1.
    pub rto_initial: Duration,
    /// `tcp_syn_retries`.
    pub syn_retries_max: u8,
    /// `tcp_synack_retries`.
    pub syn_ack_retries_max: u8,
    /// RFC 9293 3.8.3 R2, as `tcp_retries2`.
    pub retries_max: u8,
    /// Retransmissions of a connection whose application has closed it; `tcp_orphan_retries`.
    pub orphan_retries_max: u8,
    /// How long an acknowledgement may wait (RFC 9293 3.8.6.3).
    pub delayed_ack: Duration,
    /// Segments acknowledged at once at the beginning, while the peer's window grows (Linux's quick acks).
    pub quick_acks: u8,
    /// Acknowledgements of a SYN-ACK, of a FIN, and those at the beginning are not sent at once, but with what the owner says next, or
    /// when it has nothing to say ([`Connection::acknowledge_now`](crate::connection::Connection::acknowledge_now)); like any other, they
    /// wait no longer than `delayed_ack`. For owners that hear of a segment only after a turn.
    pub lazy_acks: bool,
    /// Maximum segment lifetime: TIME-WAIT lasts twice as long (RFC 9293 3.4.2). Linux waits 60 s in all.
    pub msl: Duration,
    /// Connections that the owner opens may take over a flow in TIME-WAIT (RFC 6191 2); `tcp_tw_reuse`.
    pub time_wait_reuse: bool,
    /// A RST does not end TIME-WAIT (RFC 1337 3, fix F1); `tcp_rfc1337`. Off, as in Linux, the next number ends it (RFC 9293
    /// 3.10.7.4, second): a peer that has forgotten the connection needs that to open it anew from the same port.
    pub rfc1337: bool,
    /// FIN-WAIT-2 of a connection whose application has closed it; `tcp_fin_timeout`.
    pub fin_wait_2: Duration,
    /// RFC 9293 3.8.4.
    pub keepalive: Option<Keepalive>,
    /// RFC 5482: give up when data stay unacknowledged so long; `TCP_USER_TIMEOUT`.
    pub user_timeout: Option<Duration>,
    /// Bytes of the largest segment that is announced and sent, where the path takes more; `TCP_MAXSEG`. The owner
    /// applies it to what it says of the path.
    pub mss_max: Option<u16>,
    /// Of the connection's packets. TCP makes nothing of it; the owner writes it into their headers.
    pub dscp: Dscp,
    /// Nagle's algorithm is off (RFC 9293 3.7.4).
    pub nodelay: bool,
    /// Challenge ACKs a second, all connections together; each second the limit varies by half (RFC 5961 7).
    pub challenge_acks_per_second: u32,
    /// Answers to out-of-window segments of one connection, at most one in so long; `tcp_invalid_ratelimit`.
    pub invalid_ratelimit: Duration,
    /// Probe for larger segments when path MTU discovery is blind (RFC 4821).
    pub mtu_probing: bool,
}

/// Explicit congestion notification (RFC 3168), as `tcp_ecn`. The default is Linux's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    Off,
    /// Accept it when a peer asks.
    Accept,
    /// Accept it, and accurate ECN (RFC 9768) where a peer asks for that; 5 in Linux.
    AcceptAccurate,
    /// Ask for it also.
    Ask,
}

/// How the congestion window grows and shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
    /// Version 3 of draft-ietf-ccwg-bbr: by measured rate and round trip, and paced.
    Bbr,
}

/// Keep-alive: the first probe after `idle`, then one each `interval`, `count` in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    pub idle: Duration,
    pub interval: Duration,
    pub count: u8,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 9,
        }
    }
}

/// The differentiated services codepoints of packets (RFC 2474), 6 bits each, for either family of addresses: `IP_TOS` and
/// `IPV6_TCLASS`, without the bits of ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dscp {
    pub ipv4: u8,
    pub ipv6: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            initial_window_segments: 10,
            window_scaling: true,
            timestamps: true,
            sack: true,
            ecn: EcnMode::Accept,
            congestion: Algorithm::Cubic,
            pacing: false,
            hystart: true,
            slow_start_after_idle: true,
            receive_buffer_bytes: 64 * 1024,
            receive_buffer_bytes_max: 6 * 1024 * 1024,
            reassembly_bytes_max: 6 * 1024 * 1024,
            reassembly_ranges_max: 256,
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            rto_initial: Duration::from_secs(1),
            syn_retries_max: 6,
            syn_ack_retries_max: 5,
            retries_max: 15,
            orphan_retries_max: 8,
            delayed_ack: Duration::from_millis(40),
            quick_acks: 16,
            lazy_acks: false,
            msl: Duration::from_secs(30),
            time_wait_reuse: true,
            rfc1337: false,
            fin_wait_2: Duration::from_secs(60),
            keepalive: None,
            user_timeout: None,
            mss_max: None,
            dscp: Dscp::default(),
            nodelay: true,
            challenge_acks_per_second: 1000,
            invalid_ratelimit: Duration::from_millis(500),
            mtu_probing: true,
        }
    }
}

#[cfg(test)]
impl Config {
    /// The default configuration with a change.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut config = Self::default();
        change(&mut config);
        config
    }
}
