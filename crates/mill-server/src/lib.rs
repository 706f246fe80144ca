//! The server.
#![forbid(unsafe_code)]
