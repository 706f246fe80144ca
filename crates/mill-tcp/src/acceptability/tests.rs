//! RFC 9293 3.10.7.4, first; RFC 5961 4 and 5: both sides of each boundary.

use crate::arrived::SegmentDrop;
use crate::config::Config;
use crate::pair::{Draft, Pair, SERVER};
use crate::state::State;
use mill_wire::tcp::Flags;

/// What becomes of a segment that a change makes of the right one, and how many answers it gets at once.
fn check(change: impl Fn(&Pair, Draft) -> Draft, dropped: Option<SegmentDrop>, answers: usize) {
    let mut pair = Pair::alone(&Config::with(|config| config.quick_acks = 0));
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
