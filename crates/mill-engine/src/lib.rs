//! Kernel sockets.
#![forbid(unsafe_code)]
