//! The limits of answers to what may be forged (RFC 5961 7).

use super::*;
use crate::config::Config;
use crate::pair::{Pair, SERVER};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use mill_wire::tcp::Flags;

fn allowed(config: &Config, shared: &mut Shared, second: u64, asked: u32) -> u32 {
    let mut allowed = 0;
    for _ in 0..asked {
        let mut env = Env {
            now: Instant::from_nanos(second * 1_000_000_000),
            config,
            shared,
            segment_bytes_max: 0,
            memory_left_bytes: 0,
        };
        allowed += u32::from(allows_challenge(&mut env));
    }
    allowed
}

#[test]
fn each_second_has_a_limit_of_its_own() {
    let config = Config::default();
    let mut shared = Shared::new(11);
    let limits = (0..20)
        .map(|second| allowed(&config, &mut shared, second, 2000))
        .collect::<Vec<_>>();
    assert!(
        limits.iter().all(|limit| (500..=1500).contains(limit)),
        "{limits:?}"
    );
    let mut different = limits.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 15, "predictable: {limits:?}");
    let sum: u32 = limits.iter().sum();
    assert_eq!(shared.counters.challenge_acks, u64::from(sum));
    assert_eq!(
        shared.counters.challenge_acks_suppressed,
        u64::from(20 * 2000 - sum)
    );
}

/// Two ends that hold each other's acknowledgements for wrong do not answer for ever; data is always answered.
#[test]
fn bare_acknowledgements_out_of_the_window_are_answered_rarely_and_data_always() {
    let mut pair = Pair::alone(&Config::default());
    let bare = pair.draft(SERVER).shifted(-1);
    assert_eq!(pair.give(SERVER, &bare).1.len(), 1);
    assert_eq!(pair.give(SERVER, &bare).1.len(), 0);
    let text = pair.draft(SERVER).shifted(-4).with_payload(b"text");
    for _ in 0..3 {
        assert_eq!(pair.give(SERVER, &text).1.len(), 1);
    }
}

/// RFC 5961 7: the host's limit holds over all connections.
#[test]
fn the_limit_of_the_host_holds() {
    let config = Config {
        challenge_acks_per_second: 4,
        invalid_ratelimit: Duration::ZERO,
        ..Config::default()
    };
    let mut pair = Pair::alone(&config);
    let blind = pair.draft(SERVER).with_flags(Flags::RST).shifted(1);
    let answers: usize = (0..100).map(|_| pair.give(SERVER, &blind).1.len()).sum();
    assert!((2..=6).contains(&answers), "{answers}");
    assert!(pair.sides[SERVER].shared.counters.challenge_acks_suppressed >= 94);
}
