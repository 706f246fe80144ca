//! `add_trailer`: fields after the content, evaluated when the rest of the answer is known.

use super::is_safe;
use crate::local::Local;
use crate::request::Request;
use crate::response::{FieldLine, Response};
use crate::variables;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// Adds the trailers whose values are not empty. If there may be any, the content is sent in chunks.
pub(super) fn apply<E: Engine, File>(
    request: &mut Request,
    response: &mut Response<File>,
    local: &Local<E>,
) {
    if request.method == Method::Head || response.content.is_absent() {
        return;
    }
    let is_safe = is_safe(response.status);
    let settings = Arc::clone(&request.location.headers);
    if settings.trailers.is_empty() {
        return;
    }
    // Their variables see the answer after ranges and compression; with trailers no length is sent.
    request.sent.announce(response);
    let is_length = |line: &FieldLine| &*line.name == b"Content-Length";
    request.sent.fields.retain(|line| !is_length(line));
    for trailer in settings
        .trailers
        .iter()
        .filter(|trailer| is_safe || trailer.always)
    {
        let value = variables::evaluate(&trailer.value, request, local);
        if !value.is_empty() {
            response.trailers.push(FieldLine {
                name: (&trailer.name).into(),
                value: value.into(),
            });
        }
    }
}
