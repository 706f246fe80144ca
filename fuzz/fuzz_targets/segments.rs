//! Segments into a live stack: `cargo +nightly fuzz run segments`.
#![no_main]

#[path = "../properties/segments.rs"]
mod segments;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    segments::check(input);
});
