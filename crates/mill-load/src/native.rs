//! `millstream load`: our own command line and everything behind it.

/// What a run has shown, in one word.
pub mod verdict;
