//! Whole runs in a simulated world: generators, a server with known behaviour, virtual time.

/// Runs a command line of any tool.
mod command;
/// A recorder that keeps every sample.
mod keep;
/// A server whose behaviour the test defines.
mod server;
/// A platform that is a simulated world.
mod sim_platform;

/// ab from the command line to the report.
mod ab;
/// Closed loops: counts, times, ends.
mod closed_loop;
/// Requests per connection, openings, sources.
mod connections;
/// When runs end, and what counts then.
mod ends;
/// Servers that send garbage, never answer, answer slowly, with wrong lengths, or close early.
mod faults;
/// `millstream load` from the command line to its report.
mod native;
/// Open loops: arrivals, lateness, what was never started.
mod open_loop;
/// Servers that are down for a part of a run.
mod outages;
/// The responder: counts of both sides, delays, faults.
mod responder;
/// The memory of connections.
mod sizes;
/// wrk and wrk2 from the command line to the report.
mod wrk;
