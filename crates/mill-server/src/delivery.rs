//! What follows when a request has its answer: the answer is sent, counted, logged, and kept for those that ask the same.

/// Compressed contents that are made at once, and kept.
pub mod compressed;

/// Keeping an answer for those that ask the same again.
mod keep;

/// Counts and log lines of what became of an answer.
pub(crate) mod account;

use crate::exchange::{Exchange, SendError};
use crate::local::{Local, OutcomeOf, ResponseOf};
use crate::log;
use crate::request::{Outcome, Request};
use keep::Kept;
use mill_http::status::Status;
use mill_runtime::stream::StreamError;

/// Sends the answer and sees to the rest of the request's content; then the request is logged, and its answer kept if
/// that may be.
pub(crate) async fn deliver<X: Exchange>(
    outcome: OutcomeOf<X::Engine>,
    exchange: &mut X,
    mut request: Request,
    local: &Local<X::Engine>,
) {
    let kept = match outcome {
        Outcome::Respond(response) => send(response, exchange, &mut request, local).await,
        Outcome::Close => {
            request.sent.status = Status::CLOSE.0;
            None
        }
    };
    log::access::write(&mut request, local);
    if let Some(kept) = kept {
        kept.insert(request, local);
    }
}

/// Returns the answer as it is to be kept.
async fn send<X: Exchange>(
    mut response: ResponseOf<X::Engine>,
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
        if error == SendError::Lost(StreamError::Truncated) {
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
