//! Paths that drop large segments silently (RFC 4821 7.7, RFC 2923 2.1).

use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::path_mtu::{PathNews, options_bytes};
use crate::recovery::Progress;

impl Connection {
    /// Timeout after timeout for a large segment: perhaps it is too large, and the router's message is lost as well, or
    /// was never sent. Smaller ones are tried, if that is configured.
    pub(crate) fn suspect_black_hole(&mut self, cold: &mut Cold, env: &Env<'_>) {
        let options = options_bytes(self);
        let timeouts = self.timer.timeouts().saturating_add(1);
        let first_bytes = cold.scoreboard.front().map_or(0, |front| front.len());
        // What is sent again may be small enough for a step already, though the connection has larger segments.
        let tried_bytes = first_bytes.min(self.snd_mss.into());
        let step = STEPS
            .into_iter()
            .find(|&(_, mss)| u32::from(mss - options) < tried_bytes);
        let Some((timeouts_min, mss)) = step else {
            return;
        };
        if env.config.mtu_probing && timeouts >= timeouts_min {
            let search = &mut cold.path;
            search.suspected = search.suspected.or(Some(self.snd_mss));
            self.snd_mss = mss - options;
        }
    }

    /// Something has arrived since smaller segments are tried: so it was their size. If it was not, the first probe
    /// finds that out, which is as large as they were before.
    pub(crate) fn confirm_black_hole(&mut self, cold: &mut Cold, progress: &Progress) {
        if progress.acked_bytes == 0 {
            return;
        }
        let search = &mut cold.path;
        if let Some(lost) = search.suspected.take() {
            let options = options_bytes(self);
            search.news = Some(PathNews::BlackHole {
                arrived: self.snd_mss + options,
                lost: lost + options,
            });
        }
    }
}

/// After how many timeouts in a row which size is tried, bytes without headers and with TCP options. Every link of IPv6
/// carries 1280, so nearly every one of IPv4 does; and 552 pass wherever IPv4 does in earnest (Linux's `min_pmtu`). Linux
/// waits for one timeout more than `tcp_retries1`, 4: here a suspicion that was wrong costs a round trip, since the first
/// probe takes it back.
const STEPS: [(u8, u16); 2] = [(2, 1_220), (4, 512)];

#[cfg(test)]
mod tests {
    use crate::ack::sender::Sender;
    use crate::config::Config;
    use crate::pair::{SERVER, pattern};

    #[test]
    fn a_path_that_swallows_large_segments_gets_smaller_ones_after_two_timeouts() {
        let check = |mtu_probing: bool, wait_ms: u64, expected: u16| {
            let mut sender = Sender::new(&Config {
                mtu_probing,
                sack: false,
                ..Config::default()
            });
            sender.write(10);
            sender.wait_ms(wait_ms);
            assert_eq!(sender.connection().snd_mss, expected, "{wait_ms} ms");
        };
        // Timeouts at 220, 660, 1540, 3300, 6820 and 13860 ms.
        check(true, 650, 1_448);
        check(true, 670, 1_208);
        check(true, 3_290, 1_208);
        check(true, 3_310, 500);
        check(true, 13_900, 500);
        check(false, 13_900, 1_448);
    }

    /// A message of one segment that is smaller than the first step, and still too large for the path.
    #[test]
    fn a_segment_as_small_as_the_first_step_becomes_as_small_as_the_second() {
        let check = |bytes: usize, expected: u16| {
            let mut sender = Sender::new(&Config {
                mtu_probing: true,
                sack: false,
                ..Config::default()
            });
            sender.pair.write(SERVER, &pattern(bytes));
            sender.pair.flush();
            // Timeouts at 220, 660, 1540 and 3300 ms; a loss probe may put the first off.
            sender.wait_ms(5_000);
            assert_eq!(sender.connection().snd_mss, expected, "{bytes} bytes");
        };
        check(1_209, 500);
        check(1_208, 500);
        check(501, 500);
        check(500, 1_448);
        check(1, 1_448);
    }
}
