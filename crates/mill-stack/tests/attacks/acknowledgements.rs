//! Acknowledgements as weapons: storms of them, and of what was never sent.

use crate::raw_peer::RawPeer;
use crate::target::Target;
use mill_wire::tcp::Flags;

#[test]
fn a_storm_of_acknowledgements_is_not_answered() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    target.take_seen();
    for _ in 0..10_000 {
        peer.send(&mut target, Flags::ACK, &[]);
    }
    target.turn();
    assert_eq!(target.take_seen(), []);
    // Also while data is in flight: duplicates make it send again, but not once for each.
    target.write(socket, &[1; 100_000]);
    target.turn();
    let first = target.take_seen().len();
    for _ in 0..10_000 {
        peer.send(&mut target, Flags::ACK, &[]);
    }
    target.turn();
    let again = target.take_seen().len();
    assert!(
        first == 10 && again <= 2 * first,
        "{first}, then {again} segments"
    );
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    target.write(socket, &[1; 100_000]);
    target.turn();
    let sent: usize = target
        .take_seen()
        .iter()
        .map(|seen| seen.payload.len())
        .sum();
    assert_eq!(sent, 14_600);
    // An optimist acknowledges what will come, to make the host send faster than the path carries.
    for ahead in [14_601_u32, 20_000, 99_999, 1 << 30] {
        let mut optimistic = peer.segment(Flags::ACK, &[]);
        optimistic.header.ack += ahead;
        target.arrive(&optimistic);
    }
    target.turn();
    assert_eq!(target.host.acked(socket), 0);
    assert!(
        target
            .take_seen()
            .iter()
            .all(|seen| seen.payload.is_empty())
    );
    peer.ack += 14_600;
    peer.send(&mut target, Flags::ACK, &[]);
    target.turn();
    assert_eq!(target.host.acked(socket), 14_600);
}
