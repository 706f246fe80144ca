//! `limit_conn`: how many requests of a key are under way. Behind `limit_req`, as in nginx: one that waits does not count.

use super::limit_req::LimitedRequest;
use crate::answer::Answer;
use crate::limits::connections;
use crate::limits::status::ConnectionStatus;
use crate::local::{FileOf, Local};
use crate::request::{Phase, Request};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Counts the request by all limits of its location until it is over; or refuses it.
pub(super) fn check<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    let settings = &request.location.limit_conn;
    let known = request.limited.as_ref();
    if settings.limits.is_empty() || known.is_some_and(|note| note.connections.is_some()) {
        return ControlFlow::Continue(());
    }
    let (settings, site) = (Arc::clone(settings), Arc::clone(&request.site));
    let zones = &site.limits.connections;
    // A hot answer is gone before another request could be counted beside it, but not from the transport.
    request.pure = false;
    let mut subject = LimitedRequest { request, local };
    let entered = connections::enter(&mut subject, &settings, zones, "", local);
    let Some(status) = entered.status else {
        return ControlFlow::Continue(());
    };
    let note = request.limited.get_or_insert_default();
    note.connections = Some(status);
    note.counted = entered.counted;
    if status == ConnectionStatus::Rejected {
        local.counters.borrow_mut().limit_conn_rejected += 1;
        return ControlFlow::Break(Answer::Status(Status(settings.status)));
    }
    ControlFlow::Continue(())
}
