//! The wheel against a sorted list, with seeded steps.

use super::*;
use crate::tasks::{Due, TaskId, Tasks};
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
    let mut numbers = 0..;
    let mut now = 1_000_000 + random.below(1 << 30);
    let mut wheel = TimerWheel::new(millis(now));
    let mut list: Vec<(u64, u32)> = Vec::new();
    for _ in 0..2000 {
        for _ in 0..random.below(4) {
            let (number, at) = (numbers.next().unwrap(), now + 1 + random.below(ahead_most));
            wheel.arm(number, millis(at));
            list.push((at, number));
        }
        if !list.is_empty() && random.below(3) == 0 {
            let moved = usize::try_from(random.below(list.len() as u64)).unwrap();
            let at = now + 1 + random.below(ahead_most);
            list[moved].0 = at;
            wheel.arm(list[moved].1, millis(at));
        }
        assert_eq!(wheel.len(), list.len(), "seed {seed}");
        if let Some(next) = wheel.next_expiry() {
            let first = list.iter().map(|entry| entry.0).min().unwrap();
            assert!(
                next <= millis(first),
                "seed {seed}: would sleep past {first} ms until {next:?}"
            );
        }
        now += random.below(step_most);
        let mut expired = Vec::new();
        wheel.expire(millis(now), |number| expired.push(number));
        // Entries beyond the wheel's reach expire early, and are armed again.
        expired.retain(|number| {
            let later = list
                .iter()
                .find(|entry| entry.1 == *number && entry.0 > now);
            if let Some((at, number)) = later {
                assert!(ahead_most > REACH_TICKS, "seed {seed}: expired early");
                wheel.arm(*number, millis(*at));
            }
            later.is_none()
        });
        let mut expected: Vec<u32> = list
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
    let mut wheel = TimerWheel::new(millis(10));
    wheel.arm(3, Instant::from_nanos(12 * TICK_NANOS + 1));
    let mut due = Vec::new();
    wheel.expire(millis(12), |number| due.push(number));
    assert_eq!(due, []);
    wheel.expire(millis(13), |number| due.push(number));
    assert_eq!(due, [3]);
    assert_eq!((wheel.next_expiry(), wheel.is_empty()), (None, true));
}

#[test]
fn a_number_is_armed_once_and_expires_where_it_was_armed_last() {
    let check = |first: u64, last: u64| {
        let mut wheel = TimerWheel::new(millis(10));
        // Others in the same slots, before and behind it.
        for (number, at) in [(0, first), (1, first), (2, last), (1, last), (3, first)] {
            wheel.arm(number, millis(at));
        }
        assert_eq!(wheel.len(), 4);
        let mut due = Vec::new();
        wheel.expire(millis(first.min(last)), |number| due.push(number));
        let early: &[u32] = if first < last { &[0, 3] } else { &[2, 1] };
        assert_eq!(due, early, "{first}, {last}");
        wheel.expire(millis(first.max(last)), |number| due.push(number));
        assert_eq!(due.len(), 4, "{first}, {last}");
    };
    check(20, 30);
    check(30, 20);
    check(20, 5_000_000);
    check(5_000_000, 20);
}

/// What a worker does with a task's deadline.
fn state(wheel: &mut TimerWheel, tasks: &mut Tasks<Ready<()>>, task: TaskId, at: Instant) {
    if let Some(number) = tasks.set_deadline(task, at) {
        wheel.arm(number, at);
    }
}

/// Two million tasks, a hundred at a time, each with a near deadline, a far one, then as the table says; and nothing
/// ends by its deadline.
#[test]
fn tasks_that_ended_with_far_deadlines_leave_no_more_entries_than_slots() {
    let mut tasks: Tasks<Ready<()>> = Tasks::new();
    let mut wheel = TimerWheel::new(millis(0));
    let mut alive = alloc::collections::VecDeque::new();
    let mut entries_max = 0;
    for number in 0..2_000_000_u64 {
        let now = number / 10;
        let task = tasks.reserve();
        for ahead in [3_600_000, 5_000, 3_600_000, 75_000 - number % 1_000] {
            state(&mut wheel, &mut tasks, task, millis(now + ahead));
        }
        alive.push_back(task);
        if alive.len() > 100 {
            tasks.release(alive.pop_front().unwrap());
        }
        let mut later = Vec::new();
        wheel.expire(millis(now), |number| {
            match tasks.on_entry_due(number, millis(now)) {
                Due::Now(task) => panic!("{task:?} ended long before"),
                Due::Later(at) => later.push((number, at)),
                Due::Stale => {}
            }
        });
        for (number, at) in later {
            wheel.arm(number, at);
        }
        entries_max = entries_max.max(wheel.len());
    }
    assert!(entries_max <= 101, "{entries_max} entries");
    assert!(wheel.links.len() <= 101);
}
