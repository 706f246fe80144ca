//! The master and the worker process: started, told, reloaded, upgraded and ended as people know it from nginx.
#![forbid(unsafe_code)]

/// What the master decides.
pub mod master;
