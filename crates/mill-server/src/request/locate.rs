//! The location of a path, and its own checks: `internal`, `client_max_body_size`, `limit_except`.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::request::{Phase, Request};
use crate::static_file::redirect_to_directory;
use mill_config::config::{Location, LocationName, LocationTree, LogLevel, Pattern};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Internal redirects and rewrites to another location that one request may make (nginx's limit).
pub(crate) const REDIRECTS_MAX: u8 = 10;

/// Returns to the server's own settings, before a location is looked up.
pub(super) fn leave(request: &mut Request) {
    request.valid_location = true;
    request.location = Arc::clone(&request.server.location);
}

/// Finds the location of the path and enters it.
pub(super) fn find<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    let server = Arc::clone(&request.server);
    let mut captures = Vec::new();
    let found = server.locations.find(&request.uri, &mut captures);
    let found = found.unwrap_or(&server.location);
    if !captures.is_empty() {
        let subject = request.uri.clone();
        for pattern in patterns_to(found, &server.locations).unwrap_or_default() {
            let mut captures = Vec::new();
            pattern.captures(&subject, &mut captures);
            request.keep_captures(Some(pattern), &subject, captures);
        }
    }
    request.location = Arc::clone(found);
    if found.access.internal && !request.internal {
        local.counters.borrow_mut().refused_access += 1;
        return ControlFlow::Break(Answer::Status(Status::NOT_FOUND));
    }
    enter(found, request);
    log_found(found, request, local);
    check_content_length(found.client_body.max_size, request, local)?;
    if found.wants_slash(&request.uri) {
        return ControlFlow::Break(redirect_to_directory(request));
    }
    ControlFlow::Continue(())
}

/// Tells by which rule a location was found, at level debug.
fn log_found<E: Engine>(found: &Location, request: &Request, local: &Local<E>) {
    let rule = match &found.name {
        LocationName::Exact(_) => "as the exact path",
        LocationName::Prefix {
            final_match: true, ..
        } => "as the longest prefix, ^~",
        LocationName::Prefix { .. } => "as the longest prefix",
        LocationName::Pattern(_) => "by its regular expression",
        LocationName::Named(_) => "by its name",
        LocationName::Server | LocationName::Condition => "as there is none: the server itself",
    };
    let name = Text(found.name.text());
    let text = format_args!("location \"{name}\" found {rule}");
    local.log_error(Some(request), LogLevel::Debug, text);
}

/// The expressions on the way to a location, its own last: each of them matched and may have captured something.
fn patterns_to<'a>(found: &Arc<Location>, tree: &'a LocationTree) -> Option<Vec<&'a Pattern>> {
    tree.iter().find_map(|location| {
        let inner = if Arc::ptr_eq(location, found) {
            Vec::new()
        } else {
            patterns_to(found, &location.locations)?
        };
        let own = match &location.name {
            LocationName::Pattern(pattern) => Some(&**pattern),
            _ => None,
        };
        Some(own.into_iter().chain(inner).collect())
    })
}

/// Takes the settings of `location`, or those of its `limit_except` for a method that this does not list.
pub(super) fn enter(location: &Arc<Location>, request: &mut Request) {
    request.location = match &location.limit_except {
        Some(limit) if !limit.methods.contains(request.method_name()) => {
            Arc::clone(&limit.location)
        }
        _ => Arc::clone(location),
    };
}

/// Compares the announced length with `client_max_body_size`. Content in chunks has none: it is counted when a handler
/// reads it, and not at all when it is discarded, as in nginx.
fn check_content_length<E: Engine>(
    max: u64,
    request: &mut Request,
    local: &Local<E>,
) -> Phase<FileOf<E>> {
    let len = request.message.head.content_length.unwrap_or(0);
    if request.content_refused || max == 0 || len <= max {
        return ControlFlow::Continue(());
    }
    request.content_refused = true;
    local.counters.borrow_mut().limit_body_size += 1;
    local.log_error(
        Some(request),
        LogLevel::Error,
        format_args!("client intended to send too large body: {len} bytes"),
    );
    ControlFlow::Break(Answer::Status(Status::CONTENT_TOO_LARGE))
}

/// Gives the request another path. The phases begin again with the server's rewrites.
pub(super) fn redirect_internally<E: Engine>(
    uri: Vec<u8>,
    args: Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) -> Phase<FileOf<E>> {
    count_redirect("internally redirecting to", &uri, request, local)?;
    request.uri = uri;
    request.args = args;
    request.internal = true;
    request.uri_is_as_sent = false;
    request.alias_takes_uri = false;
    request.slice = None;
    request.slice_under_way = None;
    ControlFlow::Continue(())
}

/// Enters a named location; the path stays.
pub(super) fn enter_named<E: Engine>(
    name: &[u8],
    request: &mut Request,
    local: &Local<E>,
) -> Phase<FileOf<E>> {
    count_redirect("redirect to named location", name, request, local)?;
    let server = Arc::clone(&request.server);
    let Some(location) = server.named_location(name) else {
        local.log_error(
            Some(request),
            LogLevel::Error,
            format_args!("could not find named location \"{}\"", Text(name)),
        );
        return ControlFlow::Break(Answer::Status(Status::INTERNAL_SERVER_ERROR));
    };
    if request.uri.is_empty() {
        local.log_error(
            Some(request),
            LogLevel::Error,
            format_args!("empty URI in redirect to named location \"{}\"", Text(name)),
        );
        return ControlFlow::Break(Answer::Status(Status::INTERNAL_SERVER_ERROR));
    }
    request.internal = true;
    request.slice = None;
    request.slice_under_way = None;
    enter(location, request);
    log_found(location, request, local);
    ControlFlow::Continue(())
}

/// Counts a change of path or location; one too many is a cycle.
pub(super) fn count_redirect<E: Engine>(
    action: &str,
    target: &[u8],
    request: &mut Request,
    local: &Local<E>,
) -> Phase<FileOf<E>> {
    // A location that keeps no connections decides for those behind it, as in nginx.
    request.closing |= request.location.connection.keepalive_timeout.is_zero();
    request.redirects = request.redirects.saturating_add(1);
    if request.redirects <= REDIRECTS_MAX {
        return ControlFlow::Continue(());
    }
    local.log_error(
        Some(request),
        LogLevel::Error,
        format_args!(
            "rewrite or internal redirection cycle while {action} \"{}\"",
            Text(target)
        ),
    );
    ControlFlow::Break(Answer::Status(Status::INTERNAL_SERVER_ERROR))
}
