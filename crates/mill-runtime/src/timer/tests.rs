//! The wheel against a sorted list, with seeded steps.

use super::*;
use crate::tasks::Tasks;
use core::future::Ready;

/// A small generator (xorshift64*, Vigna 2016) so that a failing seed can be replayed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}

fn millis(count: u64) -> Instant {
    Instant::from_nanos(count * TICK_NANOS)
}

/// Runs random arms and steps of `step_most` and compares what expires with a plain list.
fn check_against_list(seed: u64, ahead_most: u64, step_most: u64) {
    let mut random = Random(seed);
    let mut tasks: Tasks<Ready<()>> = Tasks::new();
    let mut now = 1_000_000 + random.below(1 << 30);
    let mut wheel = TimerWheel::new(millis(now));
    let mut list: Vec<(u64, TaskId)> = Vec::new();
    for _ in 0..2000 {
        for _ in 0..random.below(4) {
            let (task, at) = (tasks.reserve(), now + 1 + random.below(ahead_most));
            wheel.arm(task, millis(at));
            list.push((at, task));
        }
        if let Some(next) = wheel.next_expiry() {
            let first = list.iter().map(|entry| entry.0).min().unwrap();
            assert!(
                next <= millis(first),
                "seed {seed}: would sleep past {first} ms until {next:?}"
            );
        }
        now += random.below(step_most);
        let mut expired = Vec::new();
        wheel.expire(millis(now), |task, at| {
            assert!(at <= millis(now), "seed {seed}: expired early");
            expired.push(task);
        });
        let mut expected: Vec<TaskId> = list
            .iter()
            .filter(|entry| entry.0 <= now)
            .map(|entry| entry.1)
            .collect();
        list.retain(|entry| entry.0 > now);
        expired.sort();
        expected.sort();
        assert_eq!(expired, expected, "seed {seed}, now {now} ms");
    }
}

#[test]
fn expires_what_a_sorted_list_expires_near_by() {
    for seed in 1..20 {
        check_against_list(seed, 200, 30);
    }
}

#[test]
fn expires_what_a_sorted_list_expires_over_all_levels() {
    for seed in 1..20 {
        check_against_list(seed, 20_000_000, 300_000);
    }
}

#[test]
fn an_entry_inside_a_tick_expires_in_the_tick_after_it() {
    let mut tasks: Tasks<Ready<()>> = Tasks::new();
    let mut wheel = TimerWheel::new(millis(10));
    let task = tasks.reserve();
    wheel.arm(task, Instant::from_nanos(12 * TICK_NANOS + 1));
    let mut count = 0;
    wheel.expire(millis(12), |_, _| count += 1);
    assert_eq!(count, 0);
    wheel.expire(millis(13), |_, _| count += 1);
    assert_eq!(count, 1);
    assert_eq!(wheel.next_expiry(), None);
}
