//! Whole configurations: `cargo +nightly fuzz run config_load -- -dict=fuzz/config.dict`.
#![no_main]

#[path = "../properties/config_load.rs"]
mod config_load;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| config_load::check(input));
