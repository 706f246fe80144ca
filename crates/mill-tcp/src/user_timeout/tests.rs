//! The limit of patience (RFC 5482, local).

use crate::ack::sender::Sender;
use crate::arrived::Events;
use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use core::time::Duration;

#[test]
fn a_window_that_stays_closed_ends_the_connection_when_the_time_is_over() {
    let mut pair = Pair::established(&Config::with(|config| {
        config.user_timeout = Some(Duration::from_secs(3))
    }));
    pair.sides[CLIENT].reads = false;
    pair.write(SERVER, &pattern(400_000));
    pair.run_for(Duration::from_secs(20));
    assert!(pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
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
