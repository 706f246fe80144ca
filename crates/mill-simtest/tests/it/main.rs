//! Whole servers and clients over our own stack in simulated networks.

/// Worlds of five hundred seeds, and of fifty new ones.
mod seeds;

/// Two hosts on a cable.
mod bare;

/// Throughput by loss, delay and buffer.
mod matrix;
