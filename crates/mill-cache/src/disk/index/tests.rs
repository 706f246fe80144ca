//! The index by itself.

use super::*;

fn index(units: u64) -> DiskIndex {
    let limits = DiskLimits {
        bytes: units * FILE_UNIT_BYTES,
        files: 100,
        inactive: Duration::from_secs(60),
        variants: 2,
    };
    DiskIndex::new(limits, [3, 4])
}

fn name(hash: u64, variant: u64, number: u64) -> DiskName {
    DiskName {
        hash,
        variant,
        number,
        has_tags: false,
    }
}

fn names(leaving: Vec<Leaving>) -> Vec<DiskName> {
    leaving.into_iter().map(|leaving| leaving.name).collect()
}

const NOW: Duration = Duration::from_secs(1000);

fn unseen(_: u64) -> Option<Duration> {
    None
}

#[test]
fn a_new_file_takes_the_place_of_its_variant_and_of_what_varies_otherwise() {
    let index = index(100);
    let (one, other) = (1 << 32 | 1, 1 << 32 | 2);
    assert_eq!(names(index.insert(name(7, 0, 1), 1, NOW)), []);
    assert_eq!(
        names(index.insert(name(7, one, 2), 1, NOW)),
        [name(7, 0, 1)]
    );
    assert_eq!(names(index.insert(name(7, other, 3), 1, NOW)), []);
    assert_eq!(
        names(index.insert(name(7, one, 4), 1, NOW)),
        [name(7, one, 2)]
    );
    assert_eq!(index.find(7), [name(7, one, 4), name(7, other, 3)]);
    // Two variants are the limit.
    let third = name(7, 1 << 32 | 3, 5);
    assert_eq!(names(index.insert(third, 1, NOW)), [name(7, other, 3)]);
    assert_eq!(index.figures().files, 2);
}

#[test]
fn an_older_file_that_is_found_later_takes_no_place() {
    let index = index(100);
    assert_eq!(names(index.insert(name(7, 0, 5), 1, NOW)), []);
    assert_eq!(names(index.insert(name(7, 0, 4), 1, NOW)), []);
    assert_eq!(index.find(7), [name(7, 0, 5), name(7, 0, 4)]);
}

#[test]
fn bytes_count_until_the_file_is_removed() {
    let index = index(3);
    let _ = index.insert(name(1, 0, 1), 4097, NOW);
    assert_eq!(index.figures().bytes, 2 * FILE_UNIT_BYTES);
    assert!(index.has_room(4096) && !index.has_room(4097));
    let gone = index.evict_for(4097, unseen).unwrap();
    assert_eq!(gone.name, name(1, 0, 1));
    assert_eq!(index.evict_for(4097, unseen), None, "nothing is left to go");
    assert!(!index.has_room(4097));
    index.removed(gone);
    assert!(index.has_room(3 * 4096));
    assert_eq!(index.figures().evicted, 1);
}

#[test]
fn the_file_that_was_not_used_for_longest_goes_first_also_if_memory_saw_the_use() {
    let index = index(3);
    for hash in 1..=3 {
        let _ = index.insert(name(hash, 0, hash), 1, NOW);
    }
    index.used(&name(1, 0, 1), 11, NOW + Duration::from_secs(1));
    index.used(&name(2, 0, 2), 12, NOW);
    let seen = |hash| (hash == 12).then_some(NOW + Duration::from_secs(2));
    let mut order = Vec::new();
    for _ in 0..3 {
        let leaving = index.evict_for(4096, seen).unwrap();
        index.removed(leaving);
        order.push(leaving.name.hash);
        let _ = index.insert(leaving.name, 1, NOW + Duration::from_secs(3));
    }
    // The second one is passed over, and stands behind what came in meanwhile.
    assert_eq!(order, [3, 1, 3]);
}

#[test]
fn the_oldest_file_can_go_although_there_is_room() {
    let index = index(100);
    assert_eq!(index.evict(unseen), None);
    for number in 1..=2 {
        let _ = index.insert(name(number, 0, number), 5000, NOW);
    }
    let leaving = index.evict(unseen).expect("there are two");
    assert_eq!((leaving.name, leaving.bytes()), (name(1, 0, 1), 8192));
    assert_eq!(index.figures().evicted, 1);
    assert!(index.evict_for(1, unseen).is_none(), "there is room");
}

#[test]
fn what_nothing_asks_for_goes_after_its_time() {
    let index = index(3);
    let _ = index.insert(name(1, 0, 1), 1, NOW);
    let later = NOW + Duration::from_secs(60);
    assert_eq!(index.expire(later - Duration::from_secs(1), unseen), None);
    index.used(&name(1, 0, 1), 11, NOW);
    let seen = |hash| (hash == 11).then_some(NOW + Duration::from_secs(1));
    assert_eq!(index.expire(later, seen), None);
    let end = later + Duration::from_secs(1);
    assert!(index.expire(end, unseen).is_some());
    assert_eq!(index.figures().inactive, 1);
}

#[test]
fn a_thousand_changes_leave_the_lists_in_order() {
    let index = index(50);
    // A plain congruential generator: the sequence is always the same.
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut known: Vec<(DiskName, u64)> = Vec::new();
    let forget = |known: &mut Vec<(DiskName, u64)>, leaving: Leaving| {
        let at = known.iter().position(|(name, _)| *name == leaving.name);
        known.swap_remove(at.expect("what goes was there"));
        index.removed(leaving);
    };
    for number in 1..5000 {
        let hash = next(40);
        match next(4) {
            0 => {
                for leaving in index.remove_key(hash) {
                    forget(&mut known, leaving);
                }
            }
            1 if !known.is_empty() => {
                let at = usize::try_from(next(known.len() as u64)).unwrap();
                index.used(&known[at].0, 0, NOW + Duration::from_secs(number));
            }
            _ => {
                let bytes = 1 + next(3 * 4096);
                while let Some(leaving) = index.evict_for(bytes, unseen) {
                    forget(&mut known, leaving);
                }
                let name = name(hash, 0, number);
                let at = NOW + Duration::from_secs(number);
                for leaving in index.insert(name, bytes, at) {
                    forget(&mut known, leaving);
                }
                known.push((name, bytes));
            }
        }
        let units: u64 = known.iter().map(|(_, bytes)| bytes.div_ceil(4096)).sum();
        let figures = index.figures();
        assert_eq!(
            (figures.files, figures.bytes),
            (known.len() as u64, units * 4096)
        );
        assert!(units <= 50);
        let (mut names, end) = index.slice(0, 1000);
        let mut expected: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!((names, end), (expected, None));
    }
}
