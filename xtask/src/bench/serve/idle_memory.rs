//! Memory per idle connection: thousands of connections that made one request each and stay.

use super::case::Case;
use super::client::Client;
use super::server::{Programs, Server, Subject};
use crate::bench::accounting::memory;
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;

/// What a server's processes hold, without the kernel's memory for the sockets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IdleMemory {
    pub(super) pss_bytes_per_connection: f64,
    pub(super) private_bytes_per_connection: f64,
    /// With no connection, after one request.
    pub(super) pss_bytes_before: u64,
}

/// Enough that a page is a byte per connection, few enough for usual limits of open files.
pub(super) const CONNECTIONS: u32 = 4000;

pub(super) fn measure(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
) -> Result<IdleMemory> {
    let server = Server::start(lab, programs, subject, case, &[])?;
    let unreadable = || Failure("the server's smaps_rollup cannot be read".to_owned());
    let before = memory(&server.pids).ok_or_else(unreadable)?;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let opened = Client::connect(server.port, case).and_then(|mut client| {
            client.ask()?;
            Ok(client)
        });
        clients.push(opened.map_err(Failure::during("idle connections"))?);
    }
    let after = memory(&server.pids).ok_or_else(unreadable)?;
    drop(clients);
    server.stop()?;
    let each = |after: u64, before: u64| (after as f64 - before as f64) / f64::from(CONNECTIONS);
    Ok(IdleMemory {
        pss_bytes_per_connection: each(after.pss_bytes, before.pss_bytes),
        private_bytes_per_connection: each(after.private_bytes, before.private_bytes),
        pss_bytes_before: before.pss_bytes,
    })
}
