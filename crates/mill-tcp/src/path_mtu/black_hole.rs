//! Paths that swallow large segments and say nothing (RFC 4821 7.7, RFC 2923 2.1).

use crate::connection::{Cold, Connection};
use crate::env::Env;
use crate::path_mtu::{PathNews, options_bytes};
use crate::recovery::Progress;

impl Connection {
    /// Timeout after timeout for a large segment: perhaps it is too large, and the router's message is lost as well, or
    /// was never sent. Smaller ones are tried, if that is configured.
    pub(crate) fn suspect_black_hole(&mut self, cold: &mut Cold, env: &Env<'_>) {
        let options = options_bytes(self);
        let timeouts = cold.recovery.timeouts.saturating_add(1);
        let step = STEPS
            .into_iter()
            .find(|&(_, mss)| mss - options < self.snd_mss);
        let Some((timeouts_min, mss)) = step else {
            return;
        };
        if !env.config.mtu_probing || timeouts < timeouts_min {
            return;
        }
        let smaller = mss - options;
        let is_large = cold
            .scoreboard
            .front()
            .is_some_and(|front| front.len() > smaller.into());
        if is_large {
            let search = &mut cold.recovery.path;
            search.suspected = search.suspected.or(Some(self.snd_mss));
            self.snd_mss = smaller;
        }
    }

    /// Something has arrived since smaller segments are tried: so it was their size. If it was not, the first probe
    /// finds that out, which is as large as they were before.
    pub(crate) fn confirm_black_hole(&mut self, cold: &mut Cold, progress: &Progress) {
        if progress.acked_bytes == 0 {
            return;
        }
        let search = &mut cold.recovery.path;
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
}
