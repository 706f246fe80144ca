//! Whole servers and clients over our own stack in simulated networks.

mod bare;
mod cached;
mod matrix;
mod proxied;
mod seeds;
