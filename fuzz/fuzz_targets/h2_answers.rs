//! Connections of HTTP/2, on a client's side: `cargo +nightly fuzz run h2_answers`.
#![no_main]

#[path = "../properties/h2_answers.rs"]
mod h2_answers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| h2_answers::check(input));
