//! Frames in, the frames that remain out.

use super::*;
use crate::pair::{drain, pair, put, send, take};
use std::os::fd::OwnedFd;

fn impaired(impairment: Impairment) -> (ImpairedLink, OwnedFd) {
    let (link, far) = pair();
    (ImpairedLink::new(link, impairment), far)
}

/// Sends numbered frames over the wire and receives them in bursts of 20: which ones arrive, and in which order.
fn receive(impairment: Impairment, count: u8) -> (Vec<u8>, ImpairCounters) {
    let (mut link, far) = impaired(impairment);
    let mut arrived = Vec::new();
    for number in 0..count {
        put(&far, 0, &[number; 60]);
        if number % 20 == 19 {
            let frames = drain(&mut link);
            arrived.extend(frames.iter().map(|frame| frame[0]));
        }
    }
    (arrived, link.counters())
}

fn transmit(impairment: Impairment, count: u8) -> (Vec<u8>, ImpairCounters) {
    let (mut link, far) = impaired(impairment);
    let mut arrived = Vec::new();
    for number in 0..count {
        assert!(send(&mut link, number, 60));
        if number % 20 == 19 {
            link.flush();
            arrived.extend(std::iter::from_fn(|| take(&far)).map(|frame| *frame.last().unwrap()));
        }
    }
    (arrived, link.counters())
}

/// Checks both directions, whose random choices differ.
fn check(impairment: Impairment, judge: impl Fn(&[u8], ImpairCounters)) {
    for way in [receive, transmit] {
        let (arrived, counters) = way(impairment, 200);
        judge(&arrived, counters);
        assert_eq!(way(impairment, 200), (arrived, counters), "the same seed");
    }
}

fn sorted(numbers: &[u8]) -> Vec<u8> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted
}

#[test]
fn an_unimpaired_wire_changes_nothing() {
    check(Impairment::default(), |arrived, counters| {
        assert_eq!(arrived, (0..200).collect::<Vec<_>>());
        assert_eq!(counters, ImpairCounters::default());
    });
}

#[test]
fn frames_are_lost() {
    let impairment = Impairment {
        loss_ppm: 100_000,
        seed: 3,
        ..Impairment::default()
    };
    check(impairment, |arrived, counters| {
        assert!((5..50).contains(&counters.lost), "{counters:?}");
        assert_eq!(arrived.len() as u64, 200 - counters.lost);
        assert_eq!(arrived, sorted(arrived));
    });
    let all = Impairment {
        loss_ppm: 1_000_000,
        ..impairment
    };
    check(all, |arrived, _| assert!(arrived.is_empty()));
}

#[test]
fn frames_are_overtaken_and_none_is_lost() {
    let impairment = Impairment {
        reorder_ppm: 100_000,
        seed: 4,
        ..Impairment::default()
    };
    check(impairment, |arrived, counters| {
        assert!((5..50).contains(&counters.reordered), "{counters:?}");
        assert_ne!(arrived, sorted(arrived));
        assert_eq!(sorted(arrived), (0..200).collect::<Vec<_>>());
    });
    let all = Impairment {
        reorder_ppm: 1_000_000,
        ..impairment
    };
    check(all, |arrived, _| assert_eq!(arrived.len(), 200));
}

#[test]
fn frames_are_duplicated() {
    let impairment = Impairment {
        duplicate_ppm: 100_000,
        seed: 5,
        ..Impairment::default()
    };
    check(impairment, |arrived, counters| {
        assert!((5..50).contains(&counters.duplicated), "{counters:?}");
        assert_eq!(arrived.len() as u64, 200 + counters.duplicated);
        let mut once = sorted(arrived);
        once.dedup();
        assert_eq!(once.len(), 200);
    });
}

#[test]
fn single_bits_are_inverted() {
    let impairment = Impairment {
        corrupt_ppm: 1_000_000,
        seed: 6,
        ..Impairment::default()
    };
    let (mut link, far) = impaired(impairment);
    let ones = |frame: &[u8]| frame.iter().map(|byte| byte.count_ones()).sum::<u32>();
    for _ in 0..20 {
        put(&far, 0, &[0; 60]);
        assert_eq!(ones(&drain(&mut link)[0]), 1);
        assert!(send(&mut link, 0, 60));
        assert_eq!(ones(&take(&far).unwrap()), 1);
    }
}

#[test]
fn nothing_is_offloaded_to_the_device() {
    let (link, _far) = impaired(Impairment::default());
    let properties = link.properties();
    assert!(!properties.completes_checksums);
    assert_eq!(properties.segment_bytes_max, 1500);
}

#[test]
fn different_seeds_impair_different_frames() {
    let lost = |seed| {
        let impairment = Impairment {
            loss_ppm: 100_000,
            seed,
            ..Impairment::default()
        };
        receive(impairment, 200).0
    };
    assert_ne!(lost(0), lost(1));
    assert_ne!(lost(1), lost(2));
}
