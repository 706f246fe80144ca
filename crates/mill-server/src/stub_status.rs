//! `stub_status`: the server's counters, as nginx shows them.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::Response;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// Answers GET and HEAD with the sum of all workers' counters.
pub async fn respond<E: Engine>(request: &mut Request, local: &Local<E>) -> Answer<FileOf<E>> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Answer::method_not_allowed(local);
    }
    request.pure = false;
    let text = local.all_counters().render_stub_status();
    Answer::Response(Box::new(Response::with_bytes(
        Status::OK,
        b"text/plain",
        text.into_bytes(),
    )))
}
