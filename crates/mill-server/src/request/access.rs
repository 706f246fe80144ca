//! `allow`, `deny`, `satisfy`.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::request::arrival::ip;
use crate::request::{Phase, Request};
use mill_config::config::LogLevel;
use mill_config::config::access::is_allowed;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::ops::ControlFlow;

/// Admits a client or answers 403. `satisfy all` and `satisfy any` do not differ, since there is only one kind of check
/// yet.
pub(super) fn check<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    if request.location.access.rules.is_empty() {
        return ControlFlow::Continue(());
    }
    request.pure = false;
    if is_allowed(&request.location.access.rules, ip(request.client())) {
        return ControlFlow::Continue(());
    }
    local.counters.borrow_mut().refused_access += 1;
    local.log_error(
        Some(request),
        LogLevel::Error,
        format_args!("access forbidden by rule"),
    );
    ControlFlow::Break(Answer::Status(Status::FORBIDDEN))
}
