//! What a zone of a million objects costs: nanoseconds of a look-up and a fill, bytes beside the content, and purges.
//! `cargo run -p mill-cache --release --example cost`
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mill_cache::{Arrival, Claim, Limits, PurgeMode, Seed, Zone};

const OBJECTS: u64 = 1_000_000;
const CONTENT_BYTES: usize = 1000;
const TAGGED: u64 = 100_000;
const NOW: Duration = Duration::from_secs(1);

fn main() {
    let limits = Limits {
        bytes: 4 << 30,
        keys: 2 * OBJECTS,
        ..Limits::default()
    };
    let zone = Zone::<()>::new(limits, Seed([1, 2]));
    let before = resident_bytes();
    let begun = Instant::now();
    for number in 0..OBJECTS {
        store(&zone, number);
    }
    each("a fill of 1 kB", begun, OBJECTS);
    let beside = |all: u64| all / OBJECTS - CONTENT_BYTES as u64;
    println!(
        "beside each content of 1 kB: {} bytes by the zone's own sum, {} of resident memory",
        beside(zone.figures().bytes),
        beside(resident_bytes() - before)
    );
    let begun = Instant::now();
    let found = (0..OBJECTS).filter(|number| {
        // One after the other would be found in the order in which they lie in memory.
        let bytes = key(number * 7919 % OBJECTS);
        zone.key(&bytes)
            .is_ok_and(|key| zone.look_up(key, NOW, |()| true).is_some())
    });
    assert_eq!(found.count() as u64, OBJECTS);
    each("a look-up among a million", begun, OBJECTS);
    let begun = Instant::now();
    for _ in 0..OBJECTS {
        let bytes = key(7);
        assert!(
            zone.key(&bytes)
                .is_ok_and(|key| zone.look_up(key, NOW, |()| true).is_some())
        );
    }
    each("a look-up of the same", begun, OBJECTS);
    let begun = Instant::now();
    let purged = zone.purge_tag(b"tagged", PurgeMode::Remove);
    println!(
        "a purge of {purged} by tag: {:?}, and they are found no more",
        begun.elapsed()
    );
    let (begun, mut longest, mut calls) = (Instant::now(), Duration::ZERO, 0);
    while zone.figures().objects > OBJECTS - TAGGED {
        let slice = Instant::now();
        zone.expire(NOW, 2048);
        longest = longest.max(slice.elapsed());
        calls += 1;
    }
    println!(
        "their removal by the sweep: {:?} in {calls} calls, the longest {longest:?}",
        begun.elapsed()
    );
}

fn key(number: u64) -> [u8; 32] {
    let mut key = *b"http://example.org/a/long/path/.";
    key[24..].copy_from_slice(&number.to_le_bytes());
    key
}

fn store(zone: &Arc<Zone<()>>, number: u64) {
    let bytes = key(number);
    let Ok(key) = zone.key(&bytes) else { return };
    let Claim::Fill(ticket) = zone.claim(key, NOW) else {
        return;
    };
    let tags: &[&[u8]] = if number < TAGGED { &[b"tagged"] } else { &[] };
    let arrival = Arrival {
        meta: (),
        tags,
        length: Some(CONTENT_BYTES as u64),
        length_max: u64::MAX,
        now: NOW,
    };
    let (mut fill, _) = ticket.start(arrival, |()| true);
    fill.append(&[1; CONTENT_BYTES]);
    let stored = fill.finish();
    debug_assert!(stored.is_ok());
}

fn each(what: &str, begun: Instant, times: u64) {
    let ns = begun.elapsed().as_nanos() / u128::from(times);
    println!("{what}: {ns} ns");
}

/// Of this process, from /proc/self/statm: pages of 4096 bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
