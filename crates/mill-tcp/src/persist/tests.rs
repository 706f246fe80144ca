//! Closed windows, and what else waits.

use crate::ack::sender::Sender;
use crate::arrived::Events;
use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER};
use crate::state::State;
use crate::time::Duration;
use alloc::vec::Vec;

/// A server with data before a closed window.
fn before_closed_window(config: &Config) -> Sender {
    let mut sender = Sender::new(config);
    tell_window(&mut sender, 0, 0);
    assert_eq!(sender.write(3), []);
    sender
}

/// Acknowledges so many segments with a window; returns what leaves.
fn tell_window(sender: &mut Sender, acked: u32, window: u16) -> Vec<(u32, u32)> {
    let mut draft = sender.ack(acked);
    draft.window = window;
    sender.give(&draft)
}

fn probes(sender: &Sender) -> u64 {
    sender.pair.sides[SERVER].shared.counters.window_probes
}

#[test]
fn an_orphan_does_not_probe_for_ever() {
    let mut sender = before_closed_window(&Config::with(|config| config.orphan_retries_max = 3));
    sender.pair.close(SERVER);
    for _ in 0..10 {
        sender.wait_ms(10_000);
        if sender.pair.state(SERVER) == State::Closed {
            return;
        }
        tell_window(&mut sender, 0, 0);
    }
    panic!("still {:?}", sender.pair.state(SERVER));
}

/// Opens the window by one byte and closes it again, faster than any timeout, until the connection ends; says after how
/// many milliseconds.
fn toggle(sender: &mut Sender) -> Option<u64> {
    for ms in (0..60_000).step_by(50) {
        tell_window(sender, 0, u16::from(ms % 100 == 0));
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
    let config = unscaled(Config::with(|config| config.orphan_retries_max = 3));
    let mut sender = before_closed_window(&config);
    sender.pair.close(SERVER);
    assert!(toggle(&mut sender).is_some());
}

#[test]
fn a_window_that_opens_by_a_byte_and_closes_is_no_progress_for_the_user_timeout() {
    let config = unscaled(Config::with(|config| {
        config.user_timeout = Some(Duration::from_secs(3))
    }));
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
        tell_window(&mut sender, 0, 0);
        sender.wait_ms(1_000);
    }
    assert_eq!(tell_window(&mut sender, 0, 100), []);
    assert_eq!(sender.wait_ms(250).len(), 1);
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
    tell_window(&mut sender, 1, 0);
    assert_eq!(sender.write(3), []);
    sender.wait_ms(10_000);
    assert!(probes(&sender) > 2 && sender.connection().timer.backoff() > 2);
    assert_eq!(tell_window(&mut sender, 1, 1_000).len(), 3);
    assert_eq!(sender.connection().timer.backoff(), 0);
}
