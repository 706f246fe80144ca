//! Policies, each as simple as its description, and none of them fast.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy)]
pub(crate) enum Policy {
    /// Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023), algorithm 1.
    S3Fifo,
    /// What was not used for longest goes.
    Lru,
    /// First in, first out, but what was used goes round once more (CLOCK).
    Clock,
    Fifo,
    /// What will not be used for longest goes: the optimum, which needs to know the future.
    Belady,
}

impl Policy {
    pub(crate) const ALL: [Self; 5] = [
        Self::S3Fifo,
        Self::Lru,
        Self::Clock,
        Self::Fifo,
        Self::Belady,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::S3Fifo => "S3-FIFO",
            Self::Lru => "LRU",
            Self::Clock => "CLOCK",
            Self::Fifo => "FIFO",
            Self::Belady => "Belady",
        }
    }

    /// How many of these requests find their object.
    pub(crate) fn hits(self, keys: &[u64], capacity: usize) -> usize {
        match self {
            Self::S3Fifo => s3_fifo(keys, capacity),
            Self::Lru => lru(keys, capacity),
            Self::Clock => clock(keys, capacity, 1),
            Self::Fifo => clock(keys, capacity, 0),
            Self::Belady => belady(keys, capacity),
        }
    }
}

fn s3_fifo(keys: &[u64], capacity: usize) -> usize {
    let small_max = capacity / 10;
    let (mut small, mut main) = (VecDeque::new(), VecDeque::new());
    let (mut ghost, mut ghosts) = (VecDeque::new(), BTreeSet::new());
    let mut uses: BTreeMap<u64, u8> = BTreeMap::new();
    let mut hits = 0;
    for key in keys {
        if let Some(count) = uses.get_mut(key) {
            *count = (*count + 1).min(3);
            hits += 1;
            continue;
        }
        while uses.len() >= capacity {
            if small.len() >= small_max.max(1) || main.is_empty() {
                let Some(tail) = small.pop_front() else { break };
                if uses.get(&tail).is_some_and(|count| *count > 1) {
                    main.push_back(tail);
                    continue;
                }
                uses.remove(&tail);
                ghost.push_back(tail);
                ghosts.insert(tail);
                while ghost.len() > capacity - small_max {
                    let oldest = ghost.pop_front();
                    oldest.iter().for_each(|oldest| {
                        ghosts.remove(oldest);
                    });
                }
            } else if let Some(tail) = main.pop_front() {
                match uses.get_mut(&tail) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        main.push_back(tail);
                    }
                    _ => {
                        uses.remove(&tail);
                    }
                }
            }
        }
        if ghosts.remove(key) {
            main.push_back(*key);
        } else {
            small.push_back(*key);
        }
        uses.insert(*key, 0);
    }
    hits
}

fn lru(keys: &[u64], capacity: usize) -> usize {
    let mut last_use: BTreeMap<u64, usize> = BTreeMap::new();
    let mut by_use: BTreeMap<usize, u64> = BTreeMap::new();
    let mut hits = 0;
    for (time, key) in keys.iter().enumerate() {
        if let Some(before) = last_use.insert(*key, time) {
            by_use.remove(&before);
            hits += 1;
        }
        by_use.insert(time, *key);
        if by_use.len() > capacity
            && let Some((_, oldest)) = by_use.pop_first()
        {
            last_use.remove(&oldest);
        }
    }
    hits
}

/// `rounds` are how often a use may save an object.
fn clock(keys: &[u64], capacity: usize, rounds: u8) -> usize {
    let mut uses: BTreeMap<u64, u8> = BTreeMap::new();
    let mut queue = VecDeque::new();
    let mut hits = 0;
    for key in keys {
        if let Some(count) = uses.get_mut(key) {
            *count = rounds;
            hits += 1;
            continue;
        }
        while uses.len() >= capacity {
            let Some(tail) = queue.pop_front() else { break };
            match uses.get_mut(&tail) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    queue.push_back(tail);
                }
                _ => {
                    uses.remove(&tail);
                }
            }
        }
        uses.insert(*key, 0);
        queue.push_back(*key);
    }
    hits
}

fn belady(keys: &[u64], capacity: usize) -> usize {
    let mut next_use = vec![usize::MAX; keys.len()];
    let mut seen = BTreeMap::new();
    for (time, key) in keys.iter().enumerate().rev() {
        if let Some(later) = seen.insert(*key, time) {
            next_use[time] = later;
        }
    }
    // What is kept, by its next use.
    let mut kept: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut due: BTreeMap<u64, usize> = BTreeMap::new();
    let mut hits = 0;
    for (time, key) in keys.iter().enumerate() {
        if let Some(now) = due.remove(key) {
            kept.remove(&(now, *key));
            hits += 1;
        }
        kept.insert((next_use[time], *key));
        due.insert(*key, next_use[time]);
        if kept.len() > capacity
            && let Some((_, farthest)) = kept.pop_last()
        {
            due.remove(&farthest);
        }
    }
    hits
}
