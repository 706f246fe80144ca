//! Whole servers and clients over our own stack in simulated networks.

mod bare;
mod cached;
mod long_fat;
mod matrix;
mod proxied;
mod seeds;
mod standard_paths;
