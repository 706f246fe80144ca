//! Command lines of other tools, byte for byte in form: arguments in, a plan and the tool's own report out.

/// ApacheBench 2.3.
pub mod ab;
/// h2load of nghttp2 1.52.
pub mod h2load;
/// wrk 4.1 and 4.2, with the extensions of sephe's branch.
pub mod wrk;
/// wrk2: wrk at a constant rate.
pub mod wrk2;
