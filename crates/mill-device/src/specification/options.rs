//! All options, from which parser, help and messages are made.

pub use crate::specification::value::{Value, Word};
use mill_stack::tcp::config::{Algorithm, EcnMode};

/// One option of `--stack`.
#[derive(Clone, Debug)]
pub struct StackOption {
    pub name: &'static str,
    pub value: Value,
    /// What holds without it.
    pub default: &'static str,
    /// What it does: the rest of a sentence.
    pub about: &'static str,
}

/// In the order in which help lists them.
pub const OPTIONS: &[StackOption] = &[
    option(
        "address",
        Value::Prefix(|to| &mut to.addresses),
        "needed",
        "an address of the stack; may stand several times",
    ),
    option(
        "host",
        Value::Prefix(|to| &mut to.host),
        "none",
        "an address that this machine gets on its side of the device; may stand several times",
    ),
    option(
        "gateway",
        Value::Address(|to| &mut to.gateways),
        "none",
        "the router for everything that is not on the link; one of each family",
    ),
    option(
        "mtu",
        Value::Number(576..=65521, |to| &mut to.mtu),
        "1500",
        "bytes of IP packet in a frame",
    ),
    option(
        "offload",
        Value::Switch(|to| &mut to.offload),
        "on",
        "leave checksums and the cutting of segments to the device",
    ),
    option(
        "pcap",
        Value::Path(|to| &mut to.pcap),
        "none",
        "write all frames to this file, for tcpdump and Wireshark",
    ),
    option(
        "congestion",
        Value::Word(&[
            ("cubic", |to| to.tcp.congestion = Algorithm::Cubic),
            ("reno", |to| to.tcp.congestion = Algorithm::Reno),
        ]),
        "cubic",
        "how the congestion window grows (RFC 9438, RFC 5681)",
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
        Value::Word(&[
            ("off", |to| to.tcp.ecn = EcnMode::Off),
            ("accept", |to| to.tcp.ecn = EcnMode::Accept),
            ("ask", |to| to.tcp.ecn = EcnMode::Ask),
        ]),
        "accept",
        "explicit congestion notification: not at all, when a peer asks, or asked for also (RFC 3168)",
    ),
    option(
        "receive-buffer",
        Value::Bytes(4096..=(1 << 30), |to| &mut to.tcp.receive_buffer_bytes_max),
        "6m",
        "bytes of one connection that may wait for the reader, at most",
    ),
    option(
        "rto-min",
        Value::Time(1..=60_000, |to| &mut to.tcp.rto_min),
        "200ms",
        "the least time before a retransmission (RFC 6298)",
    ),
    option(
        "delayed-ack",
        Value::Time(1..=500, |to| &mut to.tcp.delayed_ack),
        "40ms",
        "how long an acknowledgement may wait (RFC 9293)",
    ),
    option(
        "msl",
        Value::Time(1..=240_000, |to| &mut to.tcp.msl),
        "30s",
        "the longest life of a segment: TIME-WAIT lasts twice as long (RFC 9293)",
    ),
    option(
        "mtu-probing",
        Value::Switch(|to| &mut to.tcp.mtu_probing),
        "off",
        "find the path's MTU without ICMP (RFC 4821)",
    ),
    option(
        "connections",
        Value::Number(1..=(1 << 24), |to| &mut to.limits.connections_max),
        "1048576",
        "connections at once; more are not let in",
    ),
    option(
        "half-open",
        Value::Number(0..=(1 << 20), |to| &mut to.limits.half_open_max),
        "4096",
        "handshakes under way; beyond them SYN cookies (RFC 4987)",
    ),
    option(
        "time-wait",
        Value::Number(0..=(1 << 24), |to| &mut to.limits.time_wait_max),
        "262144",
        "connections in TIME-WAIT; beyond them the oldest is forgotten",
    ),
    option(
        "loss",
        Value::Share(|to| &mut to.impairment.loss_ppm),
        "0%",
        "a bad wire for tests: packets that vanish, in each direction",
    ),
    option(
        "reorder",
        Value::Share(|to| &mut to.impairment.reorder_ppm),
        "0%",
        "… that others overtake",
    ),
    option(
        "duplicate",
        Value::Share(|to| &mut to.impairment.duplicate_ppm),
        "0%",
        "… that come twice",
    ),
    option(
        "corrupt",
        Value::Share(|to| &mut to.impairment.corrupt_ppm),
        "0%",
        "… with one bit turned over",
    ),
    option(
        "seed",
        Value::Seed(|to| &mut to.impairment.seed),
        "0",
        "the same bad luck again",
    ),
];

/// A table of all options for a terminal.
pub fn help() -> String {
    let mut text = String::new();
    for option in OPTIONS {
        let left = format!("{}={}", option.name, option.value.form());
        let (about, default) = (option.about, option.default);
        text.push_str(&format!("  {left:<34} {about} ({default})\n"));
    }
    text
}

const fn option(
    name: &'static str,
    value: Value,
    default: &'static str,
    about: &'static str,
) -> StackOption {
    StackOption {
        name,
        value,
        default,
        about,
    }
}
