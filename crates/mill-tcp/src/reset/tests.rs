//! RST: believed, challenged, sent.

use crate::arrived::{Events, SegmentDrop};
use crate::config::Config;
use crate::pair::{CLIENT, Draft, Pair, SERVER};
use crate::state::State;
use mill_wire::tcp::Flags;

/// RFC 5961 3.2.
fn check(by: impl Fn(i32) -> i32, dropped: Option<SegmentDrop>, answers: usize) {
    let mut pair = Pair::established(&Config::default());
    let window = i32::try_from(pair.connection(SERVER).rcv.wnd()).unwrap();
    let draft = pair
        .draft(SERVER)
        .with_flags(Flags::RST)
        .shifted(by(window));
    let (arrived, sent) = pair.give(SERVER, &draft);
    assert_eq!(
        (arrived.dropped, sent.len()),
        (dropped, answers),
        "{draft:?}"
    );
    assert_eq!(
        arrived.events.has_any(Events::RESET),
        dropped.is_none(),
        "{draft:?}"
    );
    assert_eq!(pair.state(SERVER) == State::Closed, dropped.is_none());
    assert!(sent.iter().all(|answer| answer.flags == Flags::ACK));
}

#[test]
fn a_reset_is_believed_exactly_at_what_is_next() {
    check(|_| 0, None, 0);
}

#[test]
fn a_reset_elsewhere_in_the_window_gets_a_challenge() {
    check(|_| 1, Some(SegmentDrop::BlindReset), 1);
    check(|window| window - 1, Some(SegmentDrop::BlindReset), 1);
}

#[test]
fn a_reset_outside_the_window_gets_nothing() {
    check(|_| -1, Some(SegmentDrop::OutsideWindow), 0);
    check(|window| window, Some(SegmentDrop::OutsideWindow), 0);
}

/// RFC 7323 5.2: RST is exempt from PAWS, and needs no timestamp (3.2).
#[test]
fn a_reset_is_believed_without_timestamps_and_with_old_ones() {
    for age in [None, Some(100)] {
        let mut pair = Pair::established(&Config::default());
        let mut draft = pair.draft(SERVER).with_flags(Flags::RST | Flags::ACK);
        draft.options.timestamps = age.and_then(|age| {
            draft.options.timestamps.map(|mut stamp| {
                stamp.value = stamp.value.wrapping_sub(age);
                stamp
            })
        });
        assert!(pair.give(SERVER, &draft).0.events.has_any(Events::RESET));
    }
}

#[test]
fn resets_close_in_every_state_that_has_a_peer() {
    type Go = fn(&mut Pair);
    let moves: [(Go, State); 4] = [
        (|_| {}, State::Established),
        (|pair| shutdown(pair, SERVER), State::FinWait2),
        (|pair| shutdown(pair, CLIENT), State::CloseWait),
        (
            |pair| {
                shutdown(pair, CLIENT);
                pair.command(SERVER, |connection, env| connection.shutdown(env));
                pair.flush();
            },
            State::LastAck,
        ),
    ];
    for (go, state) in moves {
        let mut pair = Pair::established(&Config::default());
        go(&mut pair);
        assert_eq!(pair.state(SERVER), state);
        let draft = pair.draft(SERVER).with_flags(Flags::RST);
        let (arrived, _) = pair.give(SERVER, &draft);
        assert!(arrived.events.has_any(Events::RESET), "{state:?}");
        assert_eq!(pair.state(SERVER), State::Closed);
    }
}

fn shutdown(pair: &mut Pair, who: usize) {
    pair.command(who, |connection, env| connection.shutdown(env));
    pair.run_for(core::time::Duration::from_millis(100));
}

/// RFC 9293 3.10.5: the RST of an abort is what the peer believes.
#[test]
fn an_abort_tells_the_peer() {
    let mut pair = Pair::established(&Config::default());
    let reset = pair
        .command(SERVER, |connection, env| connection.abort(env))
        .unwrap();
    assert_eq!(reset.flags, Flags::RST | Flags::ACK);
    pair.transmit(SERVER, reset);
    pair.run_for(core::time::Duration::from_millis(20));
    assert!(pair.sides[CLIENT].events.has_any(Events::RESET));
    // Nothing is due of a connection that is no more.
    assert_eq!(pair.state(SERVER), State::Closed);
    assert_eq!(pair.sides[SERVER].shared.counters.resets_out, 1);
}

#[test]
fn an_active_open_is_aborted_without_a_word() {
    let mut pair = Pair::new(&Config::default());
    pair.open(CLIENT);
    assert_eq!(
        pair.command(CLIENT, |connection, env| connection.abort(env)),
        None
    );
    assert_eq!(pair.state(CLIENT), State::Closed);
}

/// A challenge to a RST that was in the window makes the true peer send the right one (RFC 5961 3.2).
#[test]
fn a_challenge_finds_out_the_truth() {
    let mut pair = Pair::established(&Config::default());
    pair.sides[CLIENT].peer = crate::pair::Peer::Gone;
    let draft: Draft = pair.draft(SERVER).with_flags(Flags::RST).shifted(5);
    pair.give(SERVER, &draft);
    pair.run_for(core::time::Duration::from_millis(50));
    assert!(pair.sides[SERVER].events.has_any(Events::RESET));
}
