//! The configuration language.
#![forbid(unsafe_code)]
