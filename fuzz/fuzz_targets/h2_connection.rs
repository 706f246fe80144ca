//! Connections of HTTP/2: `cargo +nightly fuzz run h2_connection`.
#![no_main]

#[path = "../properties/h2_connection.rs"]
mod h2_connection;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| h2_connection::check(input));
