//! Paths that swallow large segments and say nothing (RFC 4821 7.7, RFC 2923 2.1).

use crate::arrived::Events;
use crate::connection::Connection;
use crate::env::Env;

impl Connection {
    /// Timeout after timeout: perhaps the segments are too large, and the router's message is lost as well.
    /// Smaller ones are tried, if that is configured.
    pub(super) fn suspect_black_hole(&mut self, env: &Env<'_>) -> Events {
        if !env.config.mtu_probing || self.backoff < TIMEOUTS_OF_BLACK_HOLE {
            return Events::default();
        }
        let next = MSS_STEPS.into_iter().find(|&mss| mss < self.snd_mss);
        match next {
            Some(mss) => {
                self.snd_mss = mss;
                Events::PATH_MTU
            }
            None => Events::default(),
        }
    }
}

/// Timeouts in a row before the size is suspected (RFC 9293 3.8.3 R1, Linux's `tcp_retries1`).
const TIMEOUTS_OF_BLACK_HOLE: u8 = 3;

/// What is tried then, bytes of payload: RFC 4821 7.2 names 1024, and 512 passes wherever IP does.
const MSS_STEPS: [u16; 2] = [1_024, 512];

#[cfg(test)]
mod tests {
    use crate::ack::sender::Sender;
    use crate::arrived::Events;
    use crate::config::Config;
    use crate::pair::SERVER;

    #[test]
    fn a_path_that_swallows_large_segments_gets_smaller_ones_after_three_timeouts() {
        let check = |mtu_probing: bool, wait_ms: u64, expected: u16| {
            let mut sender = Sender::new(&Config {
                mtu_probing,
                sack: false,
                ..Config::default()
            });
            sender.write(10);
            sender.wait_ms(wait_ms);
            assert_eq!(sender.connection().snd_mss, expected, "{wait_ms} ms");
            let events = sender.pair.sides[SERVER].events;
            assert_eq!(events.has_any(Events::PATH_MTU), expected < 1_448);
        };
        // Timeouts at 220, 660, 1540, 3300, 6820 and 13860 ms.
        check(true, 3_290, 1_448);
        check(true, 3_310, 1_024);
        check(true, 6_830, 512);
        check(true, 13_900, 512);
        check(false, 13_900, 1_448);
    }
}
