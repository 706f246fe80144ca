//! Which of what was sent is lost, and how fast to send meanwhile: RACK (RFC 8985 6), tail loss probes (7), proportional
//! rate reduction (RFC 6937), undo.

/// State of loss detection and recovery.
#[derive(Debug, Default)]
pub struct Recovery {}
