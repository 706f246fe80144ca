//! All options, from which parser, help and messages are made.

use crate::specification::device::Devices;
use crate::specification::settings::{Mode, Role};
pub use crate::specification::value::{Value, Word};
use mill_stack::tcp::config::{Algorithm, EcnMode};

/// One option of `--stack`.
#[derive(Clone, Debug)]
pub struct StackOption {
    pub name: &'static str,
    /// The devices that know it.
    pub devices: Devices,
    pub value: Value,
    /// What holds without it.
    pub default: &'static str,
    /// What it does: the rest of a sentence.
    pub about: &'static str,
}

/// In the order in which help lists them.
pub const OPTIONS: &[StackOption] = &[
    option_of(
        Devices::OWN_ADDRESSES,
        "address",
        Value::Prefix(|to| &mut to.addresses),
        "needed",
        "an address of the stack; may stand several times",
    ),
    option_of(
        Devices::TAP,
        "host",
        Value::Prefix(|to| &mut to.host),
        "none",
        "an address that this machine gets on its side of the device; may stand several times",
    ),
    option_of(
        Devices::OWN_ADDRESSES,
        "gateway",
        Value::Address(|to| &mut to.gateways),
        "none",
        "the router for everything that is not on the link; one of each family",
    ),
    option_of(
        Devices::OWN_ADDRESSES,
        "mtu",
        Value::Number(576..=65521, |to| &mut to.mtu),
        "1500",
        "bytes of IP packet in a frame",
    ),
    option_of(
        Devices::AF_XDP,
        "queue",
        Value::Number(0..=1023, |to| &mut to.af_xdp.queue),
        "0",
        "the receive queue of the interface",
    ),
    option_of(
        Devices::AF_XDP,
        "mode",
        Value::Word(&[
            ("any", |to| to.af_xdp.mode = Mode::Any),
            ("native", |to| to.af_xdp.mode = Mode::Native),
            ("generic", |to| to.af_xdp.mode = Mode::Generic),
        ]),
        "any",
        "where frames are taken: in the driver, or for any driver behind it; any warns when it is the latter",
    ),
    option_of(
        Devices::AF_XDP,
        "zero-copy",
        Value::Switch(|to| &mut to.af_xdp.zero_copy),
        "on",
        "ask the driver to read and write packet memory itself; those that can't copy",
    ),
    option_of(
        Devices::AF_XDP,
        "hugepages",
        Value::Switch(|to| &mut to.af_xdp.hugepages),
        "on",
        "packet memory in pages of 2 MiB, if there are any",
    ),
    option_of(
        Devices::AF_XDP,
        "frames",
        Value::Number(1024..=(1 << 20), |to| &mut to.af_xdp.frames),
        "16384",
        "places for frames in packet memory, rounded up to a power of two",
    ),
    option_of(
        Devices::AF_XDP,
        "ring",
        Value::Number(64..=(1 << 15), |to| &mut to.af_xdp.ring),
        "4096",
        "descriptors of each ring, rounded up to a power of two",
    ),
    option_of(
        Devices::AF_XDP,
        "ports",
        Value::Ports(|to| &mut to.af_xdp.ports),
        "10240-32767",
        "our ports for connections that we open, taken from the kernel; it must not use them",
    ),
    option_of(
        Devices::MEMIF,
        "role",
        Value::Word(&[
            ("master", |to| to.memif.role = Some(Role::Master)),
            ("slave", |to| to.memif.role = Some(Role::Slave)),
        ]),
        "needed",
        "who makes the socket (master), and who connects to it and owns the memory (slave)",
    ),
    option_of(
        Devices::MEMIF,
        "id",
        Value::Number(0..=u32::MAX, |to| &mut to.memif.id),
        "0",
        "which interface of the socket",
    ),
    option_of(
        Devices::OWN_ADDRESSES,
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
        "polling",
        Value::Polling(|to| &mut to.polling),
        "adaptive=50us",
        "when to look for frames: sleep until they come, spin for a while before that, sleep a while between two looks, never sleep, or look so many times a second",
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
    option_of(
        Devices::TAP,
        "loss",
        Value::Share(|to| &mut to.impairment.loss_ppm),
        "0%",
        "a bad wire for tests: packets that vanish, in each direction",
    ),
    option_of(
        Devices::TAP,
        "reorder",
        Value::Share(|to| &mut to.impairment.reorder_ppm),
        "0%",
        "… that others overtake",
    ),
    option_of(
        Devices::TAP,
        "duplicate",
        Value::Share(|to| &mut to.impairment.duplicate_ppm),
        "0%",
        "… that come twice",
    ),
    option_of(
        Devices::TAP,
        "corrupt",
        Value::Share(|to| &mut to.impairment.corrupt_ppm),
        "0%",
        "… with one bit turned over",
    ),
    option_of(
        Devices::TAP,
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
        let only = match option.devices.to_string() {
            names if names.is_empty() => names,
            names => format!("{names}: "),
        };
        text.push_str(&format!("  {left:<34} {only}{about} ({default})\n"));
    }
    text
}

const fn option(
    name: &'static str,
    value: Value,
    default: &'static str,
    about: &'static str,
) -> StackOption {
    option_of(Devices::ALL, name, value, default, about)
}

const fn option_of(
    devices: Devices,
    name: &'static str,
    value: Value,
    default: &'static str,
    about: &'static str,
) -> StackOption {
    StackOption {
        name,
        devices,
        value,
        default,
        about,
    }
}
