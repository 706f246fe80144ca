//! What is told of a connection while it loses segments.

use super::*;
use crate::ack::sender::Sender;

/// State, and segments reported, held for lost, sent again, out of order.
fn check(sender: &mut Sender, expected: (CongestionState, [u32; 4])) {
    let config = Config::default();
    let mss = sender.mss();
    let info = sender.connection().info(&config);
    let bytes = [info.sacked, info.lost, info.retransmitted, info.reordering];
    assert_eq!(
        (info.congestion_state, bytes.map(|bytes| bytes / mss)),
        expected
    );
    assert!(info.reordering == 0 || info.reordering_seen);
}

#[test]
fn losses_are_told_from_the_first_report_to_the_end_of_recovery() {
    let mut sender = Sender::new(&Config::default());
    check(&mut sender, (CongestionState::Open, [0, 0, 0, 0]));
    assert_eq!(sender.write(10).len(), 10);
    sender.wait_ms(1);
    check(&mut sender, (CongestionState::Open, [0, 0, 0, 0]));
    sender.acked(0, &[(2, 3)]);
    check(&mut sender, (CongestionState::Disorder, [1, 0, 0, 0]));
    sender.acked(0, &[(2, 3), (6, 7), (8, 9)]);
    let info = sender.connection().info(&Config::default());
    assert_eq!(info.congestion_state, CongestionState::Recovery);
    let mss = sender.mss();
    assert_eq!((info.sacked / mss, info.lost / mss), (3, 6));
    assert!(info.retransmitted >= mss && info.retransmitted <= info.lost);
    sender.acked(10, &[]);
    check(&mut sender, (CongestionState::Open, [0, 0, 0, 0]));
}

#[test]
fn a_segment_that_was_late_tells_how_late() {
    let mut sender = Sender::new(&Config::default());
    sender.write(10);
    sender.wait_ms(1);
    sender.acked(0, &[(7, 8)]);
    let seen = |sender: &mut Sender| sender.connection().info(&Config::default()).reordering_seen;
    assert!(!seen(&mut sender));
    sender.acked(0, &[(7, 8), (5, 6)]);
    check(&mut sender, (CongestionState::Disorder, [2, 0, 0, 3]));
    sender.acked(10, &[]);
    check(&mut sender, (CongestionState::Open, [0, 0, 0, 0]));
    assert!(
        seen(&mut sender),
        "that it was seen outlives what was in flight"
    );
}

#[test]
fn a_timeout_is_told() {
    // What is sent again has the size that it had.
    let mut sender = Sender::new(&Config::with(|config| config.mtu_probing = false));
    sender.write(1);
    sender.wait_ms(5_000);
    check(&mut sender, (CongestionState::Loss, [0, 1, 1, 0]));
}
