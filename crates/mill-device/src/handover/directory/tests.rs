//! The directory, as several processes write it.

use super::*;

fn memory() -> (&'static AtomicU64, &'static [AtomicU64]) {
    let words: Vec<AtomicU64> = (0..=ENTRIES).map(|_| AtomicU64::new(0)).collect();
    let (flag, entries) = Box::leak(words.into_boxed_slice()).split_first().unwrap();
    (flag, entries)
}

fn of((flag, entries): (&'static AtomicU64, &'static [AtomicU64]), identity: u64) -> Directory {
    Directory::new(Key::new([7; 16]), identity, flag, entries)
}

fn flow(number: u32) -> Flow {
    let [_, high, ..] = number.to_be_bytes();
    let port = u16::try_from(number & 0xffff).unwrap();
    let remote = std::net::SocketAddr::from(([10, 0, high, 2], port));
    Flow::new("10.0.0.1:80".parse().unwrap(), remote)
}

fn process(identity: u64, is_waiting: bool) -> Holder {
    let tag = ProcessTag::of(identity);
    Holder::Process { tag, is_waiting }
}

#[test]
fn a_flow_is_the_process_s_that_has_entered_it_last() {
    let memory = memory();
    let [mut one, mut other] = [of(memory, 1), of(memory, 2)];
    one.insert(&flow(5));
    assert_eq!(other.find(&flow(5)), Some(process(1, false)));
    assert!(other.is_elsewhere(&flow(5)) && !one.is_elsewhere(&flow(5)));
    one.note_time_wait(&flow(5));
    assert_eq!(other.find(&flow(5)), Some(process(1, true)));
    assert!(!other.is_elsewhere(&flow(5)), "it may be opened anew");
    other.insert(&flow(5));
    assert_eq!(one.find(&flow(5)), Some(process(2, false)));
    one.remove(&flow(5));
    assert_eq!(
        one.find(&flow(5)),
        Some(process(2, false)),
        "it is the other's"
    );
    other.remove(&flow(5));
    assert_eq!(one.find(&flow(5)), None);
}

#[test]
fn a_flow_that_moves_stays_until_it_has_arrived() {
    let memory = memory();
    let [mut one, mut other] = [of(memory, 1), of(memory, 2)];
    one.insert(&flow(5));
    one.note_moving(&flow(5));
    one.remove(&flow(5));
    assert_eq!(other.find(&flow(5)), Some(Holder::Moving));
    assert!(one.is_elsewhere(&flow(5)) && other.is_elsewhere(&flow(5)));
    other.insert(&flow(5));
    assert_eq!(one.find(&flow(5)), Some(process(2, false)));
}

#[test]
fn half_as_many_flows_as_there_are_entries_find_a_place_each() {
    let memory = memory();
    let [mut one, mut other] = [of(memory, 1), of(memory, u64::MAX)];
    let count = u32::try_from(ENTRIES / 2).unwrap();
    for number in 0..count {
        match number % 2 {
            0 => one.insert(&flow(number)),
            _ => other.insert(&flow(number)),
        }
    }
    assert!(!one.is_incomplete());
    for number in 0..count {
        let identity = if number % 2 == 0 { 1 } else { u64::MAX };
        assert_eq!(
            one.find(&flow(number)),
            Some(process(identity, false)),
            "{number}"
        );
    }
    for number in 0..count {
        match number % 2 {
            0 => one.remove(&flow(number)),
            _ => other.remove(&flow(number)),
        }
    }
    let (_, entries) = memory;
    assert!(
        entries
            .iter()
            .all(|entry| entry.load(Ordering::Relaxed) == 0)
    );
}

#[test]
fn what_waits_makes_room_and_a_full_directory_says_so() {
    let memory = memory();
    let mut one = of(memory, 1);
    let (_, entries) = memory;
    let hash = flow(1).table_hash(one.key);
    for place in places(hash) {
        for index in 0..BUCKET {
            let of_another = (place * BUCKET + index + 1) as u64;
            let word = !hash & !LOW_MASK & !(0xff << 20) | of_another << 20 & (0xff << 20) | 9;
            entries[place * BUCKET + index].store(word, Ordering::Relaxed);
        }
    }
    one.insert(&flow(1));
    assert!(one.is_incomplete() && one.find(&flow(1)).is_none());
    let [_, second] = places(hash);
    entries[second * BUCKET + 3].fetch_or(WAITING, Ordering::Relaxed);
    one.insert(&flow(1));
    assert_eq!(one.find(&flow(1)), Some(process(1, false)));
}
