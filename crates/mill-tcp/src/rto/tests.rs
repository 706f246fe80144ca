//! The estimate, and the timeout that follows from it.

use super::timer::RetransmissionTimer;
use super::*;

fn measured(rtts_us: &[u32]) -> RttEstimator {
    let mut rtt = RttEstimator::default();
    for &rtt_us in rtts_us {
        rtt.on_sample(rtt_us, || true);
    }
    rtt
}

#[test]
fn the_timeout_follows_the_round_trips() {
    let config = Config::default();
    let check = |rtts_us: &[u32], expected: Duration| {
        assert_eq!(
            Duration::from_micros(measured(rtts_us).rto_us(&config, false)),
            expected,
            "{rtts_us:?}"
        );
    };
    check(&[], Duration::from_secs(1));
    // RFC 6298 2.2: SRTT = R, RTTVAR = R/2.
    check(&[100_000], Duration::from_micros(100_000 + 200_000));
    check(&[200_000], Duration::from_micros(200_000 + 400_000));
    // 2.3: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, SRTT = 7/8 SRTT + 1/8 R.
    check(
        &[200_000, 200_000],
        Duration::from_micros(200_000 + 300_000),
    );
    check(
        &[200_000, 360_000],
        Duration::from_micros(220_000 + 4 * 115_000),
    );
    check(
        &[200_000, 40_000],
        Duration::from_micros(180_000 + 4 * 115_000),
    );
    // The variation counts 200 ms at least, and all together no more than two minutes.
    check(&[100], Duration::from_micros(100 + 200_000));
    check(&[60_000_000], Duration::from_secs(120));
}

#[test]
fn the_timeout_after_a_lost_syn_is_three_seconds() {
    let config = Config::default();
    let check = |rtt: &RttEstimator, was_syn_lost, expected_us| {
        assert_eq!(rtt.rto_us(&config, was_syn_lost), expected_us, "{rtt:?}");
    };
    check(&RttEstimator::default(), true, 3_000_000);
    check(&RttEstimator::default(), false, 1_000_000);
    // A measurement says more.
    check(&measured(&[100_000]), true, 300_000);
}

#[test]
fn the_timeout_doubles_up_to_its_limit() {
    let config = Config::default();
    let base_us = measured(&[100_000]).rto_us(&config, false);
    for (backoff, expected_ms) in [
        (0, 300),
        (1, 600),
        (2, 1_200),
        (8, 76_800),
        (9, 120_000),
        (40, 120_000),
    ] {
        let mut timer = RetransmissionTimer::default();
        for _ in 0..backoff {
            timer.back_off();
        }
        let rto_us = timer.backed_off_us(base_us, &config);
        assert_eq!(rto_us, expected_ms * 1_000, "{backoff}");
    }
}

/// As in Linux: RFC 7323 appendix G is about the same.
#[test]
fn the_variation_falls_once_a_round_trip_and_rises_with_each_sample() {
    let check = |rtt_us: u32, begins_round: bool, expected_us: u32| {
        let mut rtt = measured(&[200_000]);
        rtt.on_sample(rtt_us, || begins_round);
        assert_eq!(rtt.rttvar_us(), expected_us, "{rtt_us} {begins_round}");
    };
    check(200_000, false, 100_000);
    check(200_000, true, 75_000);
    check(301_000, false, 100_250);
    check(301_000, true, 100_250);
}

#[test]
fn the_estimate_is_never_zero_again() {
    let rtt = measured(&[0; 100]);
    assert!(rtt.is_measured());
    assert_eq!(rtt.srtt_us(), 1);
}

#[test]
fn the_shortest_round_trip_is_the_shortest_of_all_but_a_coarse_one_is_never_the_first() {
    let mut rtt = RttEstimator::default();
    rtt.on_shorter(2_000);
    assert_eq!(rtt.min_us(), 0);
    for (rtt_us, expected_us) in [(900, 900), (901, 900), (899, 899)] {
        rtt.on_shortest(rtt_us);
        assert_eq!(rtt.min_us(), expected_us);
    }
    rtt.on_shorter(800);
    assert_eq!(rtt.min_us(), 800);
}

#[test]
fn a_handshake_within_a_millisecond_counts_as_half_of_one() {
    let check = |rtt_ms: u32, expected_us: u32| {
        let mut rtt = RttEstimator::default();
        rtt.on_handshake(rtt_ms);
        let figures = (rtt.srtt_us(), rtt.min_us());
        assert_eq!(figures, (expected_us, expected_us), "{rtt_ms}");
    };
    check(0, 500);
    check(1, 1_000);
}
