//! The XDP program that decides about each frame, from the Ethernet header to the verdict.
//!
//! Read it from top to bottom. A frame for a served port is redirected to a socket; in any doubt it passes to the
//! kernel, so that the machine's other services keep working. Every access to the frame follows a comparison with its
//! end, which the kernel's verifier demands.
//!
//! Each partition has tables of its own, and the program is there once for each, so that the tables' addresses are constants.
//!
//! ```text
//! R6  what the kernel gives: struct xdp_md        R4, R5  the target's address, low and high half
//! R7  the header that is being looked at          R3      scratch, as R0 to R2 are
//! R8  the end of the frame                        R9      protocol, count of addresses, word of a bitmap
//!                                                 R2      where the bitmap of the address begins
//! ```

use super::assembler::{AssembleError, Assembler, Condition, Helper, Operation, Register, Width};
use super::counters::Counter;
use super::flow::{BUCKET_SHIFT, GOLDEN, PI};
use super::layout::{
    ADDRESS_BYTES, ADDRESS_COUNT, ADDRESSES, ADDRESSES_MAX, BITMAP_BYTES, BITMAP_OF_ADDRESS,
    BLOCKED, BLOCKED_BUCKETS, BLOCKED_COUNT, BLOCKED_WAYS, BUCKET_BYTES, CLOSING_PORTS,
    LOOKS_UP_KERNEL_FLOWS, ROW_BYTES, ROWS, SEED, TCP_PORTS, UDP_PORTS, WORKERS, WORKERS_MAX,
};
use crate::vlan::{ID_MASK, Vlan};
use Condition::{Above, Below, Common, Equal, NotEqual};
use Operation::{Add, And, Multiply, Or, ShiftLeft, ShiftRight, Xor};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use Width::{Byte, Double, Half, Word};
use mill_sys::bpf::Instruction;
use mill_sys::bpf::program::Verdict;
use std::os::fd::BorrowedFd;

/// ICMP errors.
mod quoted;

/// IPv6 and its extension headers.
mod ipv6;
#[cfg(test)]
pub(super) use ipv6::CHAIN_MAX;

/// The maps that the program uses for a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maps<'maps> {
    pub(super) table: BorrowedFd<'maps>,
    pub(super) counters: BorrowedFd<'maps>,
    pub(super) sockets: BorrowedFd<'maps>,
}

/// Assembles the program for partitions, each with its queues; those that none has are of the first one. Served are frames
/// of the virtual network, if there is one, else those without a tag.
pub(super) fn assemble(
    partitions: &[(Maps<'_>, &[u32])],
    vlan: Option<Vlan>,
) -> Result<Vec<Instruction>, AssembleError> {
    let mut to = Assembler::default();
    if partitions.len() > 1 {
        partition(&mut to, partitions);
    }
    for (index, (maps, _)) in partitions.iter().enumerate() {
        to.enter(scope(index));
        decide(&mut to, *maps, vlan);
    }
    to.finish()
}

/// Jumps to what is there for the queue's partition.
fn partition(to: &mut Assembler, partitions: &[(Maps<'_>, &[u32])]) {
    to.load(Word, R0, R1, CONTEXT_QUEUE);
    for (index, (_, queues)) in partitions.iter().enumerate().skip(1) {
        to.enter(scope(index));
        for queue in *queues {
            to.jump_if(R0, Equal, number(*queue), "begin");
        }
    }
}

fn scope(partition: usize) -> String {
    format!("{partition}: ")
}

fn decide(to: &mut Assembler, maps: Maps<'_>, vlan: Option<Vlan>) {
    to.label("begin");
    ethernet(to, vlan);
    ipv4(to);
    ipv6::header(to);
    ports(to, maps);
    served(to, maps);
    kernel_flows(to);
    blocked(to, maps);
    steer(to, maps);
    verdicts(to, maps);
}

/// Multicast and broadcast frames pass to the kernel, as do all protocols but IP, and frames of other virtual networks.
///
/// The network is a constant of the program: without one a plain frame takes the two comparisons of its protocol.
fn ethernet(to: &mut Assembler, vlan: Option<Vlan>) {
    to.set(R6, R1);
    to.load(Word, R7, R6, CONTEXT_DATA);
    to.load(Word, R8, R6, CONTEXT_DATA_END);
    need(to, 14, "malformed");
    // The lowest bit of the first byte marks a group address (IEEE 802, section 8.2).
    to.load(Byte, R0, R7, 0);
    to.jump_if(R0, Common, 1, "pass");
    to.load(Half, R0, R7, 12);
    to.calculate(Add, R7, 14);
    if vlan.is_none() {
        to.jump_if(R0, Equal, network_order(IPV4), "ipv4");
        to.jump_if(R0, Equal, network_order(IPV6), "ipv6");
    }
    // Number 0 is no network, but a priority (IEEE 802.1Q, section 9.6): such frames are as those without a tag.
    let id = vlan.map_or(0, Vlan::id);
    to.jump_if(R0, NotEqual, network_order(TAG), "pass");
    need(to, 4, "malformed");
    to.load(Half, R0, R7, 0);
    to.calculate(And, R0, network_order(ID_MASK));
    to.jump_if(R0, NotEqual, network_order(id), "pass");
    to.load(Half, R0, R7, 2);
    to.calculate(Add, R7, 4);
    to.jump_if(R0, Equal, network_order(IPV4), "ipv4");
    to.jump_if(R0, Equal, network_order(IPV6), "ipv6");
    to.jump("pass");
}

/// RFC 791, section 3.1. Stores the addresses and whether the packet is a fragment; R7 points behind the options.
fn ipv4(to: &mut Assembler) {
    to.label("ipv4");
    need(to, 20, "malformed");
    to.load(Byte, R3, R7, 0);
    to.set(R0, R3);
    to.calculate(ShiftRight, R0, 4);
    to.jump_if(R0, NotEqual, 4, "malformed");
    // The header's length, in 32-bit words.
    to.calculate(And, R3, 15);
    to.calculate(ShiftLeft, R3, 2);
    to.jump_if(R3, Below, 20, "malformed");
    to.load(Byte, R9, R7, 9);
    // A later fragment has no ports: it passes to the kernel, which discards it when the first one does not follow.
    to.load(Half, R2, R7, 6);
    to.jump_if(R2, Common, network_order(IPV4_FRAGMENT_OFFSET), "pass");
    to.calculate(And, R2, network_order(IPV4_MORE_FRAGMENTS));
    to.store(Double, R10, IS_FRAGMENT, R2);
    to.set(R5, 0);
    to.store(Double, R10, SOURCE_HIGH, R5);
    to.load(Word, R4, R7, 12);
    mapped(to, R4);
    to.store(Double, R10, SOURCE_LOW, R4);
    to.load(Word, R4, R7, 16);
    mapped(to, R4);
    to.set(R0, 4);
    to.store(Double, R10, IP_VERSION, R0);
    to.calculate(Add, R7, R3);
    to.jump("transport");
}

/// Makes an IPv4 address the lower half of a mapped IPv6 address: 00 00 ff ff a b c d.
fn mapped(to: &mut Assembler, address: Register) {
    if cfg!(target_endian = "little") {
        to.calculate(ShiftLeft, address, 32);
        to.set_word(R0, -0x1_0000);
    } else {
        to.set_wide(R0, 0xffff_0000_0000);
    }
    to.calculate(Or, address, R0);
}

/// Looks up the target: its address among those of the table, then its port in that address's bitmap. For an ICMP error
/// these are the addresses and ports of the packet that it quotes.
fn ports(to: &mut Assembler, maps: Maps<'_>) {
    to.label("transport");
    to.jump_if(R9, Equal, TCP, "ports");
    to.jump_if(R9, Equal, UDP, "ports");
    quoted::errors(to);

    to.label("ports");
    need(to, 4, "malformed");
    to.load(Word, R0, R7, 0);
    to.store(Word, R10, PORTS, R0);
    to.set(R0, 0);
    to.store(Byte, R10, IS_ERROR, R0);

    // Unrolled: that is faster, and easier for the verifier.
    to.label("addresses");
    to.store(Byte, R10, PROTOCOL, R9);
    to.set_map_value(R1, maps.table, 0);
    to.load(Word, R9, R1, short(ADDRESS_COUNT));
    for place in 0..ADDRESSES_MAX {
        let address = ADDRESSES + place * ADDRESS_BYTES;
        let next = format!("address {}", place + 1);
        to.jump_if(R9, Equal, offset(place), "pass");
        to.load(Double, R0, R1, short(address + 8));
        to.jump_if(R0, NotEqual, R4, next.as_str());
        to.load(Double, R0, R1, short(address));
        to.jump_if(R0, NotEqual, R5, next.as_str());
        // The offset comes from the table, so that the verifier checks the code that follows once for all addresses.
        to.load(Double, R2, R1, short(address + BITMAP_OF_ADDRESS));
        to.jump("port");
        to.label(next);
    }
    to.jump("pass");

    to.label("port");
    to.load(Half, R0, R10, PORTS + 2);
    to.turn_to_host_order(R0);
    to.set(R9, R0);
    to.calculate(ShiftRight, R9, 5);
    to.calculate(ShiftLeft, R9, 2);
    // The masks change no valid value; they bound the offset for the verifier.
    to.calculate(And, R9, offset(BITMAP_BYTES - 4));
    to.calculate(And, R2, offset((ADDRESSES_MAX - 1) * BITMAP_BYTES));
    to.calculate(Add, R9, R2);
    // UDP's protocol number is odd, TCP's even, and UDP's bitmaps follow TCP's.
    to.load(Byte, R3, R10, PROTOCOL);
    to.calculate(And, R3, 1);
    to.calculate(ShiftLeft, R3, number((UDP_PORTS - TCP_PORTS).ilog2()));
    to.calculate(Add, R9, R3);
    to.set_map_value(R1, maps.table, offset(TCP_PORTS));
    to.calculate(Add, R1, R9);
    to.load(Word, R1, R1, 0);
    to.calculate(And, R0, 31);
    to.calculate(ShiftRight, R1, R0);
    to.calculate(And, R1, 1);
    to.jump_if(R1, NotEqual, 0, "served");
    closing(to, maps);
}

/// For a port whose listener is closed: connections go on, and a SYN passes to the kernel, which may have a listener
/// there too.
fn closing(to: &mut Assembler, maps: Maps<'_>) {
    to.load(Byte, R3, R10, PROTOCOL);
    to.jump_if(R3, NotEqual, TCP, "pass");
    // TCP offsets have no higher bit; the mask is for the verifier.
    to.calculate(And, R9, offset(ADDRESSES_MAX * BITMAP_BYTES - 4));
    to.set_map_value(R1, maps.table, offset(CLOSING_PORTS));
    to.calculate(Add, R1, R9);
    to.load(Word, R1, R1, 0);
    to.calculate(ShiftRight, R1, R0);
    to.calculate(And, R1, 1);
    to.jump_if(R1, Equal, 0, "pass");
    to.load(Double, R0, R10, IS_FRAGMENT);
    to.jump_if(R0, NotEqual, 0, "fragment");
    to.load(Byte, R3, R10, IS_ERROR);
    to.jump_if(R3, NotEqual, 0, "tuple");
    need(to, 14, "malformed");
    to.load(Byte, R3, R7, 13);
    to.calculate(And, R3, SYN | ACK);
    to.jump_if(R3, Equal, SYN, "pass");
    to.jump("tuple");
}

/// The frame is for a served port. Fragments are dropped: the stack does not reassemble them, and the kernel must not
/// answer.
fn served(to: &mut Assembler, maps: Maps<'_>) {
    to.label("served");
    to.load(Double, R0, R10, IS_FRAGMENT);
    to.jump_if(R0, NotEqual, 0, "fragment");
    to.set_map_value(R1, maps.table, offset(LOOKS_UP_KERNEL_FLOWS));
    to.load(Word, R1, R1, 0);
    to.jump_if(R1, Equal, 0, "steer");
    to.load(Byte, R0, R10, PROTOCOL);
    to.jump_if(R0, NotEqual, TCP, "steer");
}

/// Segments of connections that the kernel had before the port was served pass to it.
fn kernel_flows(to: &mut Assembler) {
    to.load(Byte, R3, R10, IS_ERROR);
    to.jump_if(R3, NotEqual, 0, "tuple");
    need(to, 14, "malformed");
    to.label("tuple");
    // struct bpf_sock_tuple: both addresses, then both ports, as they are in the packet.
    to.load(Word, R0, R10, PORTS);
    to.load(Double, R1, R10, IP_VERSION);
    to.jump_if(R1, Equal, 4, "tuple of ipv4");
    to.load(Double, R1, R10, SOURCE_HIGH);
    to.store(Double, R10, TUPLE, R1);
    to.load(Double, R1, R10, SOURCE_LOW);
    to.store(Double, R10, TUPLE + 8, R1);
    to.store(Double, R10, TUPLE + 16, R5);
    to.store(Double, R10, TUPLE + 24, R4);
    to.store(Word, R10, TUPLE + 32, R0);
    to.set(R3, 36);
    to.jump("lookup");
    to.label("tuple of ipv4");
    // The last four bytes of the mapped addresses.
    to.load(Word, R1, R10, SOURCE_LOW + 4);
    to.store(Word, R10, TUPLE, R1);
    to.store(Double, R10, TUPLE + 8, R4);
    to.load(Word, R1, R10, TUPLE + 12);
    to.store(Word, R10, TUPLE + 4, R1);
    to.store(Word, R10, TUPLE + 8, R0);
    to.set(R3, 12);

    to.label("lookup");
    to.set(R1, R6);
    to.set(R2, R10);
    to.calculate(Add, R2, i32::from(TUPLE));
    to.set(R4, CURRENT_NETWORK_NAMESPACE);
    to.set(R5, 0);
    to.call(Helper::LookupTcp);
    to.jump_if(R0, Equal, 0, "steer");
    to.set(R1, R0);
    to.load(Word, R0, R1, SOCKET_STATE);
    to.store(Double, R10, TUPLE, R0);
    to.call(Helper::SocketRelease);
    to.load(Double, R0, R10, TUPLE);
    // Neither a listener nor TIME-WAIT counts as a connection: the peer may use its port for a new connection, of which
    // the kernel would know nothing.
    to.jump_if(R0, Equal, LISTEN, "steer");
    to.jump_if(R0, NotEqual, TIME_WAIT, "kept");
}

/// Drops frames of blocked addresses: looks at the places of the source's bucket (flow.rs computes the same).
fn blocked(to: &mut Assembler, maps: Maps<'_>) {
    to.label("steer");
    to.set_map_value(R1, maps.table, 0);
    to.load(Word, R9, R1, short(BLOCKED_COUNT));
    to.jump_if(R9, Equal, 0, "unblocked");
    to.load(Byte, R0, R10, PROTOCOL);
    to.jump_if(R0, NotEqual, TCP, "unblocked");
    to.load(Double, R4, R10, SOURCE_HIGH);
    to.load(Double, R5, R10, SOURCE_LOW);
    to.load(Double, R3, R1, short(SEED));
    to.calculate(Xor, R3, R4);
    to.set_wide(R0, GOLDEN);
    to.calculate(Multiply, R3, R0);
    to.calculate(Add, R3, R5);
    to.set_wide(R0, PI);
    to.calculate(Multiply, R3, R0);
    to.calculate(ShiftRight, R3, number(BUCKET_SHIFT));
    to.calculate(And, R3, offset(BLOCKED_BUCKETS - 1));
    to.calculate(ShiftLeft, R3, number(BUCKET_BYTES.ilog2()));
    to.set_map_value(R1, maps.table, offset(BLOCKED));
    to.calculate(Add, R1, R3);
    for way in 0..BLOCKED_WAYS {
        let next = format!("way {}", way + 1);
        to.load(Double, R0, R1, short(way * 16));
        to.jump_if(R0, NotEqual, R4, next.as_str());
        to.load(Double, R0, R1, short(way * 16 + 8));
        to.jump_if(R0, Equal, R5, "blocked");
        to.label(next);
    }
}

/// Redirects to the socket of the queue and of the worker that the flow belongs to (flow.rs computes the same).
fn steer(to: &mut Assembler, maps: Maps<'_>) {
    to.label("unblocked");
    to.load(Word, R2, R6, CONTEXT_QUEUE);
    to.calculate(ShiftLeft, R2, number(WORKERS_MAX.ilog2()));
    to.set_map_value(R1, maps.table, 0);
    to.load(Word, R9, R1, short(WORKERS));
    to.jump_if(R9, Below, 2, "redirect");
    to.load(Double, R3, R10, SOURCE_HIGH);
    to.load(Double, R4, R1, short(SEED));
    to.calculate(Xor, R3, R4);
    to.set_wide(R5, GOLDEN);
    to.calculate(Multiply, R3, R5);
    to.load(Double, R4, R10, SOURCE_LOW);
    to.calculate(Add, R3, R4);
    to.set_wide(R4, PI);
    to.calculate(Multiply, R3, R4);
    to.set(R4, R3);
    to.calculate(ShiftRight, R4, 32);
    to.calculate(Xor, R3, R4);
    to.load(Word, R4, R10, PORTS);
    to.calculate(Add, R3, R4);
    to.calculate(Multiply, R3, R5);
    to.calculate(ShiftRight, R3, 32);
    to.calculate(Multiply, R3, R9);
    to.calculate(ShiftRight, R3, 32);
    to.calculate(Add, R2, R3);

    to.label("redirect");
    to.set_map(R1, maps.sockets);
    // The verdict if there is no such socket.
    to.set(R3, Verdict::Pass as i32);
    to.call(Helper::RedirectMap);
    to.jump_if(R0, NotEqual, Verdict::Redirect as i32, "unclaimed");
}

/// Each reason has its verdict, and its counter in the queue's row.
fn verdicts(to: &mut Assembler, maps: Maps<'_>) {
    for (label, verdict, counter) in [
        ("redirected", Verdict::Redirect, Counter::Redirected),
        ("unclaimed", Verdict::Pass, Counter::Unclaimed),
        ("fragment", Verdict::Drop, Counter::Fragments),
        ("blocked", Verdict::Drop, Counter::Blocked),
        ("malformed", Verdict::Pass, Counter::Malformed),
        ("chain", Verdict::Pass, Counter::Chains),
        ("kept", Verdict::Pass, Counter::Kept),
        ("pass", Verdict::Pass, Counter::Passed),
    ] {
        to.label(label);
        to.load(Word, R2, R6, CONTEXT_QUEUE);
        to.calculate(And, R2, offset(ROWS - 1));
        to.calculate(ShiftLeft, R2, number(ROW_BYTES.ilog2()));
        to.set_map_value(R1, maps.counters, 0);
        to.calculate(Add, R1, R2);
        to.set(R2, 1);
        to.add_to_memory(R1, short(counter.offset()), R2);
        to.set(R0, verdict as i32);
        to.exit();
    }
}

/// Jumps to `otherwise` unless the frame has `bytes` more from R7 on.
fn need(to: &mut Assembler, bytes: i32, otherwise: &str) {
    to.set(R2, R7);
    to.calculate(Add, R2, bytes);
    to.jump_if(R2, Above, R8, otherwise);
}

/// A number in network byte order as a load reads it.
fn network_order(number: u16) -> i32 {
    i32::from(u16::from_ne_bytes(number.to_be_bytes()))
}

/// An offset of the layout as an immediate operand.
fn offset(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("the tables are short")
}

/// An offset within the layout's header as the offset of an access.
fn short(bytes: usize) -> i16 {
    i16::try_from(bytes).expect("the header is short")
}

fn number(value: u32) -> i32 {
    i32::try_from(value).expect("limits are small")
}

// struct xdp_md.
const CONTEXT_DATA: i16 = 0;
const CONTEXT_DATA_END: i16 = 4;
const CONTEXT_QUEUE: i16 = 16;

// EtherTypes (IEEE 802.1Q, section 9; RFC 894, RFC 2464).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAG: u16 = 0x8100;

// Protocols (IANA's protocol numbers).
const TCP: i32 = 6;
const UDP: i32 = 17;

// RFC 791, section 3.1, and RFC 8200, section 4.5.
const IPV4_FRAGMENT_OFFSET: u16 = 0x1fff;
const IPV4_MORE_FRAGMENTS: u16 = 0x2000;
const IPV6_FRAGMENT_OFFSET: u16 = 0xfff8;
const IPV6_MORE_FRAGMENTS: u16 = 0x0001;

// RFC 9293, section 3.1.
const SYN: i32 = 0x02;
const ACK: i32 = 0x10;

// Stack offsets; the tuple for the lookup is the largest.
const SOURCE_LOW: i16 = -8;
const SOURCE_HIGH: i16 = -16;
const IS_FRAGMENT: i16 = -24;
const IP_VERSION: i16 = -32;
const PROTOCOL: i16 = -40;
const IS_ERROR: i16 = -39;
/// The peer's port, then the local one.
const PORTS: i16 = -44;
const TUPLE: i16 = -80;

/// BPF_F_CURRENT_NETNS: the interface's network namespace.
const CURRENT_NETWORK_NAMESPACE: i32 = -1;

/// `state` of struct bpf_sock, and its values (the kernel's tcp_states.h).
const SOCKET_STATE: i16 = 72;
const TIME_WAIT: i32 = 6;
const LISTEN: i32 = 10;
