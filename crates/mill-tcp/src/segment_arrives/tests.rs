//! The short path takes what it may, and does what the long one does.

use super::*;
use crate::config::Config;
use crate::pair::{CLIENT, Draft, Pair, SERVER, pattern};
use core::time::Duration;

fn check(change: impl Fn(Draft) -> Draft, is_short: bool) {
    let mut pair = Pair::alone(&Config::default());
    pair.write(SERVER, &pattern(3000));
    pair.flush();
    let draft = change(pair.draft(SERVER).with_payload(b"text"));
    let before = pair.sides[SERVER].shared.counters.short_path;
    pair.give(SERVER, &draft);
    let taken = pair.sides[SERVER].shared.counters.short_path - before;
    assert_eq!(taken == 1, is_short, "{draft:?}");
}

#[test]
fn the_short_path_takes_ordinary_segments_only() {
    check(|draft| draft, true);
    check(|draft| draft.with_flags(Flags::ACK | Flags::PSH), true);
    check(
        |mut draft| {
            draft.ack -= 3000;
            draft
        },
        true,
    );
    for flags in [
        Flags::FIN,
        Flags::URG,
        Flags::ECE,
        Flags::CWR,
        Flags::SYN,
        Flags::RST,
    ] {
        check(|draft| draft.with_flags(Flags::ACK | flags), false);
    }
    check(|draft| draft.with_flags(Flags::PSH), false);
    check(|draft| draft.with_payload(b""), false);
    check(|draft| draft.shifted(1), false);
    check(|draft| draft.shifted(-1), false);
    for by in [-3001, 1] {
        check(
            |mut draft| {
                draft.ack.0 = draft.ack.0.wrapping_add_signed(by);
                draft
            },
            false,
        );
    }
    check(
        |mut draft| {
            draft.options.timestamps = None;
            draft
        },
        false,
    );
    check(
        |mut draft| {
            let stamp = draft.options.timestamps.as_mut().unwrap();
            stamp.value = stamp.value.wrapping_sub(1);
            draft
        },
        false,
    );
    check(
        |draft| Draft {
            ecn: Ecn::Congested,
            ..draft
        },
        false,
    );
}

#[test]
fn a_window_is_the_bound_of_the_short_path() {
    for (extra, is_short) in [(0, true), (1, false)] {
        let mut pair = Pair::alone(&Config::with(|config| config.receive_buffer_bytes = 1000));
        let draft = pair.draft(SERVER).with_payload(&[1; 1001][..1000 + extra]);
        pair.give(SERVER, &draft);
        assert_eq!(pair.sides[SERVER].shared.counters.short_path == 1, is_short);
    }
}

#[test]
fn a_hole_closes_the_short_path() {
    let mut pair = Pair::alone(&Config::default());
    let next = pair.draft(SERVER);
    pair.give(SERVER, &next.clone().shifted(10).with_payload(b"x"));
    pair.give(SERVER, &next.with_payload(b"in order"));
    assert_eq!(pair.sides[SERVER].shared.counters.short_path, 0);
    assert_eq!(pair.sides[SERVER].received, b"in order");
}

/// A download: every data segment but the first ones goes the short way.
#[test]
fn bulk_data_goes_the_short_way() {
    let mut pair = Pair::established(&Config::default());
    pair.write(CLIENT, &pattern(1_448_000));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.sides[SERVER].received.len(), 1_448_000);
    assert!(pair.sides[SERVER].shared.counters.short_path >= 1000);
}

/// The window update rule (RFC 9293 3.10.7.4, fifth) works after gigabytes in one direction without an
/// acknowledgement in the other.
#[test]
fn the_short_path_keeps_the_window_update_rule_going() {
    let mut pair = Pair::alone(&Config::default());
    for _ in 0..3 {
        pair.connection(SERVER).rcv.skip(1 << 30);
        let draft = pair.draft(SERVER).with_payload(b"x");
        pair.give(SERVER, &draft);
    }
    let mut update = pair.draft(SERVER);
    update.window += 5;
    pair.give(SERVER, &update);
    let expected = u32::from(update.window) << 7;
    assert_eq!(pair.connection(SERVER).snd.wnd(), expected);
}

#[test]
fn the_end_of_the_queue_is_told() {
    let mut pair = Pair::established(&Config::default());
    pair.write(SERVER, &pattern(5000));
    pair.flush();
    let mut draft = pair.draft(SERVER);
    draft.ack -= 1;
    let (arrived, _) = pair.give(SERVER, &draft);
    assert_eq!((arrived.acked, arrived.events), (4999, Events::default()));
    draft.ack += 1;
    let (arrived, _) = pair.give(SERVER, &draft);
    assert_eq!((arrived.acked, arrived.events), (1, Events::ALL_ACKED));
}
