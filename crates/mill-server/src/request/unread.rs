//! Content that no handler has read: discarded, if its framing is valid.

use super::{Outcome, Request, refusal};
use crate::delivery::account;
use crate::exchange::Exchange;
use crate::local::{Local, OutcomeOf};
use mill_http::status::Status;

/// Discards the content that has arrived before the answer is sent. Broken framing turns the answer into a refusal: the
/// start of the next request is unknown then.
pub(super) async fn pass_over<X: Exchange>(
    outcome: OutcomeOf<X::Engine>,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> OutcomeOf<X::Engine> {
    let closes = match &outcome {
        Outcome::Respond(response) => response.close,
        Outcome::Close => true,
    };
    if exchange.discard_present(request, closes).is_ok() {
        return outcome;
    }
    account::malformed_content(request, local);
    refusal(exchange, request, Status::BAD_REQUEST, local).await
}
