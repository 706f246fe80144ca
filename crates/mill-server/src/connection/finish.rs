//! Ending a connection so that the peer gets everything it was sent.
//!
//! A close with unread input sends RST, which may overtake the answer; so FIN is sent first, and what still comes
//! is read and forgotten for a while (RFC 9112 9.6, nginx's `lingering_close`).

use super::Connection;
use crate::exchange::drain::drain;
use crate::site::Site;
use mill_config::config::Settings;
use mill_config::config::settings::LingeringClose;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;

/// Sends what is queued, then FIN, then listens until the peer has finished or the time is up.
pub(super) async fn finish<E: Engine>(connection: Connection<E>) {
    let (stream, local) = (&connection.stream, &connection.local);
    let site = connection.listener.site();
    let Some(settings) = settings(&site, &connection) else {
        return;
    };
    if drain(stream, local, settings, 0).await.is_err() {
        return;
    }
    let unread = stream.read(|bytes| (bytes.len(), bytes.len()));
    let lingers = match settings.lingering_close {
        LingeringClose::Off => false,
        LingeringClose::On => unread > 0 || connection.expects_more,
        LingeringClose::Always => true,
    };
    if lingers {
        linger(&connection, settings).await;
    }
}

/// Waits until the client has taken what it was sent, and keeps the connection then.
pub(super) async fn wait_until_taken<E: Engine>(
    mut connection: Connection<E>,
) -> Option<Connection<E>> {
    let site = connection.listener.site();
    let settings = settings(&site, &connection)?;
    drain(&connection.stream, &connection.local, settings, 0)
        .await
        .ok()?;
    connection.deadline = connection.local.scheduler.now() + settings.keepalive_timeout;
    Some(connection)
}

async fn linger<E: Engine>(connection: &Connection<E>, settings: &Settings) {
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

/// The settings of the listener's default server: a connection that ends has no request to go by.
fn settings<'s, E: Engine>(site: &'s Site, connection: &Connection<E>) -> Option<&'s Settings> {
    let http = site.config.http.as_ref()?;
    let listener = http.listeners.get(connection.listener.listener())?;
    Some(&listener.hosts_for(None).default.location.settings)
}
