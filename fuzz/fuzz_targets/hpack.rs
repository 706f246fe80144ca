//! Header blocks: `cargo +nightly fuzz run hpack`.
#![no_main]

#[path = "../properties/hpack.rs"]
mod hpack;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| hpack::check(input));
