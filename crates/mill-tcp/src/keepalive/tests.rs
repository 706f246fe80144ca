//! Keep-alive (RFC 9293 3.8.4).

use crate::ack::sender::Sender;
use crate::config::{Config, Keepalive};
use crate::pair::{Draft, SERVER};
use crate::state::State;
use core::time::Duration;

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
