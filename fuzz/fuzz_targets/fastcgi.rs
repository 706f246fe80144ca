//! Answers of FastCGI servers: `cargo +nightly fuzz run fastcgi`.
#![no_main]

#[path = "../properties/fastcgi.rs"]
mod fastcgi;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fastcgi::check(input));
