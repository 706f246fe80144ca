//! Congestion marks that a path sets (RFC 3168 6.1.2).

use crate::config::{Config, EcnMode};
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use core::time::Duration;

/// A queue that marks instead of dropping: the sender slows down, and nothing is sent twice.
#[test]
fn marks_slow_the_sender_down_without_loss() {
    let mut pair = Pair::new(&Config::with(|config| config.ecn = EcnMode::Ask));
    pair.wire.marked = 30;
    pair.connect();
    let text = pattern(1_000_000);
    pair.write(CLIENT, &text);
    pair.run_until(Duration::from_secs(60), |pair| {
        pair.sides[SERVER].received.len() == text.len()
    });
    assert!(pair.sides[SERVER].received == text);
    let counters = pair.sides[CLIENT].shared.counters;
    assert!(counters.ecn_reductions > 0);
    assert_eq!(counters.retransmitted, 0);
}
