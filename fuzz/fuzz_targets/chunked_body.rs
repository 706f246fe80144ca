//! Chunked bodies: `cargo +nightly fuzz run chunked_body`.
#![no_main]

#[path = "../properties/chunked_body.rs"]
mod chunked_body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| chunked_body::check(input));
