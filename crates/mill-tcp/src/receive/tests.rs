//! Text: in order, overlapping, out of order, refused.

use crate::arrived::{Events, SegmentDrop};
use crate::config::Config;
use crate::pair::{Pair, SERVER};
use mill_wire::tcp::Flags;

#[test]
fn text_in_order_is_lent_and_not_copied() {
    let mut pair = Pair::alone(&Config::default());
    let draft = pair.draft(SERVER).with_payload(b"0123456789");
    let arrived = pair.inject(SERVER, &draft.segment());
    assert_eq!((arrived.deliver, arrived.events), (0..10, Events::READABLE));
    assert!(pair.connection(SERVER).cold.is_none());
}

#[test]
fn what_lies_behind_the_window_is_cut_off_with_the_fin() {
    let config = Config::with(|config| config.receive_buffer_bytes = 1000);
    for (len, has_fin) in [(1000, true), (1001, false)] {
        let mut pair = Pair::alone(&config);
        pair.sides[SERVER].reads = false;
        let draft = pair
            .draft(SERVER)
            .with_payload(&alloc::vec![7; len])
            .with_flags(Flags::FIN | Flags::ACK);
        let (arrived, sent) = pair.give(SERVER, &draft);
        assert_eq!(arrived.deliver, 0..1000);
        assert_eq!(arrived.events.has_any(Events::FINISHED), has_fin);
        assert_eq!((sent.len(), sent[0].window), (1, 0));
    }
}

/// Without room to put it between, what lies in front is taken, so that the stream goes on.
#[test]
fn text_that_fits_nowhere_is_taken_as_far_as_it_is_new() {
    let mut pair = Pair::alone(&Config::default());
    let next = pair.draft(SERVER);
    pair.give(SERVER, &next.clone().shifted(5000).with_payload(b"DEF"));
    pair.sides[SERVER].memory_left_bytes = 0;
    let (arrived, _) = pair.give(SERVER, &next.clone().with_payload(&[1; 8000]));
    assert_eq!(arrived.deliver, 0..5000);
    assert_eq!(arrived.dropped, Some(SegmentDrop::NoBuffer));
    assert_eq!(pair.sides[SERVER].received.len(), 5003);
}

#[test]
fn data_out_of_order_needs_memory() {
    let mut pair = Pair::alone(&Config::default());
    pair.sides[SERVER].memory_left_bytes = 4095;
    let draft = pair.draft(SERVER).shifted(1).with_payload(b"x");
    let (arrived, sent) = pair.give(SERVER, &draft);
    assert_eq!(arrived.dropped, Some(SegmentDrop::NoBuffer));
    assert_eq!((sent.len(), sent[0].options.sack.len()), (1, 0));
    pair.sides[SERVER].memory_left_bytes = 4096;
    assert_eq!(pair.give(SERVER, &draft).0.dropped, None);
}

/// The cold part goes back to the pool as soon as nothing is out of order.
#[test]
fn the_cold_part_lives_as_long_as_a_hole() {
    let mut pair = Pair::alone(&Config::default());
    let next = pair.draft(SERVER);
    pair.give(SERVER, &next.clone().shifted(1).with_payload(b"x"));
    assert!(pair.connection(SERVER).cold.is_some());
    pair.give(SERVER, &next.with_payload(b"y"));
    assert!(pair.connection(SERVER).cold.is_none());
}
