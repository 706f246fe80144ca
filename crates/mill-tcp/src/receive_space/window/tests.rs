//! The window: its edge and its steps.

use crate::config::Config;
use crate::pair::{Pair, SERVER, pattern};
use core::time::Duration;

fn pair(receive_buffer_bytes: u32) -> Pair {
    let mut pair = Pair::alone(&Config {
        receive_buffer_bytes,
        receive_buffer_bytes_max: receive_buffer_bytes.max(65_535),
        quick_acks: 0,
        ..Config::default()
    });
    pair.sides[SERVER].reads = false;
    pair
}

fn consume(pair: &mut Pair, bytes: u32) {
    pair.command(SERVER, |connection, env| connection.consumed(bytes, env));
}

/// Of a buffer smaller than two segments, half is worth an update.
#[test]
fn half_of_a_small_buffer_is_worth_an_update() {
    let mut pair = pair(1000);
    let full = pair.draft(SERVER).with_payload(&[1; 1000]);
    pair.give(SERVER, &full);
    let before = pair.log.len();
    consume(&mut pair, 499);
    pair.flush();
    assert!(pair.sent_since(before, SERVER).is_empty());
    consume(&mut pair, 1);
    pair.flush();
    assert_eq!(pair.sent_since(before, SERVER)[0].window, 500);
}

/// A window that takes no two segments more is narrow, however small the buffer.
#[test]
fn a_window_of_one_segment_is_opened_at_once() {
    let mut pair = pair(4000);
    let draft = pair.draft(SERVER).with_payload(&[1; 2505]);
    pair.give(SERVER, &draft);
    let before = pair.log.len();
    consume(&mut pair, 2505);
    pair.flush();
    let sent = pair.sent_since(before, SERVER);
    assert_eq!((sent.len(), sent[0].window), (1, 4000));
}

/// A window without a scale can't say more than 65535, however large the buffer is: reading causes nothing while all of
/// that is offered.
#[test]
fn reading_from_a_buffer_larger_than_the_window_field_repeats_nothing() {
    for (window_scaling, expected) in [(false, 0), (true, 0)] {
        let mut pair = Pair::alone(&Config {
            receive_buffer_bytes: 256 << 10,
            receive_buffer_bytes_max: 256 << 10,
            quick_acks: 0,
            window_scaling,
            ..Config::default()
        });
        pair.sides[SERVER].reads = false;
        for _ in 0..40 {
            let draft = pair.draft(SERVER).with_payload(&[1; 1000]);
            pair.give(SERVER, &draft);
        }
        pair.run_for(Duration::from_millis(50));
        let before = pair.log.len();
        for _ in 0..40 {
            consume(&mut pair, 1000);
            pair.flush();
        }
        let sent = pair.sent_since(before, SERVER);
        assert_eq!(sent.len(), expected, "scaling {window_scaling}: {sent:?}");
    }
}

/// While much is still offered, a reader causes no segments.
#[test]
fn a_reader_that_keeps_pace_causes_no_updates() {
    let mut pair = pair(65_535);
    let draft = pair.draft(SERVER).with_payload(&[1; 1000]);
    pair.give(SERVER, &draft);
    let before = pair.log.len();
    consume(&mut pair, 1000);
    pair.flush();
    assert!(pair.sent_since(before, SERVER).is_empty());
}

/// RFC 9293 3.8.6: segments of any size, a reader that sleeps, a scale that does not divide them; the pair checks
/// every segment. The bytes beyond the buffer that rounding gives away are bounded.
#[test]
fn the_edge_never_moves_left() {
    for len in [1, 7, 100, 129, 1000, 1448] {
        let mut pair = Pair::established(&Config::with(|config| {
            config.receive_buffer_bytes = 100_000
        }));
        assert_eq!(pair.connection(SERVER).shifts.rcv(), 7);
        pair.sides[SERVER].reads = false;
        let payload = pattern(len);
        for _ in 0..100 {
            if pair.connection(SERVER).rcv.wnd() < u32::try_from(len).unwrap() {
                break;
            }
            let draft = pair.draft(SERVER).with_payload(&payload);
            pair.give(SERVER, &draft);
        }
        assert!(pair.connection(SERVER).unread_bytes() <= 100_000 + 12_500 + 128);
    }
}

/// A peer that fills the window with tiny segments gets no more than an eighth beyond the buffer.
#[test]
fn rounding_gives_away_little() {
    let config = Config {
        receive_buffer_bytes: 4096,
        quick_acks: 0,
        ..Config::default()
    };
    let mut pair = Pair::established(&config);
    pair.sides[SERVER].reads = false;
    for _ in 0..10_000 {
        if pair.connection(SERVER).rcv.wnd() == 0 {
            break;
        }
        let draft = pair.draft(SERVER).with_payload(b"x");
        pair.inject(SERVER, &draft.segment());
        pair.command(SERVER, |connection, _| {
            let shift = connection.shifts.rcv();
            connection.rcv.offer_window(shift)
        });
    }
    assert_eq!(pair.connection(SERVER).rcv.wnd(), 0);
    assert!(pair.connection(SERVER).unread_bytes() <= 4096 + 512 + 128);
}

/// A reader that waits for a whole record of TLS, and then for the next one behind it, gets them, whatever the window's scale leaves
/// of a window.
#[test]
fn a_reader_gets_as_much_as_it_waits_for() {
    for beyond in 1..300 {
        let mut pair = Pair::established(&Config {
            receive_buffer_bytes: 4000,
            ..Config::default()
        });
        assert_eq!(pair.connection(SERVER).shifts.rcv(), 7);
        pair.sides[SERVER].reads = false;
        fill(&mut pair, 16_000);
        let wanted = pair.connection(SERVER).unread_bytes() + beyond;
        fill(&mut pair, wanted);
        let unread = pair.connection(SERVER).unread_bytes();
        assert!(unread >= wanted, "{unread} of {wanted}");
    }
}

/// The reader waits for so much, and the peer sends all that it may.
fn fill(pair: &mut Pair, wanted: u32) {
    loop {
        pair.command(SERVER, |connection, _| {
            connection.reserve_receive(wanted);
        });
        pair.run_for(Duration::from_millis(500));
        let open = pair.connection(SERVER).rcv.wnd().min(1460);
        if open == 0 {
            return;
        }
        let draft = pair.draft(SERVER).with_payload(&pattern(open as usize));
        pair.give(SERVER, &draft);
    }
}
