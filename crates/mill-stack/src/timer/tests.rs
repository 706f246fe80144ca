//! The wheel against a list that is searched.

use super::*;
use alloc::collections::BTreeMap;
use mill_tcp::random::Random;

const fn at_millis(millis: u64) -> Instant {
    Instant::from_nanos(millis * NANOS_PER_TICK)
}

/// Everything that is due, in the order in which it came.
fn expire_all(wheel: &mut Wheel, now: Instant) -> Vec<u32> {
    let mut work = u32::MAX;
    core::iter::from_fn(|| wheel.expire(now, &mut work)).collect()
}

#[test]
fn the_wheel_expires_what_a_naive_list_would() {
    for seed in 1..60 {
        let mut random = Random::new(seed);
        // Some of them near the end of the 32 bits of a tick.
        let mut now = u64::from(u32::MAX) * (seed % 3) - (seed % 3) * 5000 + 17;
        let mut wheel = Wheel::new(at_millis(now));
        let mut model = BTreeMap::new();
        let reach = 1 << (seed % 28);
        for _ in 0..2000 {
            let index = u32::try_from(random.below(50)).unwrap();
            match random.below(4) {
                0 => {
                    wheel.disarm(index);
                    model.remove(&index);
                }
                1 => {
                    let when = now + random.below(reach);
                    wheel.arm_by(index, tick_of(when));
                    let armed = model.entry(index).or_insert(when);
                    *armed = when.min(*armed);
                }
                2 => {
                    let when = now + random.below(reach);
                    wheel.arm(index, tick_of(when));
                    model.insert(index, when);
                }
                _ => {
                    now += random.below(reach / 8 + 2);
                    let mut expired = expire_all(&mut wheel, at_millis(now));
                    expired.sort_unstable();
                    let due: Vec<u32> = model
                        .iter()
                        .filter(|(_, when)| **when <= now)
                        .map(|(index, _)| *index)
                        .collect();
                    assert_eq!(expired, due, "seed {seed}");
                    model.retain(|_, when| *when > now);
                }
            }
            assert_eq!(wheel.len(), model.len());
            let soonest = model.values().min().map(|when| at_millis(*when));
            match (wheel.next_expiry(), soonest) {
                (Some(next), Some(soonest)) => assert!(next <= soonest, "seed {seed}"),
                (next, soonest) => assert_eq!(next, soonest, "seed {seed}"),
            }
        }
    }
}

#[test]
fn waking_at_every_next_expiry_leads_to_each_entry_in_few_steps() {
    let mut wheel = Wheel::new(at_millis(63));
    wheel.arm(7, Tick(63 + 7_200_000));
    let mut steps = 0;
    loop {
        let next = wheel.next_expiry().unwrap();
        let expired = expire_all(&mut wheel, next);
        steps += 1;
        if !expired.is_empty() {
            assert_eq!((expired, next), (alloc::vec![7], at_millis(7_200_063)));
            break;
        }
    }
    assert!(steps <= LEVELS, "{steps} steps");
    assert_eq!(wheel.next_expiry(), None);
}

#[test]
fn a_call_does_no_more_than_it_may_and_the_next_goes_on() {
    let mut wheel = Wheel::new(at_millis(0));
    for index in 0..100 {
        wheel.arm(index, Tick(100));
    }
    let mut work = 150;
    let mut expired = 0;
    while wheel.expire(at_millis(200), &mut work).is_some() {
        expired += 1;
    }
    // A hundred steps to the lowest level come first.
    assert_eq!((expired, work), (50, 0));
    assert_eq!(wheel.next_expiry(), Some(at_millis(100)));
    assert_eq!(expire_all(&mut wheel, at_millis(200)).len(), 50);
    assert!(wheel.is_empty());
}

#[test]
fn an_entry_whose_time_is_past_expires_at_once() {
    let mut wheel = Wheel::new(at_millis(1000));
    wheel.arm(3, Tick(500));
    assert_eq!(expire_all(&mut wheel, at_millis(1000)), [3]);
    assert_eq!(wheel.armed_at(3), None);
    assert_eq!(wheel.armed_at(4_000_000), None);
}
