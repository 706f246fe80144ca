//! IPv6: the header, and the extension headers between it and what the packet carries (RFC 8200, sections 3 and 4).
//!
//! Nearly every packet has no extension header, and takes one comparison. Headers that have a length are passed over
//! without a look at their options: the stack judges those, and answers. The verifier follows each walk to its end, so
//! the number of headers is bounded; that of bytes is by it, as a header has 2048 at most.

use super::{
    IP_VERSION, IPV6_FRAGMENT_OFFSET, IPV6_MORE_FRAGMENTS, IS_FRAGMENT, SOURCE_HIGH, SOURCE_LOW,
    TCP, need, network_order, number,
};
use crate::steering::assembler::{Assembler, Condition, Operation, Register, Width};
use Condition::{Common, Equal, NotEqual};
use Operation::{Add, And, ShiftLeft, ShiftRight};
use Register::{R0, R1, R3, R4, R5, R7, R9, R10};
use Width::{Byte, Double, Half};

/// Extension headers that the program passes over. Senders use one or two: the kinds that may stand before TCP are
/// four (RFC 8200, section 4.1), beside the fragment header.
pub(in crate::steering) const CHAIN_MAX: u32 = 4;

/// Stores the source and what the header says about the packet; the target is in R5 and R4. R7 points behind the
/// extension headers, and R9 is the protocol there.
pub(super) fn header(to: &mut Assembler) {
    to.label("ipv6");
    need(to, 40, "malformed");
    to.load(Byte, R0, R7, 0);
    to.calculate(ShiftRight, R0, 4);
    to.jump_if(R0, NotEqual, 6, "malformed");
    to.load(Byte, R9, R7, 6);
    to.load(Double, R0, R7, 8);
    to.store(Double, R10, SOURCE_HIGH, R0);
    to.load(Double, R0, R7, 16);
    to.store(Double, R10, SOURCE_LOW, R0);
    to.load(Double, R5, R7, 24);
    to.load(Double, R4, R7, 32);
    to.set(R0, 6);
    to.store(Double, R10, IP_VERSION, R0);
    to.set(R0, 0);
    to.store(Double, R10, IS_FRAGMENT, R0);
    to.calculate(Add, R7, 40);
    to.jump_if(R9, Equal, TCP, "ports");
    to.set(R1, R7);
    to.set(R3, 0);
    for place in 0..CHAIN_MAX {
        extension(to, place);
    }
    to.jump_if(R9, NotEqual, FRAGMENT, "chain's end");
    fragment(to);
    // One more than the program passes over, or one that it does not know how to pass.
    to.label("chain's end");
    for kind in [
        HOP_BY_HOP,
        ROUTING,
        FRAGMENT,
        DESTINATION_OPTIONS,
        AUTHENTICATION,
        ENCAPSULATION,
        MOBILITY,
        HOST_IDENTITY,
        SHIM6,
    ] {
        to.jump_if(R9, Equal, kind, "chain");
    }
}

/// Passes over one header, if there is one. R3 is the length of all so far, and R1 where they began.
///
/// The verifier follows the path that does not jump first, so it meets the longest chain before the shorter ones; the
/// mask makes the least length the same for all. So it finds the shorter ones to be parts of the longest, and follows
/// what comes behind the chain once for all of them: else the program would take ten times as long to load.
fn extension(to: &mut Assembler, place: u32) {
    let options = format!("options {place}");
    to.jump_if(R9, Equal, FRAGMENT, "fragment header");
    if place == 0 {
        // Only right behind the IPv6 header (section 4.1): elsewhere it is one that the program does not pass.
        to.jump_if(R9, Equal, HOP_BY_HOP, options.as_str());
    }
    to.jump_if(R9, Equal, DESTINATION_OPTIONS, options.as_str());
    to.jump_if(R9, NotEqual, ROUTING, "chain's end");

    // The next header, and the length in units of eight bytes, the first of which does not count.
    to.label(options);
    need(to, 8, "malformed");
    to.load(Byte, R9, R7, 0);
    to.load(Byte, R0, R7, 1);
    to.calculate(Add, R0, 1);
    to.calculate(ShiftLeft, R0, 3);
    to.calculate(Add, R3, R0);
    to.calculate(And, R3, number(CHAIN_BYTES_MASK));
    to.set(R7, R1);
    to.calculate(Add, R7, R3);
}

/// Section 4.5: the next header, a reserved byte, the offset above three bits, an identification. The packet may be no
/// fragment in spite of it (RFC 6946). What follows is not passed over any more.
fn fragment(to: &mut Assembler) {
    to.label("fragment header");
    need(to, 8, "malformed");
    to.load(Byte, R9, R7, 0);
    to.load(Half, R0, R7, 2);
    to.jump_if(R0, Common, network_order(IPV6_FRAGMENT_OFFSET), "pass");
    to.calculate(And, R0, network_order(IPV6_MORE_FRAGMENTS));
    to.store(Double, R10, IS_FRAGMENT, R0);
    to.calculate(Add, R7, 8);
}

/// Has all bits of the length of a longest chain, a multiple of eight.
const CHAIN_BYTES_MASK: u32 = 0x3ff8;

const _: () = assert!(CHAIN_MAX * 2048 <= CHAIN_BYTES_MASK);

// Protocols (IANA's registry of IPv6 extension header types). The last five have other lengths, or are not followed by
// anything that a port is served for.
const HOP_BY_HOP: i32 = 0;
const ROUTING: i32 = 43;
const FRAGMENT: i32 = 44;
const ENCAPSULATION: i32 = 50;
const AUTHENTICATION: i32 = 51;
const DESTINATION_OPTIONS: i32 = 60;
const MOBILITY: i32 = 135;
const HOST_IDENTITY: i32 = 139;
const SHIM6: i32 = 140;
