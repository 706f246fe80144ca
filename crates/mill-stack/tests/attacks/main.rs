//! Attacks on a host, and their effect: in memory, in virtual time.

mod raw_peer;
mod target;

mod acknowledgements;
mod blind;
mod blocked;
mod fast_open;
mod limits;
mod syn_flood;
mod tiny;
mod vanished;
