//! Servers written over any engine, run in the simulated world; and what every engine must do.

/// What every engine must do.
mod engine {
    mill_conformance::conformance!(crate::testbed::Sim);
}

mod connecting;
mod deadlines;
mod directory;
mod file_payloads;
mod files;
mod listeners;
mod packets;
mod server;
mod soak;
mod spawning;
mod streams;
mod testbed;
mod world;

use testbed::sim_files;
