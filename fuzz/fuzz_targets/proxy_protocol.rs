//! Headers of the PROXY protocol: `cargo +nightly fuzz run proxy_protocol`.
#![no_main]

#[path = "../properties/proxy_protocol.rs"]
mod proxy_protocol;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| proxy_protocol::check(input));
