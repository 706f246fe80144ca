//! Request heads: `cargo +nightly fuzz run request_head`.
#![no_main]

#[path = "../properties/request_head.rs"]
mod request_head;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| request_head::check(input));
