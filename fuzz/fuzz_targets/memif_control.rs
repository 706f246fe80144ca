//! What a peer says on memif's control channel: `cargo +nightly fuzz run memif_control`.
#![no_main]

#[path = "../properties/memif_control.rs"]
mod property;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    property::check(input);
});
