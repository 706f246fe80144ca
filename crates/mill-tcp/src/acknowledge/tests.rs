//! When acknowledgements leave, and what they say.

use crate::config::Config;
use crate::connection::ConnectionFlags;
use crate::pair::{Pair, SERVER};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

fn pair(quick_acks: u8) -> Pair {
    Pair::alone(&Config::with(|config| config.quick_acks = quick_acks))
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
