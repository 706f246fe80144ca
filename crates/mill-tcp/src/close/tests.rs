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

/// Both have finished, and the peer's last two segments come before the owner sends: FIN, and then the acknowledgement of ours. A peer
/// whose FIN is not acknowledged would send it again.
#[test]
fn a_fin_is_acknowledged_also_when_the_connection_ends_before_its_acknowledgement_was_sent() {
    let mut pair = Pair::established(&Config::default());
    shutdown(&mut pair, SERVER);
    let last = pair.draft(SERVER);
    let mut fin = last.clone().with_flags(Flags::ACK | Flags::FIN);
    fin.ack -= 1;
    let answer = pair.command(SERVER, |connection, env| {
        let first = connection.on_segment(&fin.segment(), env);
        assert_eq!(first.events, Events::FINISHED);
        let second = connection.on_segment(&last.shifted(1).segment(), env);
        assert_eq!(second.events, Events::TIME_WAIT);
        connection.next_segment(0, env)
    });
    let answer = answer.unwrap();
    assert_eq!((answer.flags, answer.len), (Flags::ACK, 0));
    assert_eq!(answer.ack, fin.seq + 1);
}
