//! Counts of marks, and what a path does to them.

use super::{CEP_INITIAL, Feedback, MarkCounters, ace, ace_of, is_accurate_ack};
use crate::config::{Config, EcnMode};
use crate::connection::{Connection, ConnectionFlags};
use crate::listen::{HalfOpen, HalfOpenOutcome};
use crate::pair::{Draft, Pair, Peer, SERVER, pattern};
use crate::random::Random;
use crate::segment::Ecn;
use crate::state::State;
use crate::time::Duration;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::TcpOptions;

#[test]
fn a_count_is_three_flags() {
    for (count, flags) in [
        (0, Flags(0)),
        (1, Flags::ECE),
        (2, Flags::CWR),
        (5, Flags::AE | Flags::ECE),
        (7, Flags::AE | Flags::CWR | Flags::ECE),
    ] {
        assert_eq!((ace(count), ace_of(flags | Flags::ACK)), (flags, count));
        assert_eq!(is_accurate_ack(flags | Flags::ACK), count > 1);
    }
}

#[test]
fn counters_wrap_and_do_not_touch_each_other() {
    let mut marks = MarkCounters::INITIAL;
    assert_eq!((marks.received(), marks.sent(), marks.pending()), (5, 5, 0));
    assert!(!marks.on_marked(1) && !marks.on_marked(1));
    assert!(marks.on_marked(1), "the third one");
    assert_eq!((marks.received(), marks.sent(), marks.pending()), (0, 5, 3));
    marks.on_told();
    marks.set_sent(255);
    assert_eq!((marks.received(), marks.sent(), marks.pending()), (0, 7, 0));
    // Merged by a device.
    assert!(marks.on_marked(u16::MAX));
    assert_eq!((marks.received(), marks.sent()), (7, 7));
}

/// A server whose client is the test, and what completes its handshake.
fn served(change: impl FnOnce(&mut Draft)) -> Pair {
    let mut pair = Pair::new(&Config::with(|config| {
        config.ecn = EcnMode::AcceptAccurate;
    }));
    pair.wire.lost = 1_000;
    let irs = SeqNumber(u32::MAX - 5);
    let options = TcpOptions {
        mss: Some(1460),
        ..TcpOptions::default()
    };
    let mut draft = Draft {
        seq: irs,
        ack: SeqNumber(0),
        flags: Flags::SYN | Flags::AE | Flags::CWR | Flags::ECE,
        window: 65_535,
        options,
        payload: alloc::vec::Vec::new(),
        ecn: Ecn::NotCapable,
        merged: 1,
    };
    let syn = draft.clone();
    let mut half_open = pair.call(SERVER, |_, env| {
        HalfOpen::on_syn(&syn.segment(), SeqNumber(7000), 0, 1460, env)
    });
    assert!(half_open.ecn.is_accurate());
    draft.seq = irs + 1;
    draft.ack = half_open.iss + 1;
    draft.flags = Flags::ACK | Flags::CWR;
    draft.options = TcpOptions::default();
    change(&mut draft);
    let outcome = pair.call(SERVER, |_, env| half_open.on_segment(&draft.segment(), env));
    let HalfOpenOutcome::Established(connection) = outcome else {
        panic!("{outcome:?}");
    };
    pair.sides[SERVER].peer = Peer::Open(connection);
    pair.inject(SERVER, &draft.segment());
    assert_eq!(pair.state(SERVER), State::Established);
    pair
}

fn has(pair: &mut Pair, flag: u32) -> bool {
    pair.connection(SERVER).flags.has(flag)
}

/// RFC 9768 3.2.2.1, table 4.
#[test]
fn the_last_segment_of_the_handshake_says_how_ours_arrived() {
    let check = |count: u8, is_capable: bool, is_believed: bool, sent: u8| {
        let mut pair = served(|draft| draft.flags = Flags::ACK | ace(count));
        assert!(has(&mut pair, ConnectionFlags::ACCURATE));
        assert_eq!(
            pair.connection(SERVER).is_ecn_capable(),
            is_capable,
            "{count}"
        );
        assert_eq!(
            !has(&mut pair, ConnectionFlags::MARKS_IGNORED),
            is_believed,
            "{count}"
        );
        assert_eq!(pair.connection(SERVER).marks.sent(), sent, "{count}");
        assert_eq!(pair.connection(SERVER).marks.received(), CEP_INITIAL);
    };
    check(0, false, false, 5);
    check(1, true, true, 5);
    check(2, true, true, 5);
    check(3, false, true, 5);
    check(4, false, true, 5);
    check(5, true, true, 5);
    check(6, false, true, 6);
    check(7, true, true, 5);
}

/// With text it is a count already: a SYN-ACK that arrived marked is known with the first acknowledgement of data.
#[test]
fn text_beside_the_last_acknowledgement_makes_it_a_count() {
    let mut pair = served(|draft| {
        draft.flags = Flags::ACK | ace(6);
        draft.payload = pattern(10);
    });
    assert!(pair.connection(SERVER).is_ecn_capable());
    assert_eq!(pair.connection(SERVER).marks.sent(), CEP_INITIAL);
}

/// A client that has seen no mark costs the short path nothing, also after marks.
#[test]
fn segments_without_news_of_marks_take_the_short_path() {
    let mut pair = served(|_| {});
    let mut count = CEP_INITIAL;
    for round in 0..20_u64 {
        let before = pair.sides[SERVER].shared.counters.short_path;
        pair.write(SERVER, &pattern(1000));
        pair.flush();
        if round == 10 {
            count += 1;
        }
        let mut draft = pair.draft(SERVER).with_payload(b"request");
        draft.flags = Flags::ACK | Flags::PSH | ace(count);
        draft.ecn = Ecn::Capable0;
        pair.give(SERVER, &draft);
        let after = pair.sides[SERVER].shared.counters.short_path;
        assert_eq!(after - before, u64::from(round != 10), "{round}");
    }
    assert_eq!(pair.sides[SERVER].shared.counters.ecn_reductions, 1);
}

/// Devices take CWR from all but the first piece of what they cut.
#[test]
fn what_a_device_would_change_is_not_left_to_it() {
    let mut pair = served(|_| {});
    pair.sides[SERVER].segment_bytes_max = 60_000;
    let longest = |pair: &mut Pair| {
        pair.write(SERVER, &pattern(5_840));
        let sent = pair.command(SERVER, |connection, env| {
            connection.next_segment(5_840, env)
        });
        pair.flush();
        let mut draft = pair.draft(SERVER);
        draft.flags = Flags::ACK | ace(CEP_INITIAL);
        pair.give(SERVER, &draft);
        sent.unwrap().len
    };
    assert_eq!(longest(&mut pair), 5_840);
    let mut marked = pair.draft(SERVER).with_payload(b"x");
    marked.flags = Flags::ACK | ace(CEP_INITIAL);
    marked.ecn = Ecn::Congested;
    pair.give(SERVER, &marked);
    assert_eq!(longest(&mut pair), 1_460);
}

/// Whatever flags and marks a peer sends in whatever order: nothing breaks, and what it is told is what came.
#[test]
fn any_flags_in_any_order_are_survived() {
    let mut random = Random::new(9768);
    for _ in 0..40 {
        let mut below = |bound: u64| random.next() % bound;
        let first = u8::try_from(below(8)).unwrap();
        let mut pair = served(|draft| draft.flags = Flags::ACK | ace(first));
        let mut marked = 0_u32;
        for _ in 0..200 {
            if below(2) == 0 {
                pair.write(SERVER, &pattern(usize::try_from(below(4000)).unwrap()));
                pair.flush();
            }
            let mut draft = pair.draft(SERVER);
            draft.payload = pattern(usize::try_from(below(3) * 700).unwrap());
            draft.flags = Flags::ACK | ace(u8::try_from(below(8)).unwrap());
            draft.ecn = [Ecn::NotCapable, Ecn::Capable0, Ecn::Congested]
                [usize::try_from(below(3)).unwrap()];
            draft.merged = u16::try_from(1 + below(3)).unwrap();
            if draft.ecn == Ecn::Congested {
                marked += u32::from(draft.merged);
            }
            pair.give(SERVER, &draft);
            pair.run_for(Duration::from_millis(below(60)));
            let told = u32::from(pair.connection(SERVER).marks.received());
            assert_eq!(told, (5 + marked) % 8);
        }
    }
}

#[test]
fn a_syn_asks_by_all_flags_that_mean_nothing_older() {
    let pair = served(|_| {});
    for count in 0..8 {
        let draft = pair.draft(SERVER).with_flags(Flags::SYN | ace(count));
        let asked = Connection::asked_by(&draft.segment());
        assert_eq!(asked.is_some(), !matches!(count, 0 | 3), "{count}");
    }
    assert_eq!(Feedback::None.of_syn_ack(), Flags(0));
    assert_eq!(Feedback::Classic.of_syn_ack(), Flags::ECE);
}
