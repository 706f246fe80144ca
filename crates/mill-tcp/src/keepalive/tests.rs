//! Keep-alive (RFC 9293 3.8.4).

use crate::ack::sender::Sender;
use crate::arrived::Events;
use crate::config::{Config, Keepalive};
use crate::pair::{CLIENT, Draft, Pair, Peer, SERVER};
use crate::state::State;
use alloc::vec::Vec;
use core::time::Duration;
use mill_wire::tcp::Flags;

fn pair() -> Pair {
    let mut pair = Pair::new(&Config::default());
    pair.sides[SERVER].config.keepalive = Some(Keepalive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(2),
        count: 3,
    });
    pair.connect();
    pair.run_for(Duration::from_millis(50));
    pair
}

/// What the server sends, in whole seconds since the log had `from` entries.
fn probes(pair: &Pair, from: usize, start: crate::time::Instant) -> Vec<u64> {
    let entries = pair.log.iter().skip(from);
    entries
        .filter(|entry| entry.1 == SERVER)
        .map(|entry| entry.0.since(start).as_secs())
        .collect()
}

/// RFC 9293 3.8.4: off by default.
#[test]
fn silence_is_no_reason_by_default() {
    let mut pair = Pair::established(&Config::default());
    let before = pair.log.len();
    pair.run_for(Duration::from_secs(24 * 3600));
    assert_eq!(pair.log.len(), before);
    assert_eq!(pair.connection(SERVER).next_timer(), None);
}

#[test]
fn a_peer_that_answers_is_asked_again_after_the_idle_time() {
    let mut pair = pair();
    let (before, start) = (pair.log.len(), pair.now);
    pair.run_for(Duration::from_secs(32));
    assert_eq!(probes(&pair, before, start), [9, 20, 30]);
    let probe = pair.log[before].2;
    let connection = pair.connection(SERVER);
    assert_eq!(
        (probe.seq + 1, probe.flags, probe.len),
        (connection.snd.nxt(), Flags::ACK, 0)
    );
    assert_eq!(connection.state(), State::Established);
    assert_eq!(pair.sides[SERVER].shared.counters.keepalive_probes, 3);
}

#[test]
fn a_peer_that_does_not_answer_is_given_up() {
    let mut pair = pair();
    pair.wire.lost = 1000;
    let (before, start) = (pair.log.len(), pair.now);
    pair.run_for(Duration::from_secs(15));
    assert_eq!(probes(&pair, before, start), [9, 11, 13]);
    assert_eq!(pair.state(SERVER), State::Established);
    pair.run_for(Duration::from_secs(2));
    assert!(pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
    assert!(matches!(pair.sides[SERVER].peer, Peer::Gone));
    assert_eq!(probes(&pair, before, start).len(), 3);
}

/// RFC 9293 3.8.4: only when nothing was received for the interval.
#[test]
fn traffic_puts_the_probe_off() {
    let mut pair = pair();
    let before = pair.log.len();
    for _ in 0..5 {
        pair.run_for(Duration::from_secs(9));
        pair.write(CLIENT, b"x");
    }
    pair.run_for(Duration::from_secs(1));
    let sent = pair.sent_since(before, SERVER);
    assert!(
        sent.iter().all(|segment| segment.seq == sent[0].seq),
        "only acknowledgements"
    );
    assert_eq!(pair.sides[SERVER].shared.counters.keepalive_probes, 0);
}

/// What is in flight is asked for by its own timer.
#[test]
fn data_in_flight_needs_no_probe() {
    let mut pair = pair();
    pair.wire.lost = 1000;
    pair.write(SERVER, b"data");
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.sides[SERVER].shared.counters.keepalive_probes, 0);
}

/// What waits for a window is asked for by its own timer. The probes of that are more patient than keep-alive, whose `count`
/// they are not held against: a peer that was cut off for a minute is not given up.
#[test]
fn data_before_a_closed_window_needs_no_probe() {
    let mut sender = Sender::new(&Config {
        keepalive: Some(Keepalive {
            idle: Duration::from_secs(10),
            interval: Duration::from_secs(2),
            count: 3,
        }),
        ..Config::default()
    });
    let closed = Draft {
        window: 0,
        ..sender.ack(0)
    };
    sender.give(&closed);
    assert_eq!(sender.write(3), []);
    sender.wait_ms(60_000);
    let counters = &sender.pair.sides[SERVER].shared.counters;
    assert_eq!(counters.keepalive_probes, 0);
    assert!(counters.window_probes > 3, "{}", counters.window_probes);
    assert_eq!(sender.pair.state(SERVER), State::Established);
    let open = Draft {
        window: 1_000,
        ..sender.ack(0)
    };
    assert_eq!(sender.give(&open).len(), 3);
    // Once nothing waits any more, silence is asked about again.
    sender.acked(3, &[]);
    sender.wait_ms(10_500);
    let counters = &sender.pair.sides[SERVER].shared.counters;
    assert_eq!(counters.keepalive_probes, 1);
}
