//! ICMP errors of routers, accepted and rejected (RFC 1191, RFC 5927).

use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use crate::state::State;
use core::time::Duration;

/// `seq` counted from the first unacknowledged number; 5 segments are in flight.
fn check(seq: i32, mss: u16, believed: bool) {
    let mut pair = Pair::alone(&Config::default());
    pair.write(SERVER, &pattern(5 * 1448));
    pair.flush();
    let una = pair.connection(SERVER).snd.una();
    let seq = mill_wire::seq::SeqNumber(una.0.wrapping_add_signed(seq));
    let result = pair.command(SERVER, |connection, env| {
        connection.on_packet_too_big(seq, mss, env)
    });
    assert_eq!(result, believed, "{seq:?} {mss}");
    let expected = if believed { mss - 12 } else { 1448 };
    assert_eq!(pair.connection(SERVER).mss(), expected);
}

/// RFC 5927 7.2: the quoted segment is in flight.
#[test]
fn only_a_segment_in_flight_is_believed() {
    check(-1, 1400, false);
    check(0, 1400, true);
    check(5 * 1448 - 1, 1400, true);
    check(5 * 1448, 1400, false);
}

/// RFC 8201 4: never larger; RFC 1191: nothing absurd.
#[test]
fn only_a_smaller_size_that_makes_sense_is_believed() {
    check(0, 1460, false);
    check(0, 1459, true);
    check(0, 512, true);
    check(0, 511, false);
    check(0, 0, false);
}

#[test]
fn nothing_is_believed_while_nothing_is_in_flight() {
    let mut pair = Pair::established(&Config::default());
    let una = pair.connection(SERVER).snd.una();
    assert!(!pair.command(SERVER, |connection, env| {
        connection.on_packet_too_big(una, 1000, env)
    }));
}

/// RFC 1191 6.3: what was too large is sent again at once, in smaller segments.
#[test]
fn what_was_too_large_is_sent_again_at_once() {
    let mut pair = Pair::established(&Config::default());
    let text = pattern(50_000);
    pair.write(SERVER, &text);
    let first = pair.log.len();
    pair.wire.lose.extend(first..first + 10);
    pair.flush();
    let una = pair.connection(SERVER).snd.una();
    pair.run_for(Duration::from_millis(5));
    let before = pair.log.len();
    assert!(pair.command(SERVER, |connection, env| {
        connection.on_packet_too_big(una, 988, env)
    }));
    pair.flush();
    let sent = pair.sent_since(before, SERVER);
    assert_eq!(
        (sent[0].seq, sent[0].len, sent[0].is_retransmission),
        (una, 976, true)
    );
    pair.run_for(Duration::from_secs(2));
    assert!(pair.sides[CLIENT].received == text);
    assert!(
        pair.sent_since(before, SERVER)
            .iter()
            .all(|segment| segment.len <= 976)
    );
}

/// RFC 5461 4: an active open ends by a hard error about its own SYN, and by nothing else.
#[test]
fn an_active_open_ends_by_a_hard_error() {
    for (by, hard, ends) in [(0, true, true), (0, false, false), (1, true, false)] {
        let mut pair = Pair::new(&Config::default());
        pair.connect();
        let seq = pair.sides[CLIENT].iss + by;
        let ended = pair.command(CLIENT, |connection, env| {
            connection.on_unreachable(seq, hard, env)
        });
        assert_eq!(ended, ends);
        assert_eq!(pair.state(CLIENT) == State::Closed, ends);
    }
}

/// RFC 5927 5.2: an established connection is not ended by a message that any host can forge.
#[test]
fn an_established_connection_goes_on_after_a_hard_error() {
    let mut pair = Pair::established(&Config::default());
    pair.write(SERVER, b"data");
    pair.flush();
    let una = pair.connection(SERVER).snd.una();
    assert!(!pair.command(SERVER, |connection, env| {
        connection.on_unreachable(una, true, env)
    }));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.sides[CLIENT].received, b"data");
}
