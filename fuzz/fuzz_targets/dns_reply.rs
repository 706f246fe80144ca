//! Replies of DNS servers: `cargo +nightly fuzz run dns_reply`.
#![no_main]

#[path = "../properties/dns_reply.rs"]
mod dns_reply;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| dns_reply::check(input));
