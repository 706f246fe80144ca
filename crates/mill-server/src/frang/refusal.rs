//! What becomes of a request that breaks a limit.

use super::Frang;
use super::account::Denied;
use super::admission::Blocked;
use super::bytes;
use super::head::{self, Broken, HeadLimits, ReachedPort};
use super::kinds::Event;
use super::limit::{Exceeded, FrangLimit};
use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::fingerprint;
use crate::local::{AnswerOf, FileOf, Local};
use crate::request::arrival::ip;
use crate::request::{Phase, Request};
use mill_config::config::frang::FrangAction;
use mill_http::status::Status;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use std::fmt;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The limits of all heads, and of the client that a proxy in front tells; once, before a location is looked for.
pub(crate) fn check_arrival<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    let Some((frang, client)) = limits_of(request) else {
        return ControlFlow::Continue(());
    };
    if request.told_client.is_some() {
        // Another client could get the answer uncounted.
        request.pure &= !frang.limits.requests.is_limited() && frang.limits.ip_block.is_none();
        if let Some(client) = client {
            check_told(&frang, client, exchange, request, local)?;
        }
    }
    check_kind(&frang, exchange, request, local)?;
    let message = &request.message;
    let broken = HeadLimits::of(&frang.limits)
        .broken(&message.head)
        .or_else(|| bytes::broken(&frang.limits.bytes, &message.head, &message.bytes));
    if !frang.limits.bytes.is_empty() {
        request.pure = false;
    }
    let broken = broken.map(|broken: Broken<'_>| (broken.limit, broken.to_string()));
    refuse_broken(broken, exchange, request, local)
}

/// Counts the request for the client that a proxy in front tells.
fn check_told<X: Exchange>(
    frang: &Frang,
    client: IpAddr,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    let now = local.scheduler.now();
    if frang.blocks.contains(client, now) {
        local.counters.borrow_mut().frang_blocked_connections += 1;
        return ControlFlow::Break(end(FrangAction::Drop, exchange, request));
    }
    if !frang.limits.requests.is_limited() {
        return ControlFlow::Continue(());
    }
    match frang.clients.enter(client).request(&frang.limits, now) {
        Ok(()) => ControlFlow::Continue(()),
        Err(Denied::Blocked) => ControlFlow::Break(end(FrangAction::Drop, exchange, request)),
        Err(Denied::Exceeded(exceeded)) => {
            tell_exceeded(&exceeded, request, local);
            ControlFlow::Break(end(frang.limits.action, exchange, request))
        }
    }
}

/// Counts the request, and the connection that it is the first of, for their fingerprints.
fn check_kind<X: Exchange>(
    frang: &Frang,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    if !frang.limits.limits_kinds() {
        return ControlFlow::Continue(());
    }
    // Another client of the kind could get the answer uncounted.
    request.pure = false;
    let now = local.scheduler.now();
    let mut counted = Ok(());
    if !frang.limits.http_fingerprints.is_empty() {
        let message = &request.message;
        let kind = fingerprint::of_head(&message.head, &message.bytes);
        let count = |event| {
            frang
                .http_kinds
                .count(FrangLimit::HttpFingerprint, kind, event, now)
        };
        if request.connection_requests == 1 {
            counted = count(Event::Connection);
        }
        counted = counted.and_then(|()| count(Event::Request));
    }
    if let Some(facts) = request.connection.tls.get()
        && !frang.limits.tls_fingerprints.is_empty()
    {
        let kind = fingerprint::of_handshake(facts);
        let limit = FrangLimit::TlsFingerprint;
        counted = counted.and_then(|()| frang.tls_kinds.count(limit, kind, Event::Request, now));
    }
    match counted {
        Ok(()) => ControlFlow::Continue(()),
        Err(exceeded) => {
            let action = tell_exceeded(&exceeded, request, local);
            ControlFlow::Break(end(action, exchange, request))
        }
    }
}

/// What the request's present location asks of its head.
pub(crate) fn check_location<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    if request.broke_limit || !request.location.frang.checks_heads() || limits_of(request).is_none()
    {
        return ControlFlow::Continue(());
    }
    let message = &request.message;
    let reached = reached_port(request);
    let settings = &request.location.frang;
    let broken = head::broken(settings, &message.head, &message.bytes, reached);
    let broken = broken.map(|broken: Broken<'_>| (broken.limit, broken.to_string()));
    refuse_broken(broken, exchange, request, local)
}

fn refuse_broken<X: Exchange>(
    broken: Option<(FrangLimit, String)>,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    let Some((limit, how)) = broken else {
        return ControlFlow::Continue(());
    };
    if limit.is_of_form() {
        let action = tell_malformed(limit, format_args!("{how}"), request, local);
        let status = Status::BAD_REQUEST;
        return ControlFlow::Break(end_with(status, action, exchange, request));
    }
    let action = tell(limit, format_args!("{how}"), request, local);
    ControlFlow::Break(end(action, exchange, request))
}

/// Counts and logs that a request is malformed. That is no attack: its client is not blocked.
fn tell_malformed<E: Engine>(
    limit: FrangLimit,
    how: fmt::Arguments<'_>,
    request: &Request,
    local: &Local<E>,
) -> FrangAction {
    limit.count(&mut local.counters.borrow_mut());
    let Some((frang, client)) = limits_of(request) else {
        return FrangAction::Reply;
    };
    let now = local.scheduler.now();
    if client.is_none_or(|client| frang.clients.enter(client).is_told(limit, now)) {
        local.log_error(Some(request), frang.limits.log_level, how);
    }
    frang.limits.error_action
}

/// Ends the connection, at once or behind an answer of 403.
pub(crate) fn end<X: Exchange>(
    action: FrangAction,
    exchange: &mut X,
    request: &mut Request,
) -> AnswerOf<X::Engine> {
    end_with(Status::FORBIDDEN, action, exchange, request)
}

fn end_with<X: Exchange>(
    status: Status,
    action: FrangAction,
    exchange: &mut X,
    request: &mut Request,
) -> AnswerOf<X::Engine> {
    request.broke_limit = true;
    request.pure = false;
    request.closing = true;
    request.content_refused = true;
    exchange.end_connection(action == FrangAction::Drop);
    match action {
        FrangAction::Reply => Answer::Status(status),
        FrangAction::Drop => Answer::Close,
    }
}

/// Whether a malformed request gets no answer: `error_action drop`. Its connection is reset.
pub(crate) fn drops_malformed<X: Exchange>(exchange: &mut X, request: &mut Request) -> bool {
    let frang = request.site.frang.as_ref();
    let drops = frang.is_some_and(|frang| frang.limits.error_action == FrangAction::Drop);
    if drops {
        request.pure = false;
        request.closing = true;
        exchange.end_connection(true);
    }
    drops
}

/// Counts the answer by its status, if its location limits that; whether it is one too many.
pub(crate) fn count_answer<E: Engine>(
    status: u16,
    request: &mut Request,
    local: &Local<E>,
) -> bool {
    let limit = request.location.frang.statuses.clone();
    let Some(limit) = limit.filter(|limit| limit.contains(status)) else {
        return false;
    };
    request.pure = false;
    let Some((frang, Some(client))) = limits_of(request) else {
        return false;
    };
    let counted = frang
        .clients
        .enter(client)
        .answer(&limit, local.scheduler.now());
    match counted {
        Ok(()) => false,
        Err(exceeded) => {
            tell_exceeded(&exceeded, request, local);
            request.closing = true;
            true
        }
    }
}

/// Counts and logs that a count is exceeded; what becomes of the request.
pub(crate) fn tell_exceeded<E: Engine>(
    exceeded: &Exceeded,
    request: &Request,
    local: &Local<E>,
) -> FrangAction {
    tell_if(
        exceeded.is_told,
        exceeded.limit,
        format_args!("{exceeded}"),
        request,
        local,
    )
}

/// Counts and logs a violation, and blocks the client if that is configured; what becomes of the request.
pub(crate) fn tell<E: Engine>(
    limit: FrangLimit,
    how: fmt::Arguments<'_>,
    request: &Request,
    local: &Local<E>,
) -> FrangAction {
    let now = local.scheduler.now();
    let is_told = match limits_of(request) {
        Some((frang, Some(client))) => frang.clients.enter(client).is_told(limit, now),
        _ => true,
    };
    tell_if(is_told, limit, how, request, local)
}

fn tell_if<E: Engine>(
    is_told: bool,
    limit: FrangLimit,
    how: fmt::Arguments<'_>,
    request: &Request,
    local: &Local<E>,
) -> FrangAction {
    limit.count(&mut local.counters.borrow_mut());
    let Some((frang, client)) = limits_of(request) else {
        return FrangAction::Reply;
    };
    let now = local.scheduler.now();
    let blocked = client.and_then(|client| frang.block(client, limit, now));
    if is_told {
        let blocked = Blocked(blocked);
        local.log_error(
            Some(request),
            frang.limits.log_level,
            format_args!("{how}{blocked}"),
        );
    }
    match blocked {
        Some(_) => FrangAction::Drop,
        None => frang.limits.action,
    }
}

/// The limits that hold for a request, and its client's address; `None` for a client without limits.
pub(crate) fn limits_of(request: &Request) -> Option<(Arc<Frang>, Option<IpAddr>)> {
    let frang = request.site.frang.as_ref()?;
    if request.connection.is_free {
        return None;
    }
    let client = ip(request.client()).map(|client| client.to_canonical());
    if client.is_some_and(|client| frang.is_whitelisted(client)) {
        return None;
    }
    Some((Arc::clone(frang), client))
}

/// What becomes of a request that breaks a limit: one whose client is blocked for it gets no answer.
pub(crate) fn action(request: &Request) -> FrangAction {
    match limits_of(request) {
        Some((frang, _)) if frang.limits.ip_block.is_some() => FrangAction::Drop,
        Some((frang, _)) => frang.limits.action,
        None => FrangAction::Reply,
    }
}

fn reached_port(request: &Request) -> ReachedPort {
    let port = match request.connection.local() {
        Address::Ip(address) => address.port(),
        Address::Unix(_) => 0,
    };
    ReachedPort {
        port,
        is_tls: request.connection.tls.get().is_some(),
    }
}
