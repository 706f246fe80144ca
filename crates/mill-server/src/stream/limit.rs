//! `limit_conn`: how many sessions there are of a key.

use super::SessionStatus;
use super::session::Session;
use crate::limits::Limited;
use crate::limits::connections::{self, Counted};
use crate::limits::status::ConnectionStatus;
use crate::local::Local;
use crate::variables::session as variables;
use mill_config::config::{LogLevel, Template};
use mill_runtime::engine::Engine;
use std::fmt;
use std::sync::Arc;

/// Counts the session by all limits of its server, until the result is dropped; or ends it.
pub(super) fn enter<E: Engine>(
    session: &mut Session,
    local: &Local<E>,
) -> Result<Vec<Counted>, SessionStatus> {
    let (server, site) = (Arc::clone(&session.server), Arc::clone(&session.site));
    let settings = &server.settings.limit_conn;
    if settings.limits.is_empty() {
        return Ok(Vec::new());
    }
    let during = " while initializing session";
    let zones = &site.limits.sessions;
    let mut subject = LimitedSession { session, local };
    let entered = connections::enter(&mut subject, settings, zones, during, local);
    session.limit_status = entered.status;
    if entered.status == Some(ConnectionStatus::Rejected) {
        local.counters.borrow_mut().limit_conn_rejected += 1;
        return Err(SessionStatus::UNAVAILABLE);
    }
    Ok(entered.counted)
}

struct LimitedSession<'s, E: Engine> {
    session: &'s mut Session,
    local: &'s Local<E>,
}

impl<E: Engine> Limited for LimitedSession<'_, E> {
    fn evaluate(&mut self, key: &Template) -> Vec<u8> {
        variables::evaluate(key, self.session, self.local)
    }

    fn log(&self, level: LogLevel, line: fmt::Arguments<'_>) {
        self.session.log_error(level, line, self.local);
    }
}
