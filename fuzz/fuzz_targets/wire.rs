//! Packet formats: `cargo +nightly fuzz run wire`.
#![no_main]

#[path = "../properties/wire.rs"]
mod wire;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| wire::check(input));
