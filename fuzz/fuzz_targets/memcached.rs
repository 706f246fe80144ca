//! Answers of memcached: `cargo +nightly fuzz run memcached`.
#![no_main]

#[path = "../properties/memcached.rs"]
mod memcached;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| memcached::check(input));
