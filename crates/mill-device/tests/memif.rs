//! Peers that send and write anything: the fuzz targets' corpora, and inputs from seeds.

#[path = "../../../fuzz/properties/memif_control.rs"]
mod control;
#[path = "../../../fuzz/properties/replay.rs"]
mod replay;
#[path = "../../../fuzz/properties/memif_rings.rs"]
mod rings;

use mill_tcp::random::Random;
use replay::replay;

/// Inputs from seeds of every test run.
const SEEDS: u64 = 3000;

#[test]
fn rings_of_the_corpus_are_survived() {
    let (mut taken, mut put) = (0, 0);
    replay("memif_rings", |input| {
        let outcome = rings::check(input);
        taken += outcome.taken;
        put += outcome.put;
    });
    assert!(taken > 10 && put > 10, "{taken} frames taken, {put} put");
}

#[test]
fn rings_that_a_peer_writes_anything_into_are_survived() {
    let (mut taken, mut refused, mut put, mut broken) = (0, 0, 0, 0);
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let outcome = rings::check(&bytes(&mut random, 2000));
        taken += outcome.taken;
        refused += outcome.refused;
        put += outcome.put;
        broken += u32::from(outcome.broken);
    }
    let found = format!("{taken} taken, {refused} refused, {put} put, {broken} broken");
    assert!(
        taken > 100 && refused > 100 && put > 100 && broken > 100,
        "{found}"
    );
}

#[test]
fn conversations_of_the_corpus_are_survived() {
    let (mut up, mut mapped, mut refused) = (0, 0, 0);
    replay("memif_control", |input| {
        let outcome = control::check(input);
        up += u32::from(outcome.up);
        mapped += u32::from(outcome.mapped);
        refused += u32::from(outcome.refused);
    });
    assert!(
        up > mapped && mapped > 0 && refused > 1,
        "{up} {mapped} {refused}"
    );
}

/// A valid conversation with some of its bytes changed.
#[test]
fn conversations_with_errors_are_survived() {
    let mut good = Vec::new();
    replay("memif_control", |input| good.push(input.to_vec()));
    let (mut up, mut refused) = (0, 0);
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let which = usize::try_from(random.below(good.len() as u64)).unwrap();
        let mut input = good[which].clone();
        for _ in 0..random.below(4) {
            let at = usize::try_from(random.below(input.len() as u64)).unwrap();
            input[at] = random.next().to_le_bytes()[3];
        }
        let outcome = control::check(&input);
        up += u32::from(outcome.up);
        refused += u32::from(outcome.refused);
    }
    assert!(up > 100 && refused > 100, "{up} up, {refused} refused");
}

fn bytes(random: &mut Random, len_max: u64) -> Vec<u8> {
    let len = 20 + random.below(len_max);
    (0..len).map(|_| random.next().to_le_bytes()[3]).collect()
}
