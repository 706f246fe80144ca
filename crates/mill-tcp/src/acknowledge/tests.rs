//! When acknowledgements leave, and what they say.

use crate::config::Config;
use crate::connection::ConnectionFlags;
use crate::pair::{CLIENT, Pair, SERVER};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use mill_wire::tcp::Flags;

fn pair(quick_acks: u8) -> Pair {
    Pair::alone(&Config {
        quick_acks,
        ..Config::default()
    })
}

/// RFC 9293 3.8.6.3: less than half a second; here the setting.
#[test]
fn an_acknowledgement_waits_for_the_delay_and_no_longer() {
    let mut pair = pair(0);
    let draft = pair.draft(SERVER).with_payload(b"one");
    let (_, sent) = pair.give(SERVER, &draft);
    assert!(sent.is_empty());
    let before = pair.log.len();
    pair.run_for(Duration::from_millis(40));
    assert!(pair.sent_since(before, SERVER).is_empty());
    pair.run_for(Duration::from_millis(1));
    let sent = pair.sent_since(before, SERVER);
    assert_eq!((sent.len(), sent[0].ack), (1, draft.seq + 3));
    assert_eq!(pair.sides[SERVER].shared.counters.delayed_acks, 1);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.sent_since(before, SERVER).len(), 1, "once");
}

/// RFC 5681 4.2: at least every second full segment.
#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let mut pair = pair(0);
    for round in 0..6 {
        let draft = pair.draft(SERVER).with_payload(&[1; 1448]);
        let (_, sent) = pair.give(SERVER, &draft);
        assert_eq!(sent.len(), round % 2, "segment {round}");
    }
}

/// The path took large segments and takes small ones now.
#[test]
fn every_second_segment_of_a_path_that_shrank_is_acknowledged_at_once() {
    for (len, is_full) in [(536, true), (535, false)] {
        let mut pair = pair(0);
        pair.connection(SERVER).rcv.measure_segment(8948);
        for round in 0..4 {
            let draft = pair.draft(SERVER).with_payload(&[1; 536][..len]);
            let expected = if is_full { round % 2 } else { 0 };
            assert_eq!(pair.give(SERVER, &draft).1.len(), expected, "{round}");
        }
    }
}

/// A device may merge segments: two in one count as two.
#[test]
fn a_merged_segment_is_acknowledged_at_once() {
    let mut pair = pair(0);
    let mut draft = pair.draft(SERVER).with_payload(&[1; 2896]);
    draft.merged = 2;
    assert_eq!(pair.give(SERVER, &draft).1.len(), 1);
    assert_eq!(pair.connection(SERVER).rcv.mss(), 1448);
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut pair = pair(2);
    for expected in [1, 1, 0] {
        let draft = pair.draft(SERVER).with_payload(b"x");
        assert_eq!(pair.give(SERVER, &draft).1.len(), expected);
    }
}

/// The answer carries the acknowledgement: no segment without data leaves.
#[test]
fn data_carries_the_acknowledgement() {
    let mut pair = pair(16);
    let draft = pair.draft(SERVER).with_payload(b"request");
    pair.inject(SERVER, &draft.segment());
    pair.write(SERVER, b"response");
    let before = pair.log.len();
    pair.flush();
    let sent = pair.sent_since(before, SERVER);
    assert_eq!(
        (sent.len(), sent[0].len, sent[0].ack),
        (1, 8, draft.seq + 7)
    );
    assert!(
        !pair
            .connection(SERVER)
            .flags
            .has(ConnectionFlags::DELAYED_ACK_ARMED)
    );
}

/// RFC 5681 4.2: out of order, filling a hole in part, and filling it.
#[test]
fn disorder_is_acknowledged_at_once() {
    let mut pair = pair(0);
    let next = pair.draft(SERVER);
    for (by, len) in [(20, 10), (0, 10), (10, 10)] {
        let draft = next.clone().shifted(by).with_payload(&[1; 10][..len]);
        assert_eq!(pair.give(SERVER, &draft).1.len(), 1, "at {by}");
    }
    assert_eq!(pair.connection(SERVER).rcv.nxt(), next.seq + 30);
    assert_eq!(pair.sides[SERVER].received.len(), 30);
}

/// RFC 2018 3, RFC 2883: what the blocks say, and that a duplicate is told once.
#[test]
fn acknowledgements_tell_what_is_here() {
    let mut pair = pair(0);
    let next = pair.draft(SERVER);
    let mut give = |by: i32, len: usize| {
        let draft = next.clone().shifted(by).with_payload(&[1; 100][..len]);
        let (_, sent) = pair.give(SERVER, &draft);
        let options = sent[0].options;
        options
            .sack
            .as_slice()
            .iter()
            .map(|(start, end)| (start.since(next.seq), end.since(next.seq)))
            .collect::<Vec<_>>()
    };
    assert_eq!(give(20, 10), [(20, 30)]);
    assert_eq!(give(40, 10), [(40, 50), (20, 30)]);
    assert_eq!(give(60, 10), [(60, 70), (40, 50), (20, 30)]);
    // Three fit beside timestamps.
    assert_eq!(give(80, 10), [(80, 90), (60, 70), (40, 50)]);
    // RFC 2883 4.2: again what is out of order already: the part first, its block second.
    assert_eq!(give(42, 4), [(42, 46), (40, 50), (80, 90)]);
    // RFC 2883 4.1.1: again what was delivered.
    assert_eq!(give(0, 10), [(40, 50), (80, 90), (60, 70)]);
    assert_eq!(give(0, 10), [(0, 10), (40, 50), (80, 90)]);
    // RFC 2883 4.2.2: new and old in one.
    assert_eq!(give(5, 10), [(5, 10), (40, 50), (80, 90)]);
    assert_eq!(give(15, 75), [(20, 30)]);
}

/// RFC 2883 4.2.3.
#[test]
fn of_several_parts_that_came_twice_the_first_is_told() {
    // Delivered up to 10; out of order 20 to 30 and 40 to 50.
    let check = |start: i32, end: i32, expected: &[(i32, i32)]| {
        let mut pair = pair(0);
        let next = pair.draft(SERVER);
        let mut give = |start: i32, end: i32| {
            let len = usize::try_from(end - start).unwrap();
            let draft = next.clone().shifted(start).with_payload(&[1; 100][..len]);
            let (_, sent) = pair.give(SERVER, &draft);
            // What is in order may be acknowledged later.
            let sack = sent
                .first()
                .map_or_else(Default::default, |it| it.options.sack);
            let blocks = sack.as_slice().iter();
            blocks
                .map(|(start, end)| (start.since(next.seq), end.since(next.seq)))
                .collect::<Vec<_>>()
        };
        give(0, 10);
        give(20, 30);
        give(40, 50);
        assert_eq!(give(start, end), expected, "{start}..{end}");
    };
    check(5, 35, &[(5, 10), (40, 50)]);
    check(10, 35, &[(20, 30), (40, 50)]);
    check(5, 60, &[(5, 10)]);
    check(15, 60, &[(20, 30), (15, 60)]);
}

#[test]
fn nothing_is_told_to_a_peer_without_sack() {
    let mut pair = Pair::new(&Config::default());
    pair.sides[CLIENT].config.sack = false;
    pair.connect();
    pair.run_for(Duration::from_millis(50));
    let draft = pair.draft(SERVER).shifted(5).with_payload(b"x");
    for _ in 0..2 {
        let (_, sent) = pair.give(SERVER, &draft);
        assert!(sent[0].options.sack.is_empty());
    }
    assert!(!pair.log[1].2.options.sack_permitted);
}

/// Blocks that don't fit beside a full segment's payload travel in an acknowledgement of their own.
#[test]
fn blocks_never_make_a_segment_too_large() {
    let mut pair = pair(0);
    let ahead = pair.draft(SERVER).shifted(5).with_payload(b"x");
    pair.inject(SERVER, &ahead.segment());
    pair.write(SERVER, &[1; 1448]);
    let before = pair.log.len();
    pair.flush();
    let sent = pair.sent_since(before, SERVER);
    assert_eq!(sent.len(), 2);
    assert_eq!((sent[0].len, sent[0].options.sack.len()), (1448, 0));
    assert_eq!((sent[1].len, sent[1].options.sack.len()), (0, 1));
    // Beside a small one they fit.
    pair.inject(SERVER, &ahead.clone().shifted(5).segment());
    pair.write(SERVER, &[1; 100]);
    let before = pair.log.len();
    pair.flush();
    let sent = pair.sent_since(before, SERVER);
    assert_eq!(
        (sent.len(), sent[0].len, sent[0].options.sack.len()),
        (1, 100, 2)
    );
}

/// RFC 9293 3.9.1: a pure acknowledgement has the number that comes next.
#[test]
fn an_acknowledgement_has_the_next_number() {
    let mut pair = pair(1);
    pair.write(SERVER, b"sent");
    pair.flush();
    let draft = pair.draft(SERVER).with_payload(b"x");
    let (_, sent) = pair.give(SERVER, &draft);
    let next = pair.connection(SERVER).snd.nxt();
    assert_eq!((sent[0].flags, sent[0].seq), (Flags::ACK, next));
}

/// RFC 9293 3.10.7.4, first: the peer drops a segment whose number it has acknowledged already, and its ACK with it.
#[test]
fn a_probe_does_not_stand_for_an_acknowledgement_that_is_due() {
    let probes = [
        ConnectionFlags::PROBE_DUE,
        ConnectionFlags::KEEPALIVE_DUE,
        ConnectionFlags::PROBE_DUE | ConnectionFlags::KEEPALIVE_DUE,
    ];
    for (probe, quick_acks) in probes.into_iter().flat_map(|it| [(it, 0), (it, 1)]) {
        let mut pair = pair(quick_acks);
        let draft = pair.draft(SERVER).with_payload(b"one");
        let before = pair.log.len();
        pair.inject(SERVER, &draft.segment());
        pair.connection(SERVER).flags.set(probe, true);
        pair.flush();
        pair.run_for(Duration::from_millis(100));
        let next = pair.connection(SERVER).snd.nxt();
        let sent = pair.sent_since(before, SERVER);
        let asked = sent.iter().filter(|it| it.seq != next).count();
        let acks = sent.iter().filter(|it| it.seq == next);
        let acked: Vec<_> = acks.map(|it| it.ack).collect();
        let expected = (probe.count_ones() as usize, vec![draft.seq + 3]);
        assert_eq!((asked, acked), expected, "{probe:#x}, {quick_acks}");
    }
}
