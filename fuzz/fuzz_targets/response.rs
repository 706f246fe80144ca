//! Responses: `cargo +nightly fuzz run response`.
#![no_main]

#[path = "../properties/response.rs"]
mod response;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| response::check(input));
