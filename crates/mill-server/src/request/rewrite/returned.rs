//! The answer of `return`.

use crate::answer::Answer;
use crate::content::Content;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{FieldText, Response};
use crate::variables;
use mill_config::config::{MimeTypes, Template};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// A status below 400 or a text is the answer, with the type of the path's extension; a redirect's text is its target.
/// Any other status gets its page.
pub(super) fn answer<E: Engine>(
    status: u16,
    text: Option<&Template>,
    request: &mut Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    let status = Status(status);
    let has_text = text.is_some_and(|text| !text.is_empty());
    if status.0 >= 400 && !has_text {
        return Answer::Status(status);
    }
    // `$status` in the text is this one.
    request.sent.status = status.0;
    let text = text.map_or_else(Vec::new, |text| variables::evaluate(text, request, local));
    if matches!(status.0, 301 | 302 | 303 | 307 | 308) {
        request.redirect_target = Some(text.into());
        return Answer::Status(status);
    }
    let location = Arc::clone(&request.location);
    let extension = MimeTypes::extension(&request.uri);
    let kind = location
        .mime
        .types
        .find(extension)
        .unwrap_or(&location.mime.default_type);
    let mut response = Response::empty(status);
    response.content_type = (!kind.is_empty()).then(|| FieldText::copy(kind));
    response.content = Content::bytes(text);
    Answer::Response(Box::new(response))
}
