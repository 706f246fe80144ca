//! The result of a phase or a handler.

use crate::delivery::account;
use crate::exchange::ContentError;
use crate::frang::refusal;
use crate::local::Local;
use crate::request::Request;
use crate::response::Response;
use mill_config::config::frang::FrangAction;
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// How a request goes on.
#[derive(Debug)]
pub enum Answer<File> {
    /// Not handled: the next handler or phase gets the request.
    Declined,
    /// This answer; the filters still see it.
    Response(Box<Response<File>>),
    /// This status with its built-in page, unless an `error_page` answers for it.
    Status(Status),
    /// The same request for another path, looked up anew.
    Redirect { uri: Vec<u8>, args: Vec<u8> },
    /// The same request in a named location (the name with its `@`).
    Named(Vec<u8>),
    /// No answer: the connection is closed (444).
    Close,
}

impl<File> Answer<File> {
    /// 405, counted: the handler does not answer the request's method.
    pub(crate) fn method_not_allowed<E: Engine>(local: &Local<E>) -> Self {
        local.counters.borrow_mut().refused_method += 1;
        Self::Status(Status::METHOD_NOT_ALLOWED)
    }

    /// The answer of a handler whose request content does not arrive, or is malformed. Counts and logs the reason; the
    /// connection closes after the answer, since the start of the next request is not known.
    pub fn without_content<E: Engine>(
        error: ContentError,
        request: &mut Request,
        local: &Local<E>,
    ) -> Self {
        Self::without_content_while("", error, request, local)
    }

    /// The same; the log line ends in these words.
    pub(crate) fn without_content_while<E: Engine>(
        words: &str,
        error: ContentError,
        request: &mut Request,
        local: &Local<E>,
    ) -> Self {
        request.closing = true;
        request.content_refused = true;
        account::content_not_read(error, words, request, local);
        match error {
            ContentError::Malformed => Self::Status(Status::BAD_REQUEST),
            ContentError::TooLarge => Self::Status(Status::CONTENT_TOO_LARGE),
            ContentError::Limited(_) => match refusal::action(request) {
                FrangAction::Reply => Self::Status(Status::FORBIDDEN),
                FrangAction::Drop => Self::Close,
            },
            ContentError::TimedOut => Self::Status(Status::REQUEST_TIMEOUT),
            ContentError::Lost(_) => {
                // As nginx logs it.
                request.sent.status = Status::BAD_REQUEST.0;
                Self::Close
            }
        }
    }
}
