//! Heads of CGI responses: `cargo +nightly fuzz run cgi_head`.
#![no_main]

#[path = "../properties/cgi_head.rs"]
mod cgi_head;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| cgi_head::check(input));
