//! ICMP errors about packets that the stack has sent: they belong to the connection of the packet that they quote.
//!
//! A router that drops a packet as too large reports that to its sender (RFC 1191, RFC 8201), and quotes at least the
//! packet's IP header and ports (RFC 792, RFC 4443 section 3). The error goes where an answer to that packet would go;
//! all other ICMP, and errors that quote anything else, pass to the kernel.

use super::{
    IP_VERSION, IPV4_FRAGMENT_OFFSET, IS_ERROR, IS_FRAGMENT, PORTS, SOURCE_HIGH, SOURCE_LOW, TCP,
    UDP, mapped, need, network_order,
};
use crate::steering::assembler::{Assembler, Condition, Operation, Register, Width};
use Condition::{Above, Common, Equal, NotEqual};
use Operation::ShiftRight;
use Register::{R0, R3, R4, R5, R7, R9, R10};
use Width::{Byte, Double, Half, Word};

/// R7 is behind the IP header, R9 its protocol, which is neither TCP nor UDP. Stores address, ports and protocol of the
/// quoted packet as if it had come from its target. The quoted source has to be the address that the error was sent to.
pub(super) fn errors(to: &mut Assembler) {
    to.load(Double, R0, R10, IS_FRAGMENT);
    to.jump_if(R0, NotEqual, 0, "pass");
    to.load(Double, R0, R10, IP_VERSION);
    to.jump_if(R0, Equal, 4, "error of ipv4");
    of_ipv6(to);
    of_ipv4(to);

    to.label("quoted");
    to.set(R0, 1);
    to.store(Byte, R10, IS_ERROR, R0);
    to.jump_if(R9, Equal, TCP, "addresses");
    to.jump_if(R9, Equal, UDP, "addresses");
    to.jump("pass");
}

/// RFC 4443, section 3. With extension headers it passes to the kernel: the stack sends none.
fn of_ipv6(to: &mut Assembler) {
    to.jump_if(R9, NotEqual, ICMPV6, "pass");
    need(to, i32::from(QUOTED + 40 + 4), "pass");
    to.load(Byte, R0, R7, 0);
    to.jump_if(R0, Equal, 0, "pass");
    to.jump_if(R0, Above, LAST_ERROR_V6, "pass");
    to.load(Byte, R0, R7, QUOTED);
    to.calculate(ShiftRight, R0, 4);
    to.jump_if(R0, NotEqual, 6, "pass");
    to.load(Byte, R9, R7, QUOTED + 6);
    to.load(Double, R0, R7, QUOTED + 8);
    to.jump_if(R0, NotEqual, R5, "pass");
    to.load(Double, R0, R7, QUOTED + 16);
    to.jump_if(R0, NotEqual, R4, "pass");
    to.load(Double, R0, R7, QUOTED + 24);
    to.store(Double, R10, SOURCE_HIGH, R0);
    to.load(Double, R0, R7, QUOTED + 32);
    to.store(Double, R10, SOURCE_LOW, R0);
    ports(to, QUOTED + 40);
    to.jump("quoted");
}

/// RFC 792. A quoted header with options, or a later fragment, passes to the kernel: the stack sends neither.
fn of_ipv4(to: &mut Assembler) {
    to.label("error of ipv4");
    to.jump_if(R9, NotEqual, ICMPV4, "pass");
    need(to, i32::from(QUOTED + 20 + 4), "pass");
    to.load(Byte, R0, R7, 0);
    for kind in [UNREACHABLE_V4, TIME_EXCEEDED_V4] {
        to.jump_if(R0, Equal, kind, "quotes ipv4");
    }
    to.jump_if(R0, NotEqual, PARAMETER_PROBLEM_V4, "pass");
    to.label("quotes ipv4");
    to.load(Byte, R0, R7, QUOTED);
    to.jump_if(R0, NotEqual, 0x45, "pass");
    to.load(Half, R0, R7, QUOTED + 6);
    to.jump_if(R0, Common, network_order(IPV4_FRAGMENT_OFFSET), "pass");
    to.load(Byte, R9, R7, QUOTED + 9);
    to.load(Word, R3, R7, QUOTED + 12);
    mapped(to, R3);
    to.jump_if(R3, NotEqual, R4, "pass");
    to.load(Word, R3, R7, QUOTED + 16);
    mapped(to, R3);
    to.store(Double, R10, SOURCE_LOW, R3);
    ports(to, QUOTED + 20);
}

/// Stores the quoted packet's ports in the order of a packet that comes in.
fn ports(to: &mut Assembler, at: i16) {
    to.load(Half, R0, R7, at);
    to.store(Half, R10, PORTS + 2, R0);
    to.load(Half, R0, R7, at + 2);
    to.store(Half, R10, PORTS, R0);
}

/// Bytes of the ICMP header, before the quoted packet.
const QUOTED: i16 = 8;

// Protocols and types (IANA's numbers; RFC 792, RFC 4443 section 2.1).
const ICMPV4: i32 = 1;
const ICMPV6: i32 = 58;
const UNREACHABLE_V4: i32 = 3;
const TIME_EXCEEDED_V4: i32 = 11;
const PARAMETER_PROBLEM_V4: i32 = 12;
const LAST_ERROR_V6: i32 = 4;
