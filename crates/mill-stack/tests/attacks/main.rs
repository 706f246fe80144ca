//! What peers may try with a host, and what becomes of it: in memory, in virtual time.

mod raw_peer;
mod target;

mod acknowledgements;
mod blind;
mod fast_open;
mod limits;
mod syn_flood;
mod tiny;
mod vanished;
