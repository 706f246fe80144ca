//! A deterministic world.
#![forbid(unsafe_code)]
