//! The behaviour of connections.

use super::{StackOption, Value, option};
use mill_tcp::config::{Algorithm, EcnMode};

pub(super) const OPTIONS: &[StackOption] = &[
    option(
        "congestion",
        Value::Keyword(&[
            ("cubic", |to| to.tcp.congestion = Algorithm::Cubic),
            ("reno", |to| to.tcp.congestion = Algorithm::Reno),
            ("bbr", |to| to.tcp.congestion = Algorithm::Bbr),
        ]),
        "cubic",
        "how the congestion window grows: by losses (RFC 9438, RFC 5681), or by measured rate and round trip, paced (BBR version 3)",
    ),
    option(
        "pacing",
        Value::Switch(|to| &mut to.tcp.pacing),
        "off",
        "spread the window of cubic and reno over the round trip, as Linux does with fq; bbr always has a pace",
    ),
    option(
        "hystart",
        Value::Switch(|to| &mut to.tcp.hystart),
        "on",
        "end slow start before the first loss (RFC 9406)",
    ),
    option(
        "slow-start-after-idle",
        Value::Switch(|to| &mut to.tcp.slow_start_after_idle),
        "on",
        "forget a congestion window that was not used for a while (RFC 5681)",
    ),
    option(
        "initial-window",
        Value::Number(1..=1000, |to| &mut to.tcp.initial_window_segments),
        "10",
        "segments of the first window (RFC 6928)",
    ),
    option(
        "window-scaling",
        Value::Switch(|to| &mut to.tcp.window_scaling),
        "on",
        "windows of more than 64 KiB (RFC 7323)",
    ),
    option(
        "timestamps",
        Value::Switch(|to| &mut to.tcp.timestamps),
        "on",
        "a timestamp in each segment (RFC 7323)",
    ),
    option(
        "sack",
        Value::Switch(|to| &mut to.tcp.sack),
        "on",
        "selective acknowledgements (RFC 2018)",
    ),
    option(
        "ecn",
        Value::Keyword(&[
            ("off", |to| to.tcp.ecn = EcnMode::Off),
            ("accept", |to| to.tcp.ecn = EcnMode::Accept),
            ("accurate", |to| to.tcp.ecn = EcnMode::AcceptAccurate),
            ("ask", |to| to.tcp.ecn = EcnMode::Ask),
        ]),
        "accept",
        "explicit congestion notification: not at all, when a peer asks (RFC 3168), also as a count of marks (RFC 9768), or asked for also",
    ),
    option(
        "receive-buffer",
        Value::Bytes(4096..=(1 << 30), |to| &mut to.tcp.receive_buffer_bytes_max),
        "6m",
        "bytes of one connection that may wait for the reader, at most",
    ),
    option(
        "receive-buffer-first",
        Value::Bytes(4096..=(1 << 30), |to| &mut to.tcp.receive_buffer_bytes),
        "64k",
        "… and at first, until its reader proves fast; never more than at most; equal: the window does not tune itself",
    ),
    option(
        "reassembly",
        Value::Bytes(4096..=(1 << 30), |to| &mut to.tcp.reassembly_bytes_max),
        "6m",
        "bytes of one connection that may wait for those before them",
    ),
    option(
        "reassembly-ranges",
        Value::Number(1..=65_536, |to| &mut to.tcp.reassembly_ranges_max),
        "256",
        "… and in how many pieces",
    ),
    option(
        "send-buffer",
        Value::Bytes(8192..=(1 << 30), |to| &mut to.send_buffer_bytes),
        "4m",
        "bytes that a writer is ahead of the peer's acknowledgements, where a listener does not say otherwise",
    ),
    option(
        "mss",
        Value::Segment(88..=65_495, |to| &mut to.tcp.mss_max),
        "off",
        "bytes of the largest segment that is announced and sent, or off: as the path takes them (RFC 9293)",
    ),
    option(
        "rto-min",
        Value::Time(1..=60_000, |to| &mut to.tcp.rto_min),
        "200ms",
        "the least time before a retransmission (RFC 6298)",
    ),
    option(
        "rto-max",
        Value::Time(1000..=600_000, |to| &mut to.tcp.rto_max),
        "120s",
        "… and the longest (RFC 6298)",
    ),
    option(
        "rto-initial",
        Value::Time(1..=60_000, |to| &mut to.tcp.rto_initial),
        "1s",
        "… and before the first round trip is measured (RFC 6298)",
    ),
    option(
        "syn-retries",
        Value::Count(0..=127, |to| &mut to.tcp.syn_retries_max),
        "6",
        "repetitions of a SYN before an outgoing connection fails",
    ),
    option(
        "syn-ack-retries",
        Value::Count(0..=127, |to| &mut to.tcp.syn_ack_retries_max),
        "5",
        "… and of the answer to a SYN",
    ),
    option(
        "retries",
        Value::Count(1..=127, |to| &mut to.tcp.retries_max),
        "15",
        "timeouts in a row until the peer counts as gone (RFC 9293)",
    ),
    option(
        "orphan-retries",
        Value::Count(0..=127, |to| &mut to.tcp.orphan_retries_max),
        "8",
        "… of a connection whose application has closed it",
    ),
    option(
        "user-timeout",
        Value::Limit(1..=86_400_000, |to| &mut to.tcp.user_timeout),
        "off",
        "how long data may stay unacknowledged until the connection is given up, or off: as retries= says (RFC 5482)",
    ),
    option(
        "keepalive",
        Value::Keepalive(|to| &mut to.tcp.keepalive),
        "off",
        "probes of silent connections: the silence before the first, the time between two, how many; on is 7200s:75s:9; a listener's so_keepalive= goes before (RFC 9293)",
    ),
    option(
        "delayed-ack",
        Value::Time(1..=500, |to| &mut to.tcp.delayed_ack),
        "40ms",
        "how long an acknowledgement may wait (RFC 9293)",
    ),
    option(
        "quick-acks",
        Value::Count(0..=255, |to| &mut to.tcp.quick_acks),
        "16",
        "segments acknowledged at once when a connection is new, so that the peer's window grows",
    ),
    option(
        "msl",
        Value::Time(1..=240_000, |to| &mut to.tcp.msl),
        "30s",
        "the longest life of a segment: TIME-WAIT lasts twice as long (RFC 9293)",
    ),
    option(
        "fin-wait",
        Value::Time(1..=600_000, |to| &mut to.tcp.fin_wait_2),
        "60s",
        "how long a closed connection waits for the peer to close it too",
    ),
    option(
        "mtu-probing",
        Value::Switch(|to| &mut to.tcp.mtu_probing),
        "on",
        "find out what a path carries where routers do not say it: smaller segments after two timeouts, then larger ones \
         (RFC 4821)",
    ),
];
