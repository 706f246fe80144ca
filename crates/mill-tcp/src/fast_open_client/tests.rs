//! RFC 7413 4.1 and 4.2, from the client's SYN to what its answer leaves to be sent.

use crate::arrived::{Events, SegmentDrop};
use crate::config::Config;
use crate::pair::{CLIENT, Draft, Pair, pattern};
use crate::segment::{Ecn, SegmentOut};
use crate::state::State;
use crate::time::Duration;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{FastOpenCookie, TcpOptions};

const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const QUEUED: u32 = 2_500;
const TEXT_MAX: u16 = 1_000;

/// A client on a wire that leads nowhere, which has queued bytes and sent its SYN.
fn opening(cookie: &[u8], text_max: u16) -> (Pair, SegmentOut) {
    let mut pair = Pair::new(&Config::default());
    pair.wire.lost = 1000;
    pair.open(CLIENT);
    let cookie = FastOpenCookie::new(cookie);
    pair.command(CLIENT, |connection, env| {
        connection.ask_fast_open(cookie, text_max, env);
    });
    pair.write(CLIENT, &pattern(QUEUED as usize));
    pair.flush();
    let sent = pair.sent_since(0, CLIENT);
    assert_eq!(sent.len(), 1, "a SYN and nothing else");
    (pair, sent[0])
}

/// The answer to the SYN, and `acked` bytes behind it.
fn syn_ack(pair: &Pair, acked: u32) -> Draft {
    Draft {
        seq: SeqNumber(500),
        ack: pair.sides[CLIENT].iss + 1 + acked,
        flags: Flags::SYN | Flags::ACK,
        window: 60_000,
        options: TcpOptions {
            mss: Some(1_000),
            ..TcpOptions::default()
        },
        payload: Vec::new(),
        ecn: Ecn::NotCapable,
        merged: 1,
    }
}

#[test]
fn a_syn_carries_the_cookie_and_as_much_text_as_it_may() {
    for (cookie, text_max, expected) in [
        (&[][..], 0, 0),
        (&COOKIE, TEXT_MAX, 1_000),
        (&COOKIE, 5_000, 1_420),
    ] {
        let (_, syn) = opening(cookie, text_max);
        assert_eq!((syn.flags, syn.len, syn.offset), (Flags::SYN, expected, 0));
        assert_eq!(syn.options.fast_open, FastOpenCookie::new(cookie));
        assert!(syn.len <= u32::from(syn.mss));
    }
}

/// What follows an answer that acknowledges so much of the text: the first byte, counted from behind the SYN.
fn check(acked: u32, is_taken: bool) {
    let (mut pair, _) = opening(&COOKIE, TEXT_MAX);
    let draft = syn_ack(&pair, acked);
    let (arrived, sent) = pair.give(CLIENT, &draft);
    assert!(arrived.events.has_any(Events::ESTABLISHED), "{acked}");
    assert!(!arrived.events.has_any(Events::SYN_TEXT_LOST));
    assert_eq!(arrived.acked, acked);
    let begin = pair.sides[CLIENT].iss + 1;
    assert_eq!(sent[0].seq - begin, acked);
    assert_eq!(sent[0].offset, 0, "what is acknowledged has left the queue");
    let len: u32 = sent.iter().map(|segment| segment.len).sum();
    assert_eq!(len, QUEUED - acked, "all the rest leaves");
    assert!(
        sent.iter()
            .all(|segment| segment.options.fast_open.is_none())
    );
    let info = pair.command(CLIENT, |connection, env| connection.info(env.config));
    assert_eq!(info.syn_text_taken, is_taken, "{acked}");
    // And the connection goes on as any other.
    let ack = Draft {
        seq: SeqNumber(501),
        ack: begin + QUEUED,
        flags: Flags::ACK,
        options: TcpOptions::default(),
        ..draft
    };
    let (arrived, _) = pair.give(CLIENT, &ack);
    assert_eq!(arrived.acked, QUEUED - acked);
    assert!(arrived.events.has_any(Events::ALL_ACKED));
}

#[test]
fn what_the_answer_does_not_acknowledge_is_sent_again_at_once() {
    check(0, false);
    check(1, false);
    check(999, false);
    check(1_000, true);
}

#[test]
fn an_acknowledgement_beyond_the_text_gets_a_reset() {
    for acked in [u32::MAX, 1_001] {
        let (mut pair, _) = opening(&COOKIE, TEXT_MAX);
        let mut draft = syn_ack(&pair, 0);
        draft.ack = SeqNumber(draft.ack.0.wrapping_add(acked));
        let (arrived, sent) = pair.give(CLIENT, &draft);
        assert_eq!(arrived.dropped, Some(SegmentDrop::BadAck), "{acked}");
        assert_eq!(sent[0].flags & Flags::RST, Flags::RST);
        assert_eq!(pair.state(CLIENT), State::SynSent);
    }
}

#[test]
fn a_syn_without_an_answer_is_repeated_plainly_and_its_text_is_told_as_lost() {
    for (acked, is_lost) in [(0, true), (1_000, false)] {
        let (mut pair, _) = opening(&COOKIE, TEXT_MAX);
        pair.run_for(Duration::from_millis(1_100));
        let again = pair.sent_since(1, CLIENT);
        assert_eq!((again[0].flags, again[0].len), (Flags::SYN, 0));
        assert_eq!(again[0].options.fast_open, None);
        // It may be the first SYN that is answered after all.
        let draft = syn_ack(&pair, acked);
        let (arrived, _) = pair.give(CLIENT, &draft);
        assert_eq!(arrived.events.has_any(Events::SYN_TEXT_LOST), is_lost);
        assert_eq!(arrived.acked, acked);
    }
}

/// RFC 7413 4.1.3.1: the text is what made it too large.
#[test]
fn a_syn_that_was_too_large_is_repeated_plainly_and_at_once() {
    for (at, mss, is_believed) in [
        (0, 800, true),
        (1_000, 800, true),
        (1_001, 800, false),
        (0, 500, false),
        (0, 1_460, false),
    ] {
        let (mut pair, _) = opening(&COOKIE, TEXT_MAX);
        let quoted = pair.sides[CLIENT].iss + at;
        let before = pair.log.len();
        let believed = pair.command(CLIENT, |connection, env| {
            connection.on_packet_too_big(quoted, mss, env)
        });
        assert_eq!(believed, is_believed, "{at} {mss}");
        pair.flush();
        let again = pair.sent_since(before, CLIENT);
        assert_eq!(again.len(), usize::from(is_believed));
        if let [syn] = again[..] {
            assert_eq!((syn.flags, syn.len), (Flags::SYN, 0));
            assert_eq!((syn.options.mss, syn.options.fast_open), (Some(mss), None));
        }
    }
}

#[test]
fn a_refusal_of_the_text_ends_the_connection() {
    let (mut pair, _) = opening(&COOKIE, TEXT_MAX);
    let mut draft = syn_ack(&pair, 1_000);
    draft.flags = Flags::RST | Flags::ACK;
    let (arrived, _) = pair.give(CLIENT, &draft);
    assert_eq!(arrived.events, Events::REFUSED);
}

/// RFC 9293 3.5, figure 8: the peer's SYN crosses ours, and its SYN-ACK acknowledges the text too.
#[test]
fn text_is_taken_when_both_sides_open_at_once() {
    let (mut pair, _) = opening(&COOKIE, TEXT_MAX);
    let mut syn = syn_ack(&pair, 0);
    syn.flags = Flags::SYN;
    let (_, sent) = pair.give(CLIENT, &syn);
    assert_eq!(sent[0].flags, Flags::SYN | Flags::ACK);
    assert_eq!(sent[0].options.mss, Some(1460), "not the peer's 1000");
    assert_eq!(pair.state(CLIENT), State::SynReceived);
    let draft = syn_ack(&pair, 1_000);
    let (arrived, sent) = pair.give(CLIENT, &draft);
    assert!(arrived.events.has_any(Events::ESTABLISHED));
    assert_eq!(arrived.acked, 1_000);
    assert_eq!(sent[0].seq, pair.sides[CLIENT].iss + 1 + 1_000);
}
