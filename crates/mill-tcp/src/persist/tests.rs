//! Closed windows, and what else waits.

use crate::ack::sender::Sender;
use crate::arrived::Events;
use crate::config::Config;
use crate::pair::{CLIENT, Draft, Pair, Peer, SERVER, pattern};
use crate::state::State;
use crate::time::Duration;

/// A server with data before a closed window.
fn before_closed_window(config: &Config) -> Sender {
    let mut sender = Sender::new(config);
    let mut closed = sender.ack(0);
    closed.window = 0;
    sender.give(&closed);
    assert_eq!(sender.write(3), []);
    sender
}

fn probes(sender: &Sender) -> u64 {
    sender.pair.sides[SERVER].shared.counters.window_probes
}

#[test]
fn a_closed_window_is_probed_at_doubling_intervals() {
    let mut sender = before_closed_window(&Config::default());
    let from = sender.pair.log.len();
    for (wait_ms, expected) in [(219, 0), (2, 1), (437, 1), (3, 2), (877, 2), (4, 3)] {
        assert_eq!(sender.wait_ms(wait_ms), []);
        assert_eq!(probes(&sender), expected);
    }
    let probe = sender.pair.sent_since(from, SERVER)[0];
    assert_eq!((probe.seq, probe.len), (sender.start - 1, 0));
}

#[test]
fn a_window_may_stay_closed_for_ever_while_probes_are_answered() {
    let mut sender = before_closed_window(&Config {
        retries_max: 3,
        ..Config::default()
    });
    for _ in 0..100 {
        let before = probes(&sender);
        while probes(&sender) == before {
            sender.wait_ms(1_000);
        }
        let mut closed = sender.ack(0);
        closed.window = 0;
        sender.give(&closed);
    }
    assert_eq!(sender.pair.state(SERVER), State::Established);
    let open = sender.ack(0);
    let open = Draft {
        window: 1_000,
        ..open
    };
    assert_eq!(sender.give(&open).len(), 3);
}

#[test]
fn probes_without_an_answer_end_the_connection() {
    let mut sender = before_closed_window(&Config {
        retries_max: 3,
        ..Config::default()
    });
    sender.wait_ms(600_000);
    assert_eq!(probes(&sender), 3);
    assert!(sender.pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
}

#[test]
fn an_orphan_does_not_probe_for_ever() {
    let mut sender = before_closed_window(&Config {
        orphan_retries_max: 3,
        ..Config::default()
    });
    sender.pair.close(SERVER);
    for _ in 0..10 {
        sender.wait_ms(10_000);
        if sender.pair.state(SERVER) == State::Closed {
            return;
        }
        let mut closed = sender.ack(0);
        closed.window = 0;
        sender.give(&closed);
    }
    panic!("still {:?}", sender.pair.state(SERVER));
}

#[test]
fn a_window_that_opens_ends_the_probing() {
    let mut pair = Pair::established(&Config::default());
    pair.sides[CLIENT].reads = false;
    pair.write(SERVER, &pattern(400_000));
    pair.run_for(Duration::from_secs(30));
    assert!(pair.sides[SERVER].shared.counters.window_probes > 2);
    assert!(!pair.sides[SERVER].queue.is_empty());
    let unread = pair.connection(CLIENT).unread_bytes();
    pair.sides[CLIENT].reads = true;
    pair.command(CLIENT, |connection, env| connection.consumed(unread, env));
    pair.run_until(Duration::from_secs(10), |pair| {
        pair.sides[SERVER].queue.is_empty()
    });
    assert_eq!(pair.sides[CLIENT].received.len(), 400_000);
    assert!(matches!(pair.sides[SERVER].peer, Peer::Open(_)));
}

#[test]
fn a_forgotten_cork_holds_data_for_a_timeout_only() {
    let mut pair = Pair::established(&Config::default());
    pair.connection(SERVER).set_cork(true);
    pair.write(SERVER, b"half a line");
    pair.run_for(Duration::from_millis(200));
    assert_eq!(pair.sides[CLIENT].received.len(), 0);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.sides[CLIENT].received.len(), 11);
}

#[test]
fn a_window_that_opens_ends_the_backoff_also_while_a_loss_probe_is_remembered() {
    let mut sender = Sender::new(&Config::default());
    assert_eq!(sender.write(1), [(0, 1)]);
    // The loss probe: whether it was needed only a later acknowledgement tells.
    assert_eq!(sender.wait_ms(250), [(0, 1)]);
    let mut closed = sender.ack(1);
    closed.window = 0;
    sender.give(&closed);
    assert_eq!(sender.write(3), []);
    sender.wait_ms(10_000);
    assert!(probes(&sender) > 2 && sender.connection().backoff > 2);
    let open = Draft {
        window: 1_000,
        ..sender.ack(1)
    };
    assert_eq!(sender.give(&open).len(), 3);
    assert_eq!(sender.connection().backoff, 0);
}
