//! RFC 9293 3.10.7.4, first; RFC 5961 4 and 5: both sides of each boundary.

use crate::arrived::SegmentDrop;
use crate::config::Config;
use crate::pair::{Draft, Pair, SERVER};
use crate::state::State;
use mill_wire::tcp::Flags;

/// What becomes of a segment that a change makes of the right one, and how many answers it gets at once.
fn check(change: impl Fn(&Pair, Draft) -> Draft, dropped: Option<SegmentDrop>, answers: usize) {
    let mut pair = Pair::alone(&Config {
        quick_acks: 0,
        ..Config::default()
    });
    let draft = change(&pair, pair.draft(SERVER));
    let (arrived, sent) = pair.give(SERVER, &draft);
    assert_eq!(
        (arrived.dropped, sent.len()),
        (dropped, answers),
        "{draft:?}"
    );
    for answer in sent {
        assert_eq!(answer.flags, Flags::ACK);
        assert_eq!(answer.ack, pair.connection(SERVER).rcv.nxt());
    }
    assert_eq!(pair.state(SERVER), State::Established);
}

fn window(pair: &Pair) -> i32 {
    let crate::pair::Peer::Open(connection) = &pair.sides[SERVER].peer else {
        panic!("open");
    };
    i32::try_from(connection.rcv.wnd()).unwrap()
}

#[test]
fn an_empty_segment_is_acceptable_from_next_to_the_right_edge() {
    check(|_, draft| draft, None, 0);
    check(|pair, draft| draft.shifted(window(pair) - 1), None, 0);
    check(|pair, draft| draft.shifted(window(pair)), None, 0);
    let outside = Some(SegmentDrop::OutsideWindow);
    check(|_, draft| draft.shifted(-1), outside, 1);
    check(|pair, draft| draft.shifted(window(pair) + 1), outside, 1);
}

#[test]
fn text_is_acceptable_if_one_byte_lies_in_the_window() {
    let text = |draft: Draft| draft.with_payload(b"0123456789");
    check(|_, draft| text(draft), None, 0);
    check(|_, draft| text(draft).shifted(-9), None, 1);
    check(
        |_, draft| text(draft).shifted(-10),
        Some(SegmentDrop::Duplicate),
        1,
    );
    check(|pair, draft| text(draft).shifted(window(pair) - 1), None, 1);
    check(
        |pair, draft| text(draft).shifted(window(pair)),
        Some(SegmentDrop::OutsideWindow),
        1,
    );
}

#[test]
fn a_segment_without_ack_is_dropped_silently() {
    let no_ack = Some(SegmentDrop::NoAck);
    check(
        |_, draft| draft.with_flags(Flags::PSH).with_payload(b"x"),
        no_ack,
        0,
    );
}

/// RFC 5961 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
#[test]
fn an_acknowledgement_is_believed_in_its_range_only() {
    let with_ack = |by: i32| {
        move |_: &Pair, mut draft: Draft| {
            draft.ack.0 = draft.ack.0.wrapping_add_signed(by);
            draft
        }
    };
    check(with_ack(0), None, 0);
    check(with_ack(1), Some(SegmentDrop::BadAck), 1);
    let mut pair = Pair::alone(&Config::default());
    let wnd_max = i32::try_from(pair.connection(SERVER).snd.wnd_max()).unwrap();
    check(with_ack(-wnd_max), None, 0);
    check(with_ack(-wnd_max - 1), Some(SegmentDrop::BadAck), 1);
}

/// RFC 5961 4.2: a challenge, wherever its number lies.
#[test]
fn a_syn_in_a_synchronized_state_gets_a_challenge() {
    for flags in [Flags::SYN, Flags::SYN | Flags::ACK] {
        for by in [-1, 0, 1000, 1_000_000_000] {
            let blind = Some(SegmentDrop::BlindSyn);
            check(|_, draft| draft.with_flags(flags).shifted(by), blind, 1);
        }
    }
}

/// RFC 9293 3.10.7.4: acknowledgements of a segment beyond a window of zero count, its text does not.
#[test]
fn a_closed_window_still_takes_acknowledgements() {
    let mut pair = Pair::alone(&Config {
        receive_buffer_bytes: 1000,
        ..Config::default()
    });
    pair.sides[SERVER].reads = false;
    let full = pair.draft(SERVER).with_payload(&[1; 1000]);
    let (_, sent) = pair.give(SERVER, &full);
    assert_eq!(sent.last().unwrap().window, 0);
    pair.write(SERVER, b"answer");
    pair.flush();
    let probe = pair.draft(SERVER).with_payload(b"x");
    let (arrived, sent) = pair.give(SERVER, &probe);
    assert_eq!((arrived.acked, arrived.deliver.len()), (6, 0));
    assert_eq!(arrived.dropped, Some(SegmentDrop::OutsideWindow));
    assert_eq!((sent.len(), sent[0].window), (1, 0));
}
