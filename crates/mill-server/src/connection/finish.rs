//! Ending a connection so that the peer gets everything it was sent.
//!
//! A close with unread input sends RST, which may overtake the answer; so FIN is sent first, and what still comes
//! is read and forgotten for a while (RFC 9112 9.6, nginx's `lingering_close`).

use super::Connection;
use crate::exchange::drain::drain;
use mill_config::config::Location;
use mill_config::config::settings::{ConnectionSettings, LingeringClose};
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use std::sync::Arc;

/// What a connection ends behind.
pub(super) struct Ending {
    /// Of the last request: its settings say how long the end may take.
    pub(super) location: Arc<Location>,
    /// Content of that request was not read to its end: the peer may still be sending.
    pub(super) expects_more: bool,
}

/// Ends the connection behind its last hot answer.
pub(super) async fn finish_behind_last<E: Engine>(mut connection: Connection<E>) {
    let Some(answer) = connection.last.take() else {
        return;
    };
    let ending = Ending {
        location: Arc::clone(&answer.location),
        // A request that a hot answer is for has no content.
        expects_more: false,
    };
    drop(answer);
    finish(connection, ending).await;
}

/// Sends what is queued, then FIN, then listens until the peer has finished or the time is up.
pub(super) async fn finish<E: Engine>(connection: Connection<E>, ending: Ending) {
    let (stream, local) = (&connection.stream, &connection.local);
    let settings = &ending.location.connection;
    if drain(stream, local, settings, 0).await.is_err() {
        return;
    }
    let unread = stream.read(|bytes| (bytes.len(), bytes.len()));
    let lingers = match settings.lingering_close {
        LingeringClose::Off => false,
        LingeringClose::On => unread > 0 || ending.expects_more,
        LingeringClose::Always => true,
    };
    if lingers {
        linger(&connection, settings).await;
    }
}

/// Waits until the client has taken the last hot answer, and keeps the connection then.
pub(super) async fn wait_until_taken<E: Engine>(
    mut connection: Connection<E>,
) -> Option<Connection<E>> {
    let answer = connection.last.take()?;
    let settings = &answer.location.connection;
    drain(&connection.stream, &connection.local, settings, 0)
        .await
        .ok()?;
    connection.begin_idle(settings.keepalive_timeout);
    Some(connection)
}

async fn linger<E: Engine>(connection: &Connection<E>, settings: &ConnectionSettings) {
    let (stream, scheduler) = (&connection.stream, &connection.local.scheduler);
    stream.shutdown();
    let end = scheduler.now() + settings.lingering_time;
    loop {
        let deadline = end.min(scheduler.now() + settings.lingering_timeout);
        match scheduler.until(deadline, stream.readable(1)).await {
            Ok(Ok(readable)) if readable.unread > 0 => stream.read(|bytes| (bytes.len(), ())),
            _ => return,
        }
    }
}
