//! Rings that a peer writes what it likes into: `cargo +nightly fuzz run memif_rings`.
#![no_main]

#[path = "../properties/memif_rings.rs"]
mod property;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    property::check(input);
});
