//! `error_page`, and the built-in pages.

/// The built-in pages, byte for byte nginx's except for the signature.
mod page;

use crate::answer::Answer;
use crate::content::Content;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::request::locate::REDIRECTS_MAX;
use crate::request::try_files::split_args;
use crate::response::Response;
use crate::user_agent::Browser;
use crate::variables;
use mill_config::config::settings::{ErrorPage, ErrorPageStatus};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// The answer for a status: an `error_page` of the location, or the built-in page.
pub fn answer<E: Engine>(
    status: Status,
    request: &mut Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    if matches!(status, Status::CLOSE | Status::CLIENT_CLOSED_REQUEST) {
        return Answer::Close;
    }
    request.error_status = Some(status.0);
    // Errors are logged each time, and most depend on a missing file.
    request.pure &= status.0 < 400;
    // A head that is too large closes the connection where it is refused; the same status by `return` does not.
    let returned = status == Status::REQUEST_HEADER_TOO_LARGE;
    request.closing |= status.closes_connection() && !returned;
    let location = Arc::clone(&request.location);
    let configured = !location.error_page.pages.is_empty();
    if configured && !request.error_page_used && request.redirects <= REDIRECTS_MAX {
        request.error_page_used = !location.error_page.recursive;
        let mut pages = location.error_page.pages.iter();
        if let Some(page) = pages.find(|page| page.status == status.0) {
            return configured_answer(page, request, local);
        }
    }
    if matches!(status, Status::MOVED_PERMANENTLY | Status::FOUND)
        && let Some(response) = refresh(request)
    {
        return Answer::Response(Box::new(response));
    }
    let shown = status.on_the_wire();
    request.error_status = Some(shown.0);
    Answer::Response(Box::new(built_in(status, request)))
}

/// The answer that an `error_page` gives: another path as GET, a named location, or a redirect.
fn configured_answer<E: Engine>(
    page: &ErrorPage,
    request: &mut Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    match page.answer {
        ErrorPageStatus::Keep => {}
        ErrorPageStatus::OfTarget => request.error_status = None,
        ErrorPageStatus::Set(status) => request.error_status = Some(status),
    }
    let target = variables::evaluate(&page.target, request, local);
    match target.first() {
        Some(b'/') => {
            if request.method != Method::Head {
                request.method = Method::Get;
            }
            let (uri, args) = match (page.target.as_literal(), &page.args) {
                (None, _) => split_args(target),
                (Some(_), args) => (target, args.as_deref().unwrap_or_default().to_vec()),
            };
            Answer::Redirect { uri, args }
        }
        Some(b'@') => Answer::Named(target),
        _ => redirect(page.answer, target, request),
    }
}

/// A redirect away from the server; its status is 302 unless the directive names another one of a redirect.
fn redirect<File>(answer: ErrorPageStatus, target: Vec<u8>, request: &mut Request) -> Answer<File> {
    let status = match answer {
        ErrorPageStatus::Set(status @ (301 | 302 | 303 | 307 | 308)) => Status(status),
        _ => Status::FOUND,
    };
    request.error_status = Some(status.0);
    request.redirect_target = Some(target.into());
    let response = refresh(request).unwrap_or_else(|| built_in(status, request));
    Answer::Response(Box::new(response))
}

/// The page that stands for a redirect: `msie_refresh`, for Internet Explorer.
fn refresh<File>(request: &mut Request) -> Option<Response<File>> {
    if !request.location.error_page.msie_refresh {
        return None;
    }
    request.pure = false;
    if !Browser::of(request).msie {
        return None;
    }
    let page = page::emit_refresh(&request.redirect_target.take()?);
    request.error_status = Some(Status::OK.0);
    Some(Response::with_bytes(Status::OK, b"text/html", page))
}

/// The built-in page of a status as an answer, without ranges or validators.
fn built_in<File>(status: Status, request: &mut Request) -> Response<File> {
    let shown = status.on_the_wire();
    let padded = status.0 >= 400 && is_padded(request);
    match page::emit(status, request.location.headers.server_tokens, padded) {
        Some(page) => Response::with_bytes(shown, b"text/html", page),
        None => Response {
            // No page, but `Content-Length: 0`.
            content: Content::bytes([]),
            ..Response::empty(shown)
        },
    }
}

/// `msie_padding`, for the browsers that need it. As in nginx, header fields are ignored if the path is invalid.
fn is_padded(request: &mut Request) -> bool {
    if !request.location.error_page.msie_padding || request.uri.is_empty() {
        return false;
    }
    request.pure = false;
    let browser = Browser::of(request);
    browser.msie || browser.chrome
}
