//! Chooses the handler that answers.

use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::local::{Local, PhaseOf};
use crate::log::Text;
use crate::request::document::{document_path, has_document};
use crate::request::{Phase, Request};
use crate::{api, autoindex, index, metrics, proxy, static_file, stub_status};
use mill_config::config::LogLevel;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::ops::ControlFlow;

/// Calls the handlers in nginx's order, until one answers. Each declines requests of other kinds: `index` and
/// `autoindex` a path that does not end in a slash, the static handler one that does.
///
/// Only `proxy` and `api` read the request's content, and `proxy` answers in steps: they get the exchange.
pub(super) async fn respond<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> PhaseOf<X::Engine> {
    if request.location.stub_status {
        request.pure = false;
        answered(stub_status::respond(request, local).await)?;
    }
    if request.location.metrics {
        request.pure = false;
        answered(metrics::respond(request, local))?;
    }
    answered(api::respond(exchange, request, local).await)?;
    answered(proxy::respond(exchange, request, local).await)?;
    if !has_document(request, local) {
        return ControlFlow::Break(Answer::Status(Status::INTERNAL_SERVER_ERROR));
    }
    answered(index::respond(request, local).await)?;
    answered(autoindex::respond(request, local).await)?;
    answered(static_file::respond(request, local).await)?;
    ControlFlow::Break(Answer::Status(all_declined(request, local)))
}

/// The status when every handler declined.
fn all_declined<E: Engine>(request: &mut Request, local: &Local<E>) -> Status {
    if !request.uri.ends_with(b"/") {
        local.log_error(
            Some(request),
            LogLevel::Error,
            format_args!("no handler found"),
        );
        return Status::NOT_FOUND;
    }
    let directory = document_path(request, local).path;
    local.log_error(
        Some(request),
        LogLevel::Error,
        format_args!("directory index of \"{}\" is forbidden", Text(&directory)),
    );
    Status::FORBIDDEN
}

fn answered<File>(answer: Answer<File>) -> Phase<File> {
    match answer {
        Answer::Declined => ControlFlow::Continue(()),
        answer => ControlFlow::Break(answer),
    }
}
