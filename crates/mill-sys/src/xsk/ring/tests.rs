//! Both ends of a ring over plain shared memory, compared with a simple model. No kernel is needed: one end plays its
//! part.

use super::*;
use crate::memory::{Pages, SharedMemory};
use std::collections::VecDeque;
use std::os::fd::AsFd;

fn layout(count: u32) -> Layout {
    Layout {
        producer: 0,
        consumer: 64,
        flags: 128,
        entries: 192,
        count,
    }
}

/// The two ends of a ring, each with its own mapping, with both indices at `start`.
fn ends<T: Entry>(count: u32, start: u32) -> (Producer<T>, Consumer<T>) {
    let layout = layout(count);
    let bytes = layout.entries + count as usize * size_of::<T>();
    let memory = SharedMemory::create("ring", bytes, Pages::Small).unwrap();
    for index in [layout.producer, layout.consumer] {
        let index = memory.atomic_u32(index).unwrap();
        index.store(start, Ordering::Release);
    }
    let map = || Mapping::new(memory.as_fd(), 0, memory.len(), true).unwrap();
    let producer = Producer::new(map(), layout).unwrap();
    (producer, Consumer::new(map(), layout).unwrap())
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Any order of steps of both ends has the same result as in a queue with three sections: written, published, and taken
/// but not released.
fn check_against_model(seed: u64) {
    let mut random = Random(seed);
    let count = 1 << random.below(7);
    // Close to 2^32, so that the indices wrap early.
    let start = 0_u32.wrapping_sub(random.below(100));
    let (mut producer, mut consumer) = ends::<u64>(count, start);
    let (mut put, mut published) = (VecDeque::new(), VecDeque::new());
    let mut taken = 0;
    for step in 0..2000_u64 {
        match random.below(6) {
            0 | 1 => {
                let in_use = put.len() + published.len() + taken;
                let is_put = producer.put(step);
                assert_eq!(is_put, in_use < count as usize, "step {step}, seed {seed}");
                if is_put {
                    put.push_back(step);
                }
            }
            2 => {
                producer.publish();
                published.append(&mut put);
            }
            3 => {
                let expected = published.pop_front();
                assert_eq!(consumer.take(), expected, "step {step}, seed {seed}");
                taken += usize::from(expected.is_some());
            }
            4 => {
                consumer.release();
                taken = 0;
            }
            _ => {
                let unseen: Vec<u64> = producer.unseen();
                assert_eq!(unseen.len(), published.len() + taken, "seed {seed}");
                assert_eq!(producer.pending() as usize, unseen.len());
                assert!(unseen.iter().skip(taken).eq(published.iter()));
                assert!(consumer.waiting().iter().eq(published.iter()));
            }
        }
    }
}

#[test]
fn any_order_of_steps_gives_what_a_queue_gives() {
    for seed in 1..500 {
        check_against_model(seed);
    }
}

#[test]
fn a_million_entries_pass_between_threads_in_order() {
    let (mut producer, mut consumer) = ends::<Descriptor>(64, u32::MAX - 5);
    let entry = |number: u32| Descriptor {
        address: u64::from(number) << 11,
        len: number,
        options: !number,
    };
    let thread = std::thread::spawn(move || {
        for number in 0..1_000_000 {
            while !producer.put(entry(number)) {
                producer.publish();
                std::thread::yield_now();
            }
            if number % 7 == 0 {
                producer.publish();
            }
        }
        producer.publish();
    });
    for number in 0..1_000_000 {
        let taken = loop {
            match consumer.take() {
                Some(taken) => break taken,
                None => {
                    consumer.release();
                    std::thread::yield_now();
                }
            }
        };
        assert_eq!(taken, entry(number));
    }
    thread.join().unwrap();
}

#[test]
fn a_reopened_end_continues_from_the_rings_indices() {
    let (mut producer, consumer) = ends::<u64>(4, u32::MAX);
    let mut consumer = consumer;
    for entry in 1..=4 {
        assert!(producer.put(entry));
    }
    producer.publish();
    assert_eq!(consumer.take(), Some(1));
    consumer.release();
    // Taken and not released: the next consumer finds it again.
    assert_eq!(consumer.take(), Some(2));
    let (layout, mapping) = (consumer.ring.layout, consumer.ring.mapping);
    let mut next = Consumer::<u64>::new(mapping, layout).unwrap();
    assert_eq!(next.waiting(), [2, 3, 4]);
    assert_eq!(next.take(), Some(2));
    let (layout, mapping) = (producer.ring.layout, producer.ring.mapping);
    let mut next = Producer::<u64>::new(mapping, layout).unwrap();
    assert_eq!(next.unseen(), [2, 3, 4]);
    assert!(next.put(5), "the room of one entry was released");
    assert!(!next.put(6));
}

#[test]
fn a_ring_that_does_not_fit_its_mapping_is_refused() {
    let memory = SharedMemory::create("ring", 4096, Pages::Small).unwrap();
    let check = |layout: Layout, is_valid| {
        let mapping = Mapping::new(memory.as_fd(), 0, memory.len(), true).unwrap();
        let made = Producer::<u64>::new(mapping, layout);
        assert_eq!(made.is_ok(), is_valid, "{layout:?}");
    };
    let valid = layout(256);
    check(valid, true);
    check(layout(512), false);
    check(layout(3), false);
    check(layout(0), false);
    let entries = 4096 - 8 * 256;
    check(Layout { entries, ..valid }, true);
    let entries = entries + 8;
    check(Layout { entries, ..valid }, false);
    let entries = 196;
    check(Layout { entries, ..valid }, false);
    check(
        Layout {
            producer: 4096,
            ..valid
        },
        false,
    );
}

#[test]
fn an_impossible_index_is_ignored() {
    let memory = SharedMemory::create("ring", 4096, Pages::Small).unwrap();
    let mapping = Mapping::new(memory.as_fd(), 0, memory.len(), true).unwrap();
    let mut consumer = Consumer::<u64>::new(mapping, layout(8)).unwrap();
    let producer = memory.atomic_u32(0).unwrap();
    for (index, entries) in [(9, 0), (u32::MAX, 0), (8, 8)] {
        producer.store(index, Ordering::Release);
        assert_eq!(consumer.waiting().len(), entries, "{index}");
    }
}

/// The kernel's driver goes to sleep: it sets the flag, then checks the ring once more. This side publishes an entry,
/// then reads the flag. One of the two has to see the other's store, or the entry waits for ever.
#[test]
fn a_producer_sees_the_flag_of_a_consumer_that_goes_to_sleep() {
    const ROUNDS: u32 = 10_000;
    let (mut producer, mut consumer) = ends::<u64>(4, 0);
    // The number of rounds that each side has begun, and what the driver saw in the last one.
    let begun = [AtomicU32::new(0), AtomicU32::new(0)];
    let ended = AtomicU32::new(0);
    let has_seen = AtomicU32::new(0);
    let meet = |own: usize, round: u32| {
        begun[own].store(round, Ordering::SeqCst);
        while begun[1 - own].load(Ordering::SeqCst) < round {
            std::hint::spin_loop();
        }
    };
    let mut missed = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                meet(0, round);
                let flags = consumer.ring.index(consumer.ring.layout.flags);
                flags.store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                // What a call in the previous round announced comes first.
                let seen = std::iter::from_fn(|| consumer.take()).last();
                has_seen.store(u32::from(seen == Some(round.into())), Ordering::Relaxed);
                consumer.release();
                ended.store(round, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            let flags = producer.ring.index(producer.ring.layout.flags);
            flags.store(0, Ordering::Relaxed);
            assert!(producer.put(round.into()));
            meet(1, round);
            producer.publish();
            let is_asked = producer.needs_wakeup();
            while ended.load(Ordering::Acquire) < round {
                std::hint::spin_loop();
            }
            missed += u32::from(!is_asked && has_seen.load(Ordering::Relaxed) == 0);
        }
    });
    assert_eq!(missed, 0, "of {ROUNDS}");
}
