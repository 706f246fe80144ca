//! The limit of patience (RFC 5482, local).

use crate::ack::sender::Sender;
use crate::arrived::Events;
use crate::config::Config;
use crate::pair::{CLIENT, Pair, Peer, SERVER, pattern};
use core::time::Duration;

fn pair() -> Pair {
    Pair::established(&Config {
        user_timeout: Some(Duration::from_secs(3)),
        ..Config::default()
    })
}

#[test]
fn unacknowledged_data_ends_the_connection_when_the_time_is_over() {
    let mut pair = pair();
    pair.wire.lost = 1000;
    pair.write(SERVER, b"data");
    pair.run_for(Duration::from_millis(2999));
    assert!(pair.sides[SERVER].events == Events::ESTABLISHED);
    pair.run_for(Duration::from_millis(30));
    assert!(
        pair.sides[SERVER].events.has_any(Events::TIMED_OUT),
        "{}",
        pair.ladder(20)
    );
    assert!(matches!(pair.sides[SERVER].peer, Peer::Gone));
}

#[test]
fn a_window_that_stays_closed_ends_the_connection_when_the_time_is_over() {
    let mut pair = pair();
    pair.sides[CLIENT].reads = false;
    pair.write(SERVER, &pattern(400_000));
    pair.run_for(Duration::from_secs(20));
    assert!(pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
}

#[test]
fn progress_and_idleness_are_no_reason() {
    let mut pair = pair();
    for _ in 0..10 {
        pair.run_for(Duration::from_secs(10));
        pair.write(SERVER, b"data");
    }
    pair.run_for(Duration::from_secs(10));
    assert!(!pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
    assert_eq!(pair.sides[CLIENT].received.len(), 40);
}

/// Many segments are lost at once, and without SACK each costs a round trip.
#[test]
fn a_long_repair_that_makes_progress_is_no_reason() {
    let mut sender = Sender::new(&Config {
        user_timeout: Some(Duration::from_millis(400)),
        sack: false,
        ..Config::default()
    });
    sender.write(10);
    sender.wait_ms(100);
    for _ in 0..3 {
        sender.acked(0, &[]);
    }
    for acked in 1..8 {
        sender.wait_ms(100);
        sender.acked(acked, &[]);
        let events = sender.pair.sides[SERVER].events;
        assert!(!events.has_any(Events::TIMED_OUT), "{acked} segments");
    }
    sender.wait_ms(410);
    assert!(sender.pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
}
