//! Scripts of segments into a live stack: those of the fuzz target's corpus, and some from seeds.

#[path = "../../../fuzz/properties/replay.rs"]
mod replay;
#[path = "../../../fuzz/properties/segments.rs"]
mod segments;

use mill_tcp::random::Random;
use replay::replay;

/// Scripts from seeds that every run of the tests looks at.
const SEEDS: u64 = 1000;

#[test]
fn scripts_of_the_corpus_leave_the_stack_whole() {
    let (mut read_bytes, mut sent_bytes) = (0, 0);
    replay("segments", |input| {
        let outcome = segments::check(input);
        read_bytes += outcome.read_bytes;
        sent_bytes += outcome.sent_bytes;
    });
    assert!(
        read_bytes > 1000 && sent_bytes > 1000,
        "too few bytes were exchanged"
    );
}

#[test]
fn scripts_from_seeds_leave_the_stack_whole() {
    let mut connections = 0;
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        connections += segments::check(&script(seed)).connections;
    }
    assert!(connections > 100, "only {connections} connections");
}

/// Acts drawn so that connections come about, and trouble too.
fn script(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let len = 20 + random.below(3000);
    let mut bytes = vec![random.next().to_le_bytes()[0]];
    // A handshake first, in half of the scripts.
    if seed.is_multiple_of(2) {
        bytes.extend([0, 0, 1, 2, 3, 4, 0, 0x20, 0, 5, 0xb4, 2, 0, 0, 11, 0]);
    }
    bytes.extend((0..len).map(|_| random.next().to_le_bytes()[3]));
    bytes
}
