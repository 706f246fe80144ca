//! Fields that caches read: `cargo +nightly fuzz run cache_fields`.
#![no_main]

#[path = "../properties/cache_fields.rs"]
mod cache_fields;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| cache_fields::check(input));
