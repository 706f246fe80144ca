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

/// Opens the window by one byte and closes it again, faster than any timeout, until the connection ends; says after how
/// many milliseconds.
fn toggle(sender: &mut Sender) -> Option<u64> {
    for ms in (0..60_000).step_by(50) {
        let mut draft = sender.ack(0);
        draft.window = u16::from(ms % 100 == 0);
        sender.give(&draft);
        sender.wait_ms(50);
        if sender.pair.sides[SERVER].events.has_any(Events::TIMED_OUT) {
            return Some(ms);
        }
    }
    None
}

/// The segment's window is not scaled, so that one is one byte.
fn unscaled(config: Config) -> Config {
    Config {
        window_scaling: false,
        ..config
    }
}

#[test]
fn a_window_that_opens_by_a_byte_and_closes_is_no_progress_of_an_orphan() {
    let config = unscaled(Config {
        orphan_retries_max: 3,
        ..Config::default()
    });
    let mut sender = before_closed_window(&config);
    sender.pair.close(SERVER);
    assert!(toggle(&mut sender).is_some());
}

#[test]
fn a_window_that_opens_by_a_byte_and_closes_is_no_progress_for_the_user_timeout() {
    let config = unscaled(Config {
        user_timeout: Some(Duration::from_secs(3)),
        ..Config::default()
    });
    let mut sender = before_closed_window(&config);
    let ended = toggle(&mut sender);
    // The byte that a probe found room for has its own time, from when it left.
    assert!(
        ended.is_some_and(|ms| (2_900..3_600).contains(&ms)),
        "{ended:?}"
    );
}

#[test]
fn a_window_that_opens_too_little_is_used_after_one_timeout_however_long_it_was_closed() {
    let mut sender = before_closed_window(&unscaled(Config::default()));
    for _ in 0..60 {
        let mut closed = sender.ack(0);
        closed.window = 0;
        sender.give(&closed);
        sender.wait_ms(1_000);
    }
    let little = Draft {
        window: 100,
        ..sender.ack(0)
    };
    assert_eq!(sender.give(&little), []);
    assert_eq!(sender.wait_ms(250).len(), 1);
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
    assert!(probes(&sender) > 2 && sender.connection().timer.backoff() > 2);
    let open = Draft {
        window: 1_000,
        ..sender.ack(1)
    };
    assert_eq!(sender.give(&open).len(), 3);
    assert_eq!(sender.connection().timer.backoff(), 0);
}
