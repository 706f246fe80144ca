//! Simultaneous open.

use crate::arrived::Events;
use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use crate::state::State;
use core::time::Duration;
use mill_wire::tcp::Flags;

/// RFC 9293 3.5, figure 8.
#[test]
fn both_sides_may_open_at_once() {
    for bad in [0, 200] {
        let mut pair = Pair::with_seed(&Config::default(), 3);
        pair.wire.lost = bad;
        pair.open(CLIENT);
        pair.open(SERVER);
        pair.flush();
        pair.write(CLIENT, &pattern(5000));
        pair.write(SERVER, &pattern(7000));
        pair.run_until(Duration::from_secs(300), |pair| {
            pair.sides[SERVER].received.len() == 5000 && pair.sides[CLIENT].received.len() == 7000
        });
        for side in [CLIENT, SERVER] {
            assert!(pair.sides[side].events.has_any(Events::ESTABLISHED));
            assert_eq!(pair.state(side), State::Established);
            assert_eq!(pair.connection(side).mss(), 1448);
            assert_eq!(pair.connection(side).shifts.snd(), 7);
        }
        if bad == 0 {
            assert_eq!(pair.log[2].2.flags, Flags::SYN | Flags::ACK);
            assert_eq!(pair.log[3].2.flags, Flags::SYN | Flags::ACK);
        }
    }
}
