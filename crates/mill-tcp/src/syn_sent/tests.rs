//! RFC 9293 3.10.7.3, and simultaneous open.

use crate::arrived::{Events, SegmentDrop};
use crate::config::{Config, EcnMode};
use crate::pair::{CLIENT, Draft, Pair, Peer, SERVER, pattern};
use crate::segment::Ecn;
use crate::state::State;
use alloc::vec::Vec;
use core::time::Duration;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::TcpOptions;

fn syn_sent() -> Pair {
    let mut pair = Pair::new(&Config::default());
    pair.wire.lost = 1000;
    pair.connect();
    pair
}

/// What a server could answer; `ack` beyond the SYN by so many.
fn answer(pair: &Pair, flags: Flags, ack: i32) -> Draft {
    Draft {
        seq: SeqNumber(500),
        ack: SeqNumber((pair.sides[CLIENT].iss + 1).0.wrapping_add_signed(ack)),
        flags,
        window: 5000,
        options: TcpOptions {
            mss: Some(1000),
            ..TcpOptions::default()
        },
        payload: Vec::new(),
        ecn: Ecn::NotCapable,
        merged: 1,
    }
}

#[test]
fn a_syn_ack_completes_the_handshake() {
    let mut pair = syn_sent();
    let draft = answer(&pair, Flags::SYN | Flags::ACK, 0);
    let (arrived, sent) = pair.give(CLIENT, &draft);
    assert_eq!(arrived.events, Events::ESTABLISHED);
    assert_eq!(pair.state(CLIENT), State::Established);
    assert_eq!(
        (sent.len(), sent[0].ack, sent[0].flags),
        (1, draft.seq + 1, Flags::ACK)
    );
    let connection = pair.connection(CLIENT);
    assert_eq!((connection.mss(), connection.snd.wnd()), (1000, 5000));
    assert_eq!(connection.next_timer(), None);
}

/// RFC 9293 3.10.7.3, first: both sides of the one number that is right.
#[test]
fn an_acknowledgement_of_something_else_gets_a_reset() {
    for ack in [-1, 1] {
        for flags in [Flags::ACK, Flags::SYN | Flags::ACK] {
            let mut pair = syn_sent();
            let draft = answer(&pair, flags, ack);
            let (arrived, sent) = pair.give(CLIENT, &draft);
            assert_eq!(arrived.dropped, Some(SegmentDrop::BadAck));
            assert_eq!(
                (sent.len(), sent[0].flags, sent[0].seq),
                (1, Flags::RST, draft.ack)
            );
            assert_eq!(pair.state(CLIENT), State::SynSent);
        }
        let mut pair = syn_sent();
        let draft = answer(&pair, Flags::RST | Flags::ACK, ack);
        let (_, sent) = pair.give(CLIENT, &draft);
        assert!(sent.is_empty() && pair.state(CLIENT) == State::SynSent);
    }
}

/// The challenge of a peer that remembers an older connection.
#[test]
fn a_syn_is_repeated_soon_after_a_reset_but_once() {
    let mut pair = syn_sent();
    let start = pair.now;
    for _ in 0..3 {
        let draft = answer(&pair, Flags::ACK, 100);
        pair.give(CLIENT, &draft);
        pair.run_for(Duration::from_millis(10));
    }
    pair.run_for(Duration::from_secs(3));
    let syns = pair
        .log
        .iter()
        .filter(|entry| entry.2.flags.has(Flags::SYN))
        .map(|entry| entry.0.since(start).as_millis())
        .collect::<Vec<_>>();
    assert_eq!(syns, [0, 2, 2002]);
    assert_eq!(pair.state(CLIENT), State::SynSent);
}

/// RFC 9293 3.10.7.3, second: a refusal acknowledges the SYN.
#[test]
fn a_reset_counts_only_if_it_acknowledges_the_syn() {
    let mut pair = syn_sent();
    let draft = answer(&pair, Flags::RST, 0);
    let (arrived, _) = pair.give(CLIENT, &draft);
    assert_eq!(arrived.dropped, Some(SegmentDrop::BlindReset));
    assert_eq!(pair.state(CLIENT), State::SynSent);
    let draft = answer(&pair, Flags::RST | Flags::ACK, 0);
    let (arrived, sent) = pair.give(CLIENT, &draft);
    assert_eq!(arrived.events, Events::REFUSED);
    assert!(sent.is_empty());
}

/// RFC 9293 3.10.7.3, fifth.
#[test]
fn neither_syn_nor_reset_changes_nothing() {
    for flags in [
        Flags::default(),
        Flags::ACK,
        Flags::FIN,
        Flags::FIN | Flags::ACK,
    ] {
        let mut pair = syn_sent();
        let draft = answer(&pair, flags, 0);
        let (arrived, sent) = pair.give(CLIENT, &draft);
        assert_eq!(arrived.dropped, Some(SegmentDrop::NoAck));
        assert!(sent.is_empty() && pair.state(CLIENT) == State::SynSent);
    }
}

#[test]
fn data_and_fin_beside_a_syn_ack_are_taken() {
    let mut pair = syn_sent();
    let draft = answer(&pair, Flags::SYN | Flags::ACK | Flags::FIN, 0).with_payload(b"hello");
    let (arrived, sent) = pair.give(CLIENT, &draft);
    assert!(arrived.events.has_any(Events::READABLE) && arrived.events.has_any(Events::FINISHED));
    assert_eq!(pair.sides[CLIENT].received, b"hello");
    assert_eq!(pair.state(CLIENT), State::CloseWait);
    assert_eq!(sent[0].ack, draft.seq + 7);
}

/// RFC 9293 3.8.3: at least three minutes by default; 1, 3, 7 … seconds after the first.
#[test]
fn a_syn_is_repeated_with_growing_waits_and_given_up() {
    let mut pair = syn_sent();
    let start = pair.now;
    pair.run_for(Duration::from_secs(126));
    let sent_at = pair
        .log
        .iter()
        .map(|entry| entry.0.since(start).as_secs())
        .collect::<Vec<_>>();
    assert_eq!(sent_at, [0, 1, 3, 7, 15, 31, 63]);
    assert!(
        pair.log
            .iter()
            .all(|entry| entry.2.seq == pair.sides[CLIENT].iss)
    );
    assert!(pair.sides[CLIENT].events.is_empty());
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.sides[CLIENT].events, Events::TIMED_OUT);
    assert!(matches!(pair.sides[CLIENT].peer, Peer::Gone));
}

/// RFC 3168 6.1.1.1: a SYN that may have been dropped because of ECN is repeated without.
#[test]
fn ecn_is_asked_for_once() {
    let mut pair = Pair::new(&Config {
        ecn: EcnMode::Ask,
        ..Config::default()
    });
    pair.wire.lost = 1000;
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let asks = |index: usize| pair.log[index].2.flags.has(Flags::ECE | Flags::CWR);
    assert!(asks(0) && !asks(1));
}

/// RFC 9293 3.5, figure 8.
#[test]
fn both_sides_may_open_at_once() {
    for bad in [0, 200] {
        let mut pair = Pair::with_seed(&Config::default(), 3);
        pair.wire.lost = bad;
        pair.open(CLIENT);
        pair.open(SERVER);
        pair.flush();
        pair.write(CLIENT, &pattern(5000));
        pair.write(SERVER, &pattern(7000));
        pair.run_until(Duration::from_secs(300), |pair| {
            pair.sides[SERVER].received.len() == 5000 && pair.sides[CLIENT].received.len() == 7000
        });
        for side in [CLIENT, SERVER] {
            assert!(pair.sides[side].events.has_any(Events::ESTABLISHED));
            assert_eq!(pair.state(side), State::Established);
            assert_eq!(pair.connection(side).mss(), 1448);
            assert_eq!(pair.connection(side).snd_wind_shift, 7);
        }
        if bad == 0 {
            assert_eq!(pair.log[2].2.flags, Flags::SYN | Flags::ACK);
            assert_eq!(pair.log[3].2.flags, Flags::SYN | Flags::ACK);
        }
    }
}

/// RFC 9293 3.10.7.4, second: a simultaneous open that is refused.
#[test]
fn a_reset_refuses_a_simultaneous_open() {
    let mut pair = syn_sent();
    let draft = answer(&pair, Flags::SYN, 0);
    pair.give(CLIENT, &draft);
    assert_eq!(pair.state(CLIENT), State::SynReceived);
    let reset = answer(&pair, Flags::RST, 0).shifted(1);
    let (arrived, _) = pair.give(CLIENT, &reset);
    assert_eq!(arrived.events, Events::REFUSED);
}

/// RFC 9293 3.10.7.4, fifth, SYN-RECEIVED.
#[test]
fn a_wrong_acknowledgement_of_a_simultaneous_open_gets_a_reset() {
    for (ack, state) in [
        (-1, State::SynReceived),
        (0, State::Established),
        (1, State::SynReceived),
    ] {
        let mut pair = syn_sent();
        let draft = answer(&pair, Flags::SYN, 0);
        pair.give(CLIENT, &draft);
        let draft = answer(&pair, Flags::ACK, ack).shifted(1);
        let (_, sent) = pair.give(CLIENT, &draft);
        assert_eq!(pair.state(CLIENT), state);
        if state == State::SynReceived {
            assert_eq!((sent[0].flags, sent[0].seq), (Flags::RST, draft.ack));
        }
    }
}

/// RFC 9293 3.10.4: CLOSE before the handshake is complete.
#[test]
fn a_close_in_syn_received_is_followed_after_the_handshake() {
    let mut pair = Pair::new(&Config::default());
    pair.open(CLIENT);
    pair.open(SERVER);
    pair.flush();
    pair.run_for(Duration::from_millis(11));
    assert_eq!(pair.state(CLIENT), State::SynReceived);
    pair.close(CLIENT);
    pair.close(SERVER);
    pair.run_for(Duration::from_secs(1));
    assert!(matches!(pair.sides[CLIENT].peer, Peer::TimeWait(_)));
    assert!(matches!(pair.sides[SERVER].peer, Peer::TimeWait(_)));
}

#[test]
fn a_close_in_syn_sent_ends_it() {
    let mut pair = syn_sent();
    pair.close(CLIENT);
    assert_eq!(pair.state(CLIENT), State::Closed);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.log.len(), 1);
}
