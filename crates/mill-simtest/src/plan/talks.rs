//! What clients do, and when.

use super::{Asking, Leave, Talk, TalkPlan};
use crate::content::LARGEST_BYTES;
use mill_runtime::time::Duration;
use mill_sim::random::Random;

/// The talks of each client.
pub(super) fn draw(clients: usize, random: &mut Random) -> Vec<Vec<TalkPlan>> {
    // In one world of forty a transfer is of ten megabytes.
    let mut largest = random.happens(25_000);
    (0..clients)
        .map(|client| {
            let count = 1 + random.up_to(5);
            (0..count)
                .map(|_| {
                    let numbers = 100 * u32::try_from(client).unwrap_or(0);
                    talk(numbers, std::mem::take(&mut largest), random)
                })
                .collect()
        })
        .collect()
}

pub(super) fn talk(numbers: u32, is_largest: bool, random: &mut Random) -> TalkPlan {
    let at = Duration::from_micros(random.up_to(5_000_000));
    let number = numbers + u32::try_from(random.up_to(99)).unwrap_or(0);
    let len = if is_largest {
        LARGEST_BYTES
    } else {
        size(random)
    };
    let what = match random.up_to(5) {
        0 => Talk::Post { number, len },
        1 => Talk::Hash { number, len },
        2 if !is_largest => Talk::Echo { number, len },
        _ => get(number, len, is_largest, random),
    };
    let leaves = match random.up_to(9) {
        0 => Leave::Reset(part_of(&what, random)),
        1 => Leave::Close(part_of(&what, random)),
        _ => Leave::Whole,
    };
    let pause = match random.up_to(6) {
        0 => Duration::from_millis(random.up_to(3_000)),
        _ => Duration::ZERO,
    };
    TalkPlan {
        at,
        what,
        leaves,
        pause,
        is_for_plain: false,
    }
}

fn get(number: u32, len: usize, is_largest: bool, random: &mut Random) -> Talk {
    let mut files = vec![(number, len)];
    if !is_largest {
        for more in 0..random.up_to(7) {
            let more = u32::try_from(more).unwrap_or(0);
            files.push((number + 1000 * (more + 1), size(random)));
        }
    }
    let how = random.one_of(&[
        Asking::Kept,
        Asking::Apart,
        Asking::Pipelined,
        Asking::HalfClosed,
    ]);
    Talk::Get { files, how }
}

/// From one byte to a megabyte, each order of magnitude about as often, the last one less.
pub(super) fn size(random: &mut Random) -> usize {
    let most = random.one_of(&[1, 100, 1_460, 10_000, 10_000, 100_000, 100_000, 1_000_000]);
    usize::try_from(1 + random.up_to(most - 1)).unwrap_or(1)
}

pub(super) fn part_of(talk: &Talk, random: &mut Random) -> usize {
    let most = talk.bytes() as u64;
    usize::try_from(random.up_to(most)).unwrap_or(0)
}
