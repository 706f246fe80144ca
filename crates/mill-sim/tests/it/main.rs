//! Servers written over any engine, run in the simulated world; and what every engine must do.

/// What every engine must do.
mod engine {
    mill_conformance::conformance!(crate::testbed::Sim);
}

/// A world as a testbed.
mod testbed;

/// Directories of a world's files.
mod directory;

/// The servers that the tests run, and the worker they run on.
mod server;

/// Reading and writing: splits, stalls, FIN and RST.
mod streams;

/// Accepting, refusing, running out, closing.
mod listeners;

/// Deadlines in virtual time.
mod deadlines;

/// What a server sees of files that the test changes.
mod files;

/// Streams that carry files.
mod file_payloads;

/// Tasks that connect, and worlds with two workers.
mod connecting;

/// Tasks that no connection brought: workers that connect and never listen.
mod spawning;

/// What the world lets a test do: time, options, the ladder.
mod world;

/// Frames on wires that mistreat them.
mod packets;

/// Hundreds of random worlds.
mod soak;

use testbed::sim_files;
