//! Closing a connection so that the peer receives everything that was sent.
//!
//! A close with unread input sends RST, which may overtake the answer; so FIN is sent first, and further input is read
//! and discarded for a while (RFC 9112 9.6, nginx's `lingering_close`).

use super::Connection;
use crate::exchange::drain::drain;
use mill_config::config::Location;
use mill_config::config::settings::{ConnectionSettings, LingeringClose};
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use std::sync::Arc;

/// How a connection closes.
pub(super) struct Ending {
    /// Of the last request: its settings limit how long closing may take.
    pub(super) location: Arc<Location>,
    /// That request's content was not read to its end: the peer may still be sending.
    pub(super) expects_more: bool,
}

/// Closes the connection after its last hot answer.
pub(super) async fn finish_behind_last<E: Engine>(mut connection: Connection<E>) {
    let Some(answer) = connection.last.take() else {
        return;
    };
    let ending = Ending {
        location: Arc::clone(&answer.location),
        // A request with a hot answer has no content.
        expects_more: false,
    };
    drop(answer);
    finish(connection, ending).await;
}

/// Sends the queue, then FIN, then reads until the peer has sent FIN or the time is up.
pub(super) async fn finish<E: Engine>(connection: Connection<E>, ending: Ending) {
    let (stream, local) = (&connection.stream, &connection.local);
    let settings = &ending.location.connection;
    if drain(stream, local, settings, 0, || ()).await.is_err() {
        return;
    }
    let unread = stream.read(|bytes| (bytes.len(), bytes.len()));
    let lingers = match settings.lingering_close {
        LingeringClose::Off => false,
        LingeringClose::On => unread > 0 || ending.expects_more || stream.is_early(),
        LingeringClose::Always => true,
    };
    if lingers {
        linger(&connection, settings).await;
    }
}

/// Waits until the client has taken the last hot answer, and keeps the connection open.
pub(super) async fn wait_until_taken<E: Engine>(
    mut connection: Connection<E>,
) -> Option<Connection<E>> {
    let answer = connection.last.take()?;
    let settings = &answer.location.connection;
    drain(&connection.stream, &connection.local, settings, 0, || ())
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
