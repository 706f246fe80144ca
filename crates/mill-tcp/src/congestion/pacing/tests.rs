//! What leaves, and when.

use super::{Pacer, quantum};
use crate::ack::sender::Sender;
use crate::config::{Algorithm, Config};
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

#[test]
fn segments_leave_at_the_pace_and_late_ones_catch_up() {
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let mut pacer = Pacer::starting_at(at(0));
    pacer.spend(at(0), 10_000, 1_000_000);
    assert_eq!(pacer.next_at(), at(10));
    // Late by a millisecond, which the next segment does not wait again.
    pacer.spend(at(11), 10_000, 1_000_000);
    assert_eq!(pacer.next_at(), at(20));
    // Long late: no more than two milliseconds are made up for.
    pacer.spend(at(100), 10_000, 1_000_000);
    assert_eq!(pacer.next_at(), at(108));
    assert!(pacer.is_early(at(107)) && !pacer.is_early(at(108)));
    assert_eq!(quantum(1_000_000, 1_448), 2 * 1_448);
    assert_eq!(quantum(1_000_000_000, 1_448), 64 * 1024);
    // Segments of the largest MTU, as over a memif.
    assert_eq!(quantum(1_000_000, 65_469), 2 * 65_469);
    // A rate of nothing, or of a byte in a century, is a time all the same.
    pacer.spend(at(200), u32::MAX, 0);
    assert!(pacer.is_early(at(1_000_000)));
}

/// A server with a round trip of 100 ms that sends so many bytes; HyStart++ would end slow start early.
fn sent(len: usize, change: impl Fn(&mut Config)) -> Pair {
    let mut pair = Pair::new(&Config::with(|config| {
        config.hystart = false;
        change(config);
    }));
    pair.wire.delay = Duration::from_millis(50);
    pair.connect();
    pair.run_for(Duration::from_millis(100));
    pair.write(SERVER, &pattern(len));
    pair.run_until(Duration::from_secs(100), |pair| {
        pair.sides[CLIENT].received.len() == len
    });
    pair
}

/// Bytes of the server by the millisecond since it began to send.
fn by_millisecond(pair: &Pair) -> Vec<(u64, u32)> {
    let data = pair
        .log
        .iter()
        .filter(|entry| entry.1 == SERVER && entry.2.len > 0);
    let mut sums: Vec<(u64, u32)> = Vec::new();
    for (at, _, segment) in data {
        let millis = at.as_millis();
        match sums.last_mut() {
            Some(last) if last.0 == millis => last.1 += segment.len,
            _ => sums.push((millis, segment.len)),
        }
    }
    let began = sums.first().unwrap().0;
    sums.iter().map(|&(at, sum)| (at - began, sum)).collect()
}

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Cubic, Algorithm::Reno];

/// An answer of ten segments does not wait; what follows leaves in steps over half of the round trip, while without pacing
/// it leaves as it is acknowledged: on this wire, all at once.
#[test]
fn in_slow_start_a_window_leaves_in_half_of_a_round_trip() {
    for algorithm in ALGORITHMS {
        let paced = sent(400_000, |config| {
            config.congestion = algorithm;
            config.pacing = true;
        });
        let sums = by_millisecond(&paced);
        assert_eq!(sums[0], (0, 14_480));
        let second: Vec<_> = sums
            .iter()
            .filter(|sum| (90..190).contains(&sum.0))
            .collect();
        let bytes: u32 = second.iter().map(|sum| sum.1).sum();
        assert_eq!(bytes, 28_960, "twice the first window");
        let span = second.last().unwrap().0 - second[0].0;
        assert!((35..=55).contains(&span), "{span} ms");
        let largest = second.iter().map(|sum| sum.1).max().unwrap();
        assert!(largest <= 4 * 1_448, "{largest}");
        let bursts = by_millisecond(&sent(400_000, |config| config.congestion = algorithm));
        assert!(bursts.iter().any(|sum| sum.1 >= 28_960));
    }
}

/// After a loss the window leaves at 1.2 times itself in a round trip: over five sixths of it.
#[test]
fn in_congestion_avoidance_a_window_leaves_in_five_sixths_of_a_round_trip() {
    for algorithm in ALGORITHMS {
        let mut pair = sent(100_000, |config| {
            config.congestion = algorithm;
            config.pacing = true;
        });
        let connection = pair.connection(SERVER);
        connection.congestion.leave_slow_start();
        let cwnd = connection.congestion.cwnd();
        let from = pair.log.len();
        pair.write(SERVER, &pattern(cwnd as usize));
        pair.run_for(Duration::from_millis(99));
        let left: Vec<_> = pair.log[from..]
            .iter()
            .filter(|entry| entry.2.len > 0)
            .collect();
        let bytes: u32 = left.iter().map(|entry| entry.2.len).sum();
        assert_eq!(bytes, cwnd);
        let span = left.last().unwrap().0.since(left[0].0).as_millis();
        assert!((76..=84).contains(&span), "{span} ms of {cwnd}");
    }
}

/// The pace spreads the window, and does not make it smaller.
#[test]
fn a_transfer_takes_no_more_than_a_round_trip_longer() {
    for algorithm in ALGORITHMS {
        let took = |pacing| {
            let pair = sent(2_000_000, |config| {
                config.congestion = algorithm;
                config.pacing = pacing;
            });
            pair.now.as_millis()
        };
        let (paced, unpaced) = (took(true), took(false));
        assert!(paced <= unpaced + 100, "{paced} ms, {unpaced} without");
    }
}

/// The time that it waits for outlives what was in flight.
#[test]
fn data_leaves_at_its_time_also_when_all_before_it_is_acknowledged() {
    let mut sender = Sender::new(&Config::with(|config| config.pacing = true));
    sender.connection().congestion.leave_slow_start();
    let left = sender.write(8);
    assert_eq!(left, [(0, 1), (1, 1)]);
    assert_eq!(sender.acked(2, &[]), []);
    let later = sender.wait_ms(5);
    assert_eq!(later.first(), Some(&(2, 1)), "{later:?}");
}

/// Nothing is left waiting for a time that is forgotten, whatever is lost, late or acknowledged early.
#[test]
fn paced_data_arrives_over_bad_wires() {
    for seed in 1..60 {
        let config = Config::with(|config| {
            config.pacing = true;
            config.congestion = ALGORITHMS[usize::from(seed % 2 == 0)];
            config.timestamps = seed % 3 > 0;
            config.sack = seed % 5 > 0;
        });
        let mut pair = Pair::with_seed(&config, seed);
        pair.wire.lost = 10 * (seed % 8);
        pair.wire.late = 40 * (seed % 5);
        pair.wire.lateness = Duration::from_millis(1 + seed);
        pair.wire.delay = Duration::from_millis(1 + 7 * (seed % 9));
        pair.connect();
        for len in [1, 30_000, 1_449, 120_000] {
            let before = pair.sides[CLIENT].received.len();
            pair.write(SERVER, &pattern(len));
            pair.run_until(Duration::from_secs(600), |pair| {
                pair.sides[CLIENT].received.len() == before + len
            });
            // The path becomes shorter, so that acknowledgements come before the pace has reached its end.
            pair.wire.delay = Duration::from_millis(1);
        }
    }
}
