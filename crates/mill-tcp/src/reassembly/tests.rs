//! Out-of-order bytes against a naive model.

use super::pages::PAGE_BYTES;
use super::*;
use crate::random::Random;
use alloc::vec;

const LIMITS: Limits = Limits {
    bytes_max: 1 << 20,
    ranges_max: 64,
    memory_left_bytes: 1 << 30,
};

fn at(seq: u32) -> SeqNumber {
    SeqNumber(seq)
}

fn insert(reassembly: &mut Reassembly, start: u32, text: &[u8]) -> Option<(u32, u32)> {
    reassembly
        .insert(at(start), text, false, &LIMITS)
        .unwrap()
        .map(|(start, end)| (start.0, end.0))
}

fn ranges(reassembly: &Reassembly) -> Vec<(u32, u32)> {
    reassembly
        .ranges()
        .iter()
        .map(|(start, end)| (start.0, end.0))
        .collect()
}

fn take_all(reassembly: &mut Reassembly) -> Vec<u8> {
    core::iter::from_fn(|| reassembly.take_ready())
        .flatten()
        .collect()
}

fn blocks(reassembly: &mut Reassembly, count_max: usize) -> Vec<(u32, u32)> {
    reassembly
        .take_blocks(count_max)
        .as_slice()
        .iter()
        .map(|(start, end)| (start.0, end.0))
        .collect()
}

#[test]
fn ranges_that_touch_become_one_and_others_stay_apart() {
    let mut reassembly = Reassembly::default();
    insert(&mut reassembly, 100, b"aaaa");
    insert(&mut reassembly, 110, b"bbbb");
    assert_eq!(ranges(&reassembly), [(100, 104), (110, 114)]);
    insert(&mut reassembly, 105, b"c");
    assert_eq!(ranges(&reassembly), [(100, 104), (105, 106), (110, 114)]);
    insert(&mut reassembly, 104, b"d");
    assert_eq!(ranges(&reassembly), [(100, 106), (110, 114)]);
    insert(&mut reassembly, 106, b"eeee");
    assert_eq!(ranges(&reassembly), [(100, 114)]);
    assert_eq!(reassembly.advance(at(100)), (at(114), false));
    assert_eq!(take_all(&mut reassembly), b"aaaadceeeebbbb");
    assert!(reassembly.is_idle() && reassembly.memory_bytes() == 0);
}

#[test]
fn of_bytes_that_come_twice_the_first_ones_count() {
    let mut reassembly = Reassembly::default();
    assert_eq!(insert(&mut reassembly, 10, b"xxxx"), None);
    assert_eq!(insert(&mut reassembly, 8, b"yyyyyyyy"), Some((10, 14)));
    assert_eq!(insert(&mut reassembly, 8, b"zz"), Some((8, 10)));
    assert_eq!(reassembly.advance(at(8)), (at(16), false));
    assert_eq!(take_all(&mut reassembly), b"yyxxxxyy");
}

#[test]
fn what_was_delivered_meanwhile_is_forgotten() {
    let mut reassembly = Reassembly::default();
    insert(&mut reassembly, 100, b"abcdef");
    insert(&mut reassembly, 200, b"ghijkl");
    assert_eq!(reassembly.advance(at(103)), (at(106), false));
    assert_eq!(take_all(&mut reassembly), b"def");
    assert_eq!(reassembly.advance(at(206)), (at(206), false));
    assert!(reassembly.is_idle());
}

#[test]
fn the_limits_of_ranges_and_bytes_are_kept_on_both_sides() {
    let limits = Limits {
        ranges_max: 2,
        bytes_max: 2 * PAGE_BYTES,
        ..LIMITS
    };
    let mut reassembly = Reassembly::default();
    let mut check = |start: u32, len: usize, expected: Result<(), SegmentDrop>| {
        let result = reassembly.insert(at(start), &vec![7; len], false, &limits);
        assert_eq!(result.map(|_| ()), expected, "{start} {len}");
    };
    check(10, 1, Ok(()));
    check(20, 1, Ok(()));
    check(30, 1, Err(SegmentDrop::ReassemblyFull));
    // A range that exists may grow, up to the last byte of the second page.
    check(21, 8171, Ok(()));
    check(8192, 1, Err(SegmentDrop::ReassemblyFull));
    assert_eq!(reassembly.memory_bytes(), 2 * PAGE_BYTES);
    let short_of_memory = Limits {
        memory_left_bytes: u64::from(PAGE_BYTES) - 1,
        ..LIMITS
    };
    assert_eq!(
        reassembly.insert(at(9000), b"x", false, &short_of_memory),
        Err(SegmentDrop::NoBuffer)
    );
    let enough = Limits {
        memory_left_bytes: u64::from(PAGE_BYTES),
        ..LIMITS
    };
    assert_eq!(reassembly.insert(at(9000), b"x", false, &enough), Ok(None));
}

#[test]
fn tiny_segments_cost_what_one_large_one_costs() {
    let mut tiny = Reassembly::default();
    for index in (0..8000).rev() {
        insert(&mut tiny, 1000 + index, &[1]);
    }
    let mut large = Reassembly::default();
    insert(&mut large, 1000, &[1; 8000]);
    assert_eq!(tiny.memory_bytes(), large.memory_bytes());
    assert_eq!(ranges(&tiny), ranges(&large));
}

/// RFC 2018 4: the block that the latest segment belongs to comes first, then those reported before.
#[test]
fn the_latest_block_is_told_first() {
    let mut reassembly = Reassembly::default();
    for start in [100, 200, 300, 400, 500] {
        insert(&mut reassembly, start, &[0; 10]);
    }
    assert_eq!(
        blocks(&mut reassembly, 3),
        [(500, 510), (400, 410), (300, 310)]
    );
    insert(&mut reassembly, 210, &[0; 10]);
    assert_eq!(
        blocks(&mut reassembly, 4),
        [(200, 220), (500, 510), (400, 410), (300, 310)]
    );
    // A block that grew downwards is the same block.
    insert(&mut reassembly, 190, &[0; 10]);
    insert(&mut reassembly, 600, &[0; 10]);
    assert_eq!(blocks(&mut reassembly, 2), [(600, 610), (190, 220)]);
}

/// RFC 2883 4.1, 4.2: first what came twice, once; then the block it lies in.
#[test]
fn what_came_twice_is_told_once_and_first() {
    let mut reassembly = Reassembly::default();
    insert(&mut reassembly, 100, &[0; 10]);
    reassembly.note_duplicate(at(104), at(106));
    assert_eq!(blocks(&mut reassembly, 3), [(104, 106), (100, 110)]);
    assert_eq!(blocks(&mut reassembly, 3), [(100, 110)]);
    // Also when it is a whole block.
    reassembly.note_duplicate(at(100), at(110));
    assert_eq!(blocks(&mut reassembly, 3), [(100, 110), (100, 110)]);
}

#[test]
fn a_fin_waits_for_what_is_before_it_and_nothing_follows_it() {
    let mut reassembly = Reassembly::default();
    let fin = |reassembly: &mut Reassembly, start, text: &[u8]| {
        reassembly.insert(at(start), text, true, &LIMITS).unwrap();
    };
    fin(&mut reassembly, 105, b"end");
    assert_eq!(ranges(&reassembly), [(105, 109)]);
    insert(&mut reassembly, 107, b"d and more");
    assert_eq!(ranges(&reassembly), [(105, 109)]);
    // Another FIN elsewhere is not believed.
    fin(&mut reassembly, 102, b"x");
    assert_eq!(ranges(&reassembly), [(102, 103), (105, 109)]);
    insert(&mut reassembly, 103, b"yz");
    assert_eq!(reassembly.advance(at(102)), (at(108), true));
    assert_eq!(take_all(&mut reassembly), b"xyzend");
    assert!(reassembly.is_idle());
    // A FIN before what is here already is not believed either.
    insert(&mut reassembly, 300, b"later");
    fin(&mut reassembly, 200, b"x");
    assert_eq!(ranges(&reassembly), [(200, 201), (300, 305)]);
}

#[test]
fn a_fin_alone_needs_no_memory() {
    let mut reassembly = Reassembly::default();
    reassembly.insert(at(50), b"", true, &LIMITS).unwrap();
    assert_eq!(
        (ranges(&reassembly), reassembly.memory_bytes()),
        (vec![(50, 51)], 0)
    );
    assert_eq!(reassembly.advance(at(50)), (at(50), true));
    assert!(reassembly.is_idle());
}

/// Bytes, and which of them came first.
struct Model {
    base: SeqNumber,
    bytes: Vec<Option<u8>>,
}

/// Random segments of a stream of random bytes, each byte told by its number and by the segment that brought it.
#[test]
fn it_does_what_an_array_does() {
    for seed in 1..60 {
        let mut random = Random::new(seed * 977);
        let mut below = |bound: u64| usize::try_from(random.next() % bound).unwrap();
        let base = SeqNumber(u32::MAX - u32::try_from(below(20_000)).unwrap());
        let mut model = Model {
            base,
            bytes: vec![None; 60_000],
        };
        let mut reassembly = Reassembly::default();
        let mut next = 0;
        for round in 0..120_u8 {
            let start = next + 1 + below(9_000);
            let len = 1 + below(if round % 3 == 0 { 4000 } else { 40 });
            let text = vec![round; len];
            let seq = base + u32::try_from(start).unwrap();
            if reassembly.insert(seq, &text, false, &LIMITS).is_ok() {
                for byte in &mut model.bytes[start..start + len] {
                    byte.get_or_insert(round);
                }
            }
            if round % 4 == 3 && next < 15_000 {
                next += 1 + below(300);
                next = check_advance(&mut reassembly, &model, next, seed);
            }
            check_ranges(&reassembly, &model, next, seed);
        }
    }
}

/// Delivers up to `next`, and what follows; gives where that ends.
fn check_advance(reassembly: &mut Reassembly, model: &Model, next: usize, seed: u64) -> usize {
    let follows = model.bytes[next..]
        .iter()
        .map_while(|byte| *byte)
        .collect::<Vec<_>>();
    let (end, is_fin) = reassembly.advance(model.base + u32::try_from(next).unwrap());
    assert!(!is_fin);
    let end_index = next + follows.len();
    assert_eq!(
        end,
        model.base + u32::try_from(end_index).unwrap(),
        "seed {seed}"
    );
    assert!(take_all(reassembly) == follows, "seed {seed}: other bytes");
    end_index
}

fn check_ranges(reassembly: &Reassembly, model: &Model, next: usize, seed: u64) {
    let held = reassembly
        .ranges()
        .iter()
        .map(|(start, end)| (*start - model.base, *end - model.base))
        .collect::<Vec<_>>();
    let mut expected = Vec::new();
    let mut begin = None;
    for (index, byte) in model.bytes.iter().enumerate().skip(next) {
        let index = u32::try_from(index).unwrap();
        match (byte, begin) {
            (Some(_), None) => begin = Some(index),
            (None, Some(start)) => {
                expected.push((start, index));
                begin = None;
            }
            _ => {}
        }
    }
    assert_eq!(held, expected, "seed {seed}");
}
