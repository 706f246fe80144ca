//! The last phase: the answer is sent, counted, logged, and kept for equal requests.

/// Contents that are compressed whole, and kept.
pub mod compressed;

/// Keeping an answer for equal requests.
mod keep;

/// Counters and log lines of answers.
pub(crate) mod account;

use crate::exchange::{Exchange, SendError};
use crate::frang::refusal;
use crate::local::{Local, OutcomeOf, ResponseOf};
use crate::log;
use crate::proxy;
use crate::request::{Outcome, Request, StoredContent};
use crate::temporary_file::TemporaryFileError;
use crate::zones;
use keep::Kept;
use mill_config::config::LogLevel;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::stream::StreamError;

/// Sends the answer and discards the rest of the request's content; then the request is logged, and its answer kept if
/// possible.
pub(crate) async fn deliver<X: Exchange>(
    outcome: OutcomeOf<X::Engine>,
    exchange: &mut X,
    mut request: Box<Request>,
    local: &Local<X::Engine>,
) {
    let kept = match outcome {
        Outcome::Respond(mut response) => {
            let status = response.status.on_the_wire().0;
            if refusal::count_answer(status, &mut request, local) {
                exchange.end_connection(false);
                response.close = true;
            }
            send(response, exchange, &mut request, local).await
        }
        Outcome::Close => {
            if request.sent.status == 0 {
                request.sent.status = Status::CLOSE.0;
                local.counters.borrow_mut().closed_unanswered += 1;
            }
            None
        }
    };
    // A tunnel is logged at its end.
    let Some(mut request) = exchange.keep_open(request) else {
        return;
    };
    proxy::trace::log_notes(&request, local);
    log::access::write(&mut request, local);
    zones::end(&mut request, local);
    remove_content(&request, local);
    if let Some(kept) = kept {
        kept.insert(request, local);
    } else {
        release(request, local);
    }
}

/// Keeps the memory of a request that is over.
pub(crate) fn release<E: Engine>(mut request: Box<Request>, local: &Local<E>) {
    local.put_message(std::mem::take(&mut request.message));
    local.put_trace(request.upstream.take());
    local.put_request(request);
}

/// `client_body_in_file_only clean`: the file goes when the request is over.
pub(crate) fn remove_content<E: Engine>(request: &Request, local: &Local<E>) {
    let Some(StoredContent::File {
        path,
        is_removed: true,
    }) = request.stored_content.as_deref()
    else {
        return;
    };
    if let Err(error) = local.engine.files().remove(path) {
        let path = path.clone();
        let error = TemporaryFileError { path, error };
        local.log_error(Some(request), LogLevel::Crit, format_args!("{error}"));
    }
}

/// Sends the answer, and returns it in the form in which it is kept.
async fn send<X: Exchange>(
    mut response: Box<ResponseOf<X::Engine>>,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Option<Kept> {
    compressed::put_in_memory(&mut response, request, local).await;
    let kept = keep::prepare(&mut response, request, local).await;
    let status = response.status;
    let sent = exchange.respond(request, response).await;
    account::count_answer(
        &mut local.counters.borrow_mut(),
        status.on_the_wire().0,
        request.sent.bytes,
    );
    if let Err(error) = sent {
        account::not_sent_whole(error, request, local);
        // The client must see that content is missing.
        if let SendError::Lost(StreamError::Truncated) | SendError::Unreadable(_) = error {
            exchange.abort();
        }
        return None;
    }
    request.sent.complete = true;
    if let Err(error) = exchange.discard_rest(request).await {
        account::rest_not_taken(error, request, local);
        return None;
    }
    kept
}
