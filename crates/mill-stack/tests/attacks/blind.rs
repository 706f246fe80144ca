//! Segments from somebody who knows addresses and ports and guesses the rest (RFC 5961).

use crate::raw_peer::{RawPeer, Seen};
use crate::target::Target;
use mill_stack::drop_reason::DropReason;
use mill_stack::socket::SocketId;
use mill_stack::tcp::arrived::SegmentDrop;
use mill_stack::wire::tcp::Flags;

/// A connection that goes on to work, whatever `forged` do to it; what the host answered.
fn check(forged: impl FnOnce(&RawPeer) -> Vec<Seen>) -> (Target, SocketId, Vec<Seen>) {
    let mut target = Target::new(|_| {});
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    for segment in forged(&peer) {
        target.arrive(&segment);
    }
    target.turn();
    let answers = peer.take_seen(&mut target);
    assert_eq!(target.host.readable(socket).unread, 0);
    peer.send(&mut target, Flags::ACK, b"still here");
    target.turn();
    assert_eq!(target.read(socket), b"still here");
    (target, socket, answers)
}

#[test]
fn a_reset_that_is_not_next_in_order_gets_a_challenge() {
    let (target, _, answers) = check(|peer| {
        let mut reset = peer.segment(Flags::RST, &[]);
        reset.header.seq += 1;
        vec![reset]
    });
    assert_eq!(answers.len(), 1);
    assert!(answers[0].header.flags == Flags::ACK && answers[0].payload.is_empty());
    assert_eq!(
        target
            .host
            .counters()
            .dropped(DropReason::Segment(SegmentDrop::BlindReset)),
        1
    );
}

#[test]
fn a_reset_outside_the_window_is_ignored() {
    let (_, _, answers) = check(|peer| {
        let mut reset = peer.segment(Flags::RST, &[]);
        reset.header.seq += 1 << 30;
        vec![reset]
    });
    assert_eq!(answers, []);
}

#[test]
fn a_syn_gets_a_challenge_wherever_it_lies() {
    for offset in [0, 1, 1 << 30] {
        let (_, _, answers) = check(|peer| {
            let mut syn = peer.syn();
            syn.header.seq += offset;
            vec![syn]
        });
        assert_eq!(answers.len(), 1, "{offset}");
        assert_eq!(answers[0].header.flags, Flags::ACK);
    }
}

#[test]
fn data_with_an_acknowledgement_out_of_range_is_not_taken() {
    for offset in [1, 1 << 20, 1 << 31] {
        let (_, _, _) = check(|peer| {
            let mut data = peer.segment(Flags::ACK, b"forged");
            data.header.ack += offset;
            vec![data]
        });
    }
}

#[test]
fn a_storm_of_guesses_gets_a_limited_number_of_answers() {
    let (target, _, answers) = check(|peer| {
        let guess = |offset: u32| {
            let mut reset = peer.segment(Flags::RST, &[]);
            reset.header.seq += 1 + offset;
            reset
        };
        (0..3000).map(guess).collect()
    });
    assert!(answers.len() <= 1500, "{} answers", answers.len());
    assert!(
        target
            .host
            .counters()
            .dropped(DropReason::Segment(SegmentDrop::BlindReset))
            >= 3000
    );
}

#[test]
fn segments_to_closed_ports_get_no_more_resets_than_the_limit_allows() {
    let mut target = Target::new(|config| config.limits.answers_per_second = 20);
    for number in 0..100 {
        let mut segment = RawPeer::new(number).segment(Flags::ACK, &[]);
        segment.header.target = 81;
        target.arrive(&segment);
    }
    target.turn();
    // How many of them varies from second to second.
    let resets = target.take_seen().len();
    assert!((10..=20).contains(&resets), "{resets}");
    let dropped = target.host.counters().dropped(DropReason::RateLimit);
    assert_eq!(dropped + resets as u64, 100);
}
