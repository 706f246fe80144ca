//! Every way in which a connection ends (RFC 9293 3.6, 3.10.4, 3.10.7.4 eighth).

use crate::arrived::{Events, SegmentDrop};
use crate::config::Config;
use crate::pair::{CLIENT, Pair, Peer, SERVER, pattern};
use crate::state::State;
use core::time::Duration;
use mill_wire::tcp::Flags;

fn shutdown(pair: &mut Pair, who: usize) {
    pair.command(who, |connection, env| connection.shutdown(env));
    pair.flush();
}

/// Half a round trip, and a little.
fn cross(pair: &mut Pair) {
    pair.run_for(Duration::from_millis(11));
}

/// RFC 9293 figure 12.
#[test]
fn one_side_closes_and_then_the_other() {
    let mut pair = Pair::established(&Config::default());
    shutdown(&mut pair, CLIENT);
    assert_eq!(pair.state(CLIENT), State::FinWait1);
    cross(&mut pair);
    assert_eq!(pair.state(SERVER), State::CloseWait);
    assert!(pair.sides[SERVER].events.has_any(Events::FINISHED));
    cross(&mut pair);
    assert_eq!(pair.state(CLIENT), State::FinWait2);
    shutdown(&mut pair, SERVER);
    assert_eq!(pair.state(SERVER), State::LastAck);
    cross(&mut pair);
    assert!(matches!(pair.sides[CLIENT].peer, Peer::TimeWait(_)));
    assert!(pair.sides[CLIENT].events.has_any(Events::FINISHED));
    cross(&mut pair);
    assert!(matches!(pair.sides[SERVER].peer, Peer::Gone));
    assert!(pair.sides[SERVER].events.has_any(Events::CLOSED));
    // RFC 9293 3.4.2: twice the maximum segment lifetime.
    pair.run_for(Duration::from_millis(59_970));
    assert!(matches!(pair.sides[CLIENT].peer, Peer::TimeWait(_)));
    pair.run_for(Duration::from_millis(30));
    assert!(matches!(pair.sides[CLIENT].peer, Peer::Gone));
}

/// RFC 9293 figure 13.
#[test]
fn both_sides_close_at_once() {
    let mut pair = Pair::established(&Config::default());
    shutdown(&mut pair, CLIENT);
    shutdown(&mut pair, SERVER);
    cross(&mut pair);
    assert_eq!(
        (pair.state(CLIENT), pair.state(SERVER)),
        (State::Closing, State::Closing)
    );
    cross(&mut pair);
    for who in [CLIENT, SERVER] {
        assert!(matches!(pair.sides[who].peer, Peer::TimeWait(_)));
    }
}

/// RFC 9293 3.6: after its FIN a side still receives, for as long as the other sends.
#[test]
fn a_half_closed_connection_carries_data_the_other_way() {
    let mut pair = Pair::established(&Config::default());
    let text = pattern(300_000);
    pair.write(CLIENT, b"request");
    shutdown(&mut pair, CLIENT);
    pair.run_for(Duration::from_millis(100));
    pair.write(SERVER, &text);
    pair.run_until(Duration::from_secs(30), |pair| {
        pair.sides[CLIENT].received.len() == text.len()
    });
    assert!(pair.sides[CLIENT].received == text);
    assert_eq!(pair.sides[SERVER].received, b"request");
    assert_eq!(
        (pair.state(CLIENT), pair.state(SERVER)),
        (State::FinWait2, State::CloseWait)
    );
}

/// RFC 9293 3.10.4: FIN goes behind everything that was queued, and with the last of it.
#[test]
fn fin_follows_what_is_queued() {
    let mut pair = Pair::established(&Config::default());
    pair.write(CLIENT, &pattern(5000));
    let before = pair.log.len();
    pair.close(CLIENT);
    pair.run_for(Duration::from_millis(200));
    let fins = pair.sent_since(before, CLIENT);
    let fins = fins.iter().filter(|segment| segment.flags.has(Flags::FIN));
    assert_eq!(
        fins.map(|fin| fin.len).collect::<alloc::vec::Vec<_>>(),
        [5000 - 3 * 1448]
    );
    assert_eq!(pair.sides[SERVER].received.len(), 5000);
}

/// RFC 2525 2.17: the peer must not assume that bytes were read which were not.
#[test]
fn a_close_with_unread_bytes_resets() {
    let mut pair = Pair::established(&Config::default());
    pair.sides[SERVER].reads = false;
    pair.write(CLIENT, b"unread");
    pair.run_for(Duration::from_millis(50));
    pair.close(SERVER);
    pair.run_for(Duration::from_millis(50));
    assert!(pair.sides[CLIENT].events.has_any(Events::RESET));
}

#[test]
fn a_close_after_everything_was_read_does_not_reset() {
    let mut pair = Pair::established(&Config::default());
    pair.write(CLIENT, b"read");
    pair.run_for(Duration::from_millis(50));
    pair.close(SERVER);
    pair.run_for(Duration::from_millis(50));
    assert!(!pair.sides[CLIENT].events.has_any(Events::RESET));
    assert_eq!(pair.state(SERVER), State::FinWait2);
}

/// RFC 9293 3.10.7.1, RFC 2525 2.17: data for an application that has left.
#[test]
fn data_after_close_resets() {
    let mut pair = Pair::established(&Config::default());
    pair.close(SERVER);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.state(SERVER), State::FinWait2);
    let draft = pair.draft(SERVER).with_payload(b"late");
    let (arrived, sent) = pair.give(SERVER, &draft);
    assert_eq!(arrived.dropped, Some(SegmentDrop::AfterClose));
    assert_eq!(arrived.events, Events::CLOSED);
    assert_eq!(
        (sent.len(), sent[0].flags, sent[0].seq),
        (1, Flags::RST, draft.ack)
    );
    assert!(matches!(pair.sides[SERVER].peer, Peer::Gone));
    pair.run_for(Duration::from_millis(50));
    assert!(pair.sides[CLIENT].events.has_any(Events::RESET));
}

/// What was delivered before is only a duplicate, and does not reset.
#[test]
fn a_duplicate_after_close_does_not_reset() {
    let mut pair = Pair::established(&Config::default());
    pair.write(CLIENT, b"once");
    pair.run_for(Duration::from_millis(50));
    pair.close(SERVER);
    pair.run_for(Duration::from_millis(50));
    let draft = pair.draft(SERVER).shifted(-4).with_payload(b"once");
    let (arrived, _) = pair.give(SERVER, &draft);
    assert_eq!(arrived.dropped, Some(SegmentDrop::Duplicate));
    assert_eq!(pair.state(SERVER), State::FinWait2);
}

/// Linux's `tcp_fin_timeout`, for applications that have left only.
#[test]
fn fin_wait_2_of_an_orphan_ends_by_itself() {
    for leaves in [true, false] {
        let mut pair = Pair::established(&Config::default());
        if leaves {
            pair.close(SERVER);
        } else {
            shutdown(&mut pair, SERVER);
        }
        pair.run_for(Duration::from_millis(59_990));
        assert_eq!(pair.state(SERVER), State::FinWait2);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.state(SERVER) == State::Closed, leaves);
        assert_eq!(pair.sides[SERVER].events.has_any(Events::CLOSED), leaves);
    }
}

/// The same when the application leaves in FIN-WAIT-2.
#[test]
fn an_application_may_leave_in_fin_wait_2() {
    let mut pair = Pair::established(&Config::default());
    shutdown(&mut pair, SERVER);
    pair.run_for(Duration::from_secs(1));
    pair.close(SERVER);
    pair.run_for(Duration::from_secs(59));
    assert_eq!(pair.state(SERVER), State::FinWait2);
    pair.run_for(Duration::from_millis(1001));
    assert_eq!(pair.state(SERVER), State::Closed);
}

/// The peer of a closed application vanishes: fewer attempts than for one that waits.
#[test]
fn an_orphan_is_given_up_earlier() {
    let mut pair = Pair::established(&Config::default());
    pair.wire.lost = 1000;
    pair.write(SERVER, b"never arrives");
    pair.close(SERVER);
    pair.run_for(Duration::from_secs(3600));
    assert!(pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
    let tries = pair.sides[SERVER].shared.counters.retransmitted;
    assert!(
        tries <= u64::from(Config::default().orphan_retries_max) + 2,
        "{tries}"
    );
}

/// RFC 9293 3.10.7.4, eighth: FIN out of order waits for what is before it.
#[test]
fn a_fin_ahead_of_its_data_waits() {
    let mut pair = Pair::alone(&Config::default());
    let fin = pair.draft(SERVER).with_flags(Flags::FIN | Flags::ACK);
    let (arrived, sent) = pair.give(SERVER, &fin.clone().shifted(5).with_payload(b"world"));
    assert!(arrived.events.is_empty());
    let next = pair.connection(SERVER).rcv.nxt();
    assert_eq!(sent[0].options.sack.as_slice(), [(next + 5, next + 11)]);
    let (arrived, sent) = pair.give(SERVER, &pair.draft(SERVER).with_payload(b"hello"));
    assert!(arrived.events.has_any(Events::FINISHED) && arrived.events.has_any(Events::READABLE));
    assert_eq!(pair.sides[SERVER].received, b"helloworld");
    assert_eq!((sent.len(), sent[0].ack), (1, next + 11));
    assert_eq!(pair.state(SERVER), State::CloseWait);
}

/// RFC 9293 3.10.7.4, seventh: nothing after a FIN is taken.
#[test]
fn nothing_follows_a_fin() {
    let mut pair = Pair::alone(&Config::default());
    let fin = pair.draft(SERVER).with_flags(Flags::FIN | Flags::ACK);
    pair.give(SERVER, &fin);
    let draft = pair.draft(SERVER).with_payload(b"more");
    let (arrived, _) = pair.give(SERVER, &draft);
    assert!(arrived.deliver.is_empty() && arrived.events.is_empty());
    let (arrived, sent) = pair.give(SERVER, &fin);
    assert_eq!(
        (arrived.dropped, sent.len()),
        (Some(SegmentDrop::Duplicate), 1)
    );
}

/// RFC 9293 3.10.5.
#[test]
fn an_abort_in_closing_is_silent_and_elsewhere_not() {
    let mut pair = Pair::established(&Config::default());
    shutdown(&mut pair, CLIENT);
    shutdown(&mut pair, SERVER);
    cross(&mut pair);
    assert_eq!(pair.state(SERVER), State::Closing);
    assert_eq!(
        pair.command(SERVER, |connection, env| connection.abort(env)),
        None
    );
    for go in [false, true] {
        let mut pair = Pair::established(&Config::default());
        if go {
            shutdown(&mut pair, CLIENT);
            pair.run_for(Duration::from_millis(50));
        }
        for who in [CLIENT, SERVER] {
            let reset = pair.command(who, |connection, env| connection.abort(env));
            assert!(reset.is_some(), "{go} {who}");
        }
    }
}

#[test]
fn nothing_is_due_of_a_closed_connection() {
    let mut pair = Pair::established(&Config::default());
    pair.write(CLIENT, &pattern(100_000));
    pair.flush();
    let _ = pair.command(CLIENT, |connection, env| connection.abort(env));
    let connection = pair.connection(CLIENT);
    assert_eq!(connection.next_timer(), None);
    assert!(connection.cold.is_none());
}
