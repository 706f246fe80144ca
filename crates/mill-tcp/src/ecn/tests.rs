//! Congestion marks and their echo (RFC 3168 6.1.3).

use crate::config::{Config, EcnMode};
use crate::pair::{CLIENT, Draft, Pair, SERVER, pattern};
use crate::segment::Ecn;
use core::time::Duration;
use mill_wire::tcp::Flags;

fn config(ecn: EcnMode) -> Config {
    Config {
        ecn,
        quick_acks: 0,
        ..Config::default()
    }
}

fn marked(draft: Draft) -> Draft {
    Draft {
        ecn: Ecn::Congested,
        ..draft
    }
}

#[test]
fn a_mark_is_echoed_at_once_and_until_the_peer_has_slowed_down() {
    let mut pair = Pair::alone(&config(EcnMode::Ask));
    let mut give = |mark: bool, flags: Flags| {
        let draft = pair
            .draft(SERVER)
            .with_payload(b"x")
            .with_flags(Flags::ACK | flags);
        let draft = if mark { marked(draft) } else { draft };
        pair.inject(SERVER, &draft.segment());
        pair.command(SERVER, |connection, env| {
            let is_at_once = connection
                .flags
                .has(crate::connection::ConnectionFlags::ACK_NOW);
            let segment = connection.make_segment(connection.snd.nxt(), Flags::ACK, 0, 0, env);
            (is_at_once, segment.flags.has(Flags::ECE))
        })
    };
    assert_eq!(give(false, Flags::default()), (false, false));
    assert_eq!(give(true, Flags::default()), (true, true));
    assert_eq!(give(false, Flags::default()), (false, true));
    assert_eq!(give(false, Flags::CWR), (false, false));
    // A mark on the segment that says so is a new one.
    assert_eq!(give(true, Flags::CWR), (true, true));
    assert_eq!(give(true, Flags::default()), (false, true));
}

#[test]
fn a_mark_means_nothing_if_ecn_was_not_agreed() {
    let mut pair = Pair::alone(&config(EcnMode::Off));
    let draft = marked(pair.draft(SERVER).with_payload(b"x"));
    pair.give(SERVER, &draft);
    pair.run_for(Duration::from_millis(50));
    let last = pair.log.last().unwrap().2;
    assert!(!last.flags.has(Flags::ECE));
}

/// A queue that marks instead of dropping: the sender slows down, and nothing is sent twice.
#[test]
fn marks_slow_the_sender_down_without_loss() {
    let mut pair = Pair::new(&config(EcnMode::Ask));
    pair.wire.marked = 30;
    pair.connect();
    let text = pattern(1_000_000);
    pair.write(CLIENT, &text);
    pair.run_until(Duration::from_secs(60), |pair| {
        pair.sides[SERVER].received.len() == text.len()
    });
    assert!(pair.sides[SERVER].received == text);
    let counters = pair.sides[CLIENT].shared.counters;
    assert!(counters.ecn_reductions > 0);
    assert_eq!(counters.retransmitted, 0);
}
