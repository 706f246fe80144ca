//! `millstream load`: our own command line and everything behind it.
