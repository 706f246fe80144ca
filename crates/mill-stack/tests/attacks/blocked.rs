//! Addresses whose segments are dropped.

use crate::raw_peer::RawPeer;
use crate::target::Target;
use mill_stack::drop_reason::DropReason;
use mill_wire::tcp::Flags;
use std::net::IpAddr;

#[test]
fn a_blocked_address_is_not_answered_and_its_connections_stand_still() {
    let mut target = Target::new(|_| {});
    let mut known = RawPeer::new(1);
    known.connect(&mut target);
    target.take_seen();
    let mut other = RawPeer::new(1000);
    assert_ne!(known.address, other.address);
    target.host.set_blocked(&[IpAddr::V4(known.address)]);
    known.send(&mut target, Flags::ACK, b"GET");
    RawPeer::new(1).send(&mut target, Flags::SYN, &[]);
    target.turn();
    assert_eq!(target.take_seen(), []);
    assert_eq!(target.host.counters().dropped(DropReason::Blocked), 2);
    // Others are served, and so is this one once it is not blocked any more.
    other.connect(&mut target);
    target.take_seen();
    target.host.set_blocked(&[]);
    known.send(&mut target, Flags::ACK, b"GET");
    target.turn();
    assert_eq!(target.host.counters().dropped(DropReason::Blocked), 2);
}
