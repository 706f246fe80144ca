//! Words and blocks of nginx's language: `cargo +nightly fuzz run config_lexer`.
#![no_main]

#[path = "../properties/config_lexer.rs"]
mod config_lexer;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| config_lexer::check(input));
