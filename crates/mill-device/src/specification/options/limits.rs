//! Limits.

use super::{StackOption, Value, option};

pub(super) const OPTIONS: &[StackOption] = &[
    option(
        "connections",
        Value::Number(1..=(1 << 24), |to| &mut to.limits.connections_max),
        "1048576",
        "connections at once; further ones are not accepted",
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
        "time-wait-reuse",
        Value::Switch(|to| &mut to.tcp.time_wait_reuse),
        "on",
        "outgoing connections take over ports in TIME-WAIT for more than a second, when no other is left (RFC 6191)",
    ),
    option(
        "rfc1337",
        Value::Switch(|to| &mut to.tcp.rfc1337),
        "off",
        "a RST does not end TIME-WAIT (RFC 1337); tcp_rfc1337",
    ),
    option(
        "receive-memory",
        Value::Memory(1 << 20..=1 << 40, |to| &mut to.limits.receive_bytes_max),
        "1g",
        "bytes of all connections that wait for readers, beside one segment of each; from three fourths on windows stop growing",
    ),
    option(
        "fragment-memory",
        Value::Bytes(1 << 16..=1 << 30, |to| &mut to.limits.fragment_bytes_max),
        "4m",
        "bytes of datagrams that have not come whole; beyond them the oldest is dropped",
    ),
    option(
        "neighbors",
        Value::Number(1..=(1 << 20), |to| &mut to.limits.neighbors_max),
        "1024",
        "neighbours known or asked for; beyond them the one not used for longest is forgotten",
    ),
    option(
        "neighbor-queue",
        Value::Number(1..=(1 << 16), |to| &mut to.limits.neighbor_queue_max),
        "128",
        "what may wait for one neighbour's Ethernet address",
    ),
    option(
        "paths",
        Value::Number(1..=(1 << 20), |to| &mut to.limits.paths_max),
        "1024",
        "targets of which it is remembered that their path carries less than the link; beyond them the oldest is forgotten",
    ),
    option(
        "answers",
        Value::Number(0..=1_000_000, |to| &mut to.limits.answers_per_second),
        "1000",
        "resets, echo replies and ICMP errors a second, each",
    ),
    option(
        "challenge-acks",
        Value::Number(0..=1_000_000, |to| &mut to.tcp.challenge_acks_per_second),
        "1000",
        "challenge acknowledgements a second, of all connections (RFC 5961)",
    ),
    option(
        "invalid-ack-interval",
        Value::Time(0..=60_000, |to| &mut to.tcp.invalid_ratelimit),
        "500ms",
        "the least time between two answers of one connection to segments outside of its window",
    ),
];
