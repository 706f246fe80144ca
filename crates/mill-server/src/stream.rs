//! `stream`: a connection that is passed on as it is, whatever it carries.
//!
//! The way of a session, top to bottom: `connection` (accepted, header of the PROXY protocol) → `serve` (one line a phase)
//! → `secured` (handshake of TLS) → `preread` (the ClientHello, looked at) → `target` (which group of servers) →
//! `passing` (a server that can be reached) → `relay` (bytes both ways) → `log::session`.

/// What is known of a session.
pub(crate) mod session;

/// `limit_conn`.
mod limit;

/// TLS with the client.
mod secured;

/// The first bytes, looked at and left where they are.
mod preread;

/// Which group of servers.
mod target;

/// Trying servers until one can be reached.
mod passing;

/// Connecting to one of them.
mod connecting;

/// Bytes both ways.
mod relay;

use crate::connection::Connection;
use crate::connection::cycle::Stage;
use crate::connection::proxy_header::Unread;
use crate::local::Local;
use crate::log;
use crate::request::arrival::ip;
use crate::variables::session as variables;
use mill_config::config::access::is_allowed;
use mill_config::config::{LogLevel, StreamHandler, Template};
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use session::Session;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// How a session ended, in the numbers of HTTP, as nginx counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionStatus(pub(crate) u16);

impl SessionStatus {
    pub(crate) const OK: Self = Self(200);
    pub(crate) const BAD_REQUEST: Self = Self(400);
    pub(crate) const FORBIDDEN: Self = Self(403);
    pub(crate) const INTERNAL: Self = Self(500);
    pub(crate) const BAD_GATEWAY: Self = Self(502);
    pub(crate) const UNAVAILABLE: Self = Self(503);
}

/// The rest of a connection's life as a session.
pub(crate) async fn serve<E: Engine>(mut connection: Connection<E>) {
    let local = Rc::clone(&connection.local);
    // It waits for no request, and makes no room.
    let mut stage = Stage::reading(&local);
    stage.write();
    let Some(mut session) = Session::of(&mut connection) else {
        return;
    };
    local.counters.borrow_mut().sessions += 1;
    let status = match lead(&mut session, &mut connection, &local).await {
        Ok(status) | Err(status) => status,
    };
    session.end(status, &local);
    log::session::write(&mut session, &local);
}

/// A session that ends before it begins: without its header of the PROXY protocol.
pub(crate) fn refuse<E: Engine>(connection: &mut Connection<E>, unread: Unread) {
    let local = Rc::clone(&connection.local);
    if let Some(mut session) = Session::of(connection) {
        local.counters.borrow_mut().sessions += 1;
        let status = match unread {
            Unread::Missing => SessionStatus::OK,
            Unread::Broken => SessionStatus::BAD_REQUEST,
        };
        session.end(status, &local);
        log::session::write(&mut session, &local);
    }
}

/// The phases; an error is the status of one that ends the session early.
async fn lead<E: Engine>(
    session: &mut Session,
    connection: &mut Connection<E>,
    local: &Rc<Local<E>>,
) -> Result<SessionStatus, SessionStatus> {
    let _counted = limit::enter(session, local)?;
    admit(session, local)?;
    secured::handshake(session, connection, local).await?;
    let near = connection.stream();
    preread::look(session, near, local).await?;
    variables::assign(session, local);
    let server = Arc::clone(&session.server);
    match &server.handler {
        StreamHandler::Return(text) => Ok(answer(text, session, near, local).await),
        StreamHandler::Pass(target) => passing::pass(target, session, near, local).await,
    }
}

/// `allow` and `deny`.
fn admit<E: Engine>(session: &Session, local: &Local<E>) -> Result<(), SessionStatus> {
    let rules = &session.server.settings.access.rules;
    if is_allowed(rules, ip(session.client())) {
        return Ok(());
    }
    local.counters.borrow_mut().refused_access += 1;
    let line = format_args!("access forbidden by rule while initializing session");
    session.log_error(LogLevel::Error, line, local);
    Err(SessionStatus::FORBIDDEN)
}

/// `return`. A client that takes nothing is given up after `proxy_timeout`: its connection holds a place.
async fn answer<E: Engine>(
    text: &Template,
    session: &mut Session,
    near: &impl Stream,
    local: &Local<E>,
) -> SessionStatus {
    let text = variables::evaluate(text, session, local);
    near.write(Payload::Copy(&text));
    let deadline = local.scheduler.now() + session.server.settings.stream.timeout;
    let taken = poll_fn(|_| match near.poll_drained(0) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => local.scheduler.poll_deadline(deadline).map(|_| ()),
    });
    taken.await;
    near.shutdown();
    session.sent = text.len() as u64 - near.queued().min(text.len() as u64);
    SessionStatus::OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sim::engine::SimEngine;

    const fn future_bytes<F: Future>(_: fn(Connection<SimEngine>) -> F) -> usize {
        size_of::<F>()
    }

    /// What a session holds besides its task, two slots of the engine, and what it knows for its log line.
    #[test]
    fn a_session_is_at_most_1280_bytes() {
        let bytes = future_bytes(serve::<SimEngine>);
        assert!(bytes <= 1280, "{bytes}");
    }
}
