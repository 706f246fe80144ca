//! One request the whole way: head, phases, answer, what is left of its content.

use super::Connection;
use super::finish::{Ending, finish};
use super::head::{self, Head};
use super::keep::{self, Kept};
use crate::compressed;
use crate::exchange::h1::H1Exchange;
use crate::exchange::h1::persistence::is_kept;
use crate::exchange::{ContentError, Exchange, SendError};
use crate::local::{FileOf, Local};
use crate::log::{self, Text};
use crate::request::{self, Arrival, Message, Outcome, Request};
use mill_config::config::LogLevel;
use mill_http::h1::refusal::Refusal;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Expired;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use std::rc::Rc;
use std::sync::Arc;

/// Handles the request that is or begins to be at the connection. Returns the connection if it goes on.
pub(super) async fn cycle<E: Engine>(mut connection: Connection<E>) -> Option<Connection<E>> {
    let local = Rc::clone(&connection.local);
    let mut stage = Stage::reading(&local);
    let (started, started_wall_clock) = (local.scheduler.now(), local.scheduler.wall_clock());
    let mut message = Message::default();
    let head = head::read(&connection, &mut message).await;
    if let Head::NotBegun = head {
        return None;
    }
    connection.requests += 1;
    local.counters.borrow_mut().requests += 1;
    let arrival = Arrival {
        connection: connection.facts(),
        listener: connection.listener.listener(),
        connection_requests: u64::from(connection.requests),
        message,
        pipelined: connection.pipelined,
    };
    let mut request = Request::of_site(arrival, connection.listener.site(), &local)?;
    (request.started, request.started_wall_clock) = (started, started_wall_clock);
    let refusal = match head {
        Head::Refused(refusal) => Some(refusal),
        Head::TimedOut | Head::BrokenOff => {
            give_up(&mut request, &head, &local);
            return None;
        }
        Head::Complete | Head::NotBegun => None,
    };
    stage.write();
    if request.site.mentions.transport {
        request.connection.transport.set(connection.stream.info());
    }
    let (goes_on, kept) = answer(&mut connection, &mut request, refusal).await;
    log::access::write(&mut request, &local);
    connection.begin_idle(request.location.keepalive_timeout);
    let location = Arc::clone(&request.location);
    if let Some(kept) = kept {
        kept.insert(request, &local);
    }
    drop(stage);
    match goes_on {
        GoesOn::Kept => {
            connection.pipelined = connection.stream.read(|bytes| (0, !bytes.is_empty()));
            Some(connection)
        }
        GoesOn::Finished { expects_more } => {
            let ending = Ending {
                location,
                expects_more,
            };
            finish(connection, ending).await;
            None
        }
        GoesOn::Dropped => None,
    }
}

/// Where the connection stands in the counters while a request is read and answered; it waits before and after.
struct Stage<E: Engine> {
    local: Rc<Local<E>>,
    writes: bool,
}

impl<E: Engine> Stage<E> {
    fn reading(local: &Rc<Local<E>>) -> Self {
        let mut counters = local.counters.borrow_mut();
        counters.connections_waiting -= 1;
        counters.connections_reading += 1;
        drop(counters);
        Self {
            local: Rc::clone(local),
            writes: false,
        }
    }

    /// The head has been read.
    fn write(&mut self) {
        let mut counters = self.local.counters.borrow_mut();
        counters.connections_reading -= 1;
        counters.connections_writing += 1;
        self.writes = true;
    }
}

impl<E: Engine> Drop for Stage<E> {
    fn drop(&mut self) {
        let mut counters = self.local.counters.borrow_mut();
        if self.writes {
            counters.connections_writing -= 1;
        } else {
            counters.connections_reading -= 1;
        }
        counters.connections_waiting += 1;
    }
}

/// What becomes of the connection.
enum GoesOn {
    Kept,
    /// Send what is left, listen a little, close.
    Finished {
        /// Content was not read to its end.
        expects_more: bool,
    },
    /// Close at once.
    Dropped,
}

/// Has the request answered, and sees to the rest of its content.
async fn answer<E: Engine>(
    connection: &mut Connection<E>,
    request: &mut Request,
    refusal: Option<Refusal>,
) -> (GoesOn, Option<Kept>) {
    let local = Rc::clone(&connection.local);
    let local = &*local;
    let outcome = match refusal {
        None => request::handle(request, local).await,
        Some(refusal) => {
            log_refusal(request, refusal, local);
            request::refuse(request, refusal.status(), local).await
        }
    };
    let mut exchange = H1Exchange::new(&connection.stream, local, request);
    exchange.set_keep_alive(refusal.is_none() && is_kept(request, &connection.listener, local));
    let outcome = discard_present(&mut exchange, outcome, request, local).await;
    let Outcome::Respond(mut response) = outcome else {
        request.sent.status = STATUS_CLOSED;
        return (GoesOn::Dropped, None);
    };
    let kept = match refusal {
        None => {
            compressed::put_in_memory(local, request, &mut response).await;
            keep::prepare(connection, request, &mut response).await
        }
        Some(_) => None,
    };
    let status = response.status;
    let sent = exchange.respond(request, response).await;
    count_response(local, status, request.sent.bytes);
    if let Err(error) = sent {
        on_send_error(connection, request, error);
        return (GoesOn::Dropped, None);
    }
    request.sent.complete = true;
    if !exchange.keeps_alive() {
        let expects_more = refusal.is_some() || !exchange.content_ended();
        return (GoesOn::Finished { expects_more }, kept);
    }
    let ended = exchange.content_ended() || discard_rest(&mut exchange, local, request).await;
    if ended {
        (GoesOn::Kept, kept)
    } else {
        (GoesOn::Dropped, None)
    }
}

/// Takes the content that has come already, and asks for the rest if the client waits to be asked. Content that is
/// not framed as it must be turns the answer into a refusal.
async fn discard_present<E: Engine>(
    exchange: &mut H1Exchange<'_, E>,
    outcome: Outcome<FileOf<E>>,
    request: &mut Request,
    local: &Local<E>,
) -> Outcome<FileOf<E>> {
    match &outcome {
        Outcome::Respond(response) if !response.close && exchange.keeps_alive() => {}
        _ => {
            exchange.forget_continue();
            return outcome;
        }
    }
    if exchange.discard_present().is_ok() {
        return outcome;
    }
    local.log_error(
        Some(request),
        LogLevel::Error,
        format_args!("client sent invalid chunked body"),
    );
    local.counters.borrow_mut().refused_chunk += 1;
    exchange.set_keep_alive(false);
    request::refuse(request, Status::BAD_REQUEST, local).await
}

fn count_response<E: Engine>(local: &Local<E>, status: Status, bytes: u64) {
    let mut counters = local.counters.borrow_mut();
    counters.count_response(status.on_the_wire().0);
    counters.bytes_sent += bytes;
}

/// Logs a request whose head never became whole, as nginx does.
fn give_up<E: Engine>(request: &mut Request, head: &Head, local: &Local<E>) {
    let part = if request.message.head.request_line.is_empty() {
        "line"
    } else {
        "headers"
    };
    head::find_request_line(&mut request.message);
    let (status, why) = match head {
        Head::TimedOut => (
            Status::REQUEST_TIMEOUT,
            "client timed out (110: Connection timed out)",
        ),
        _ => (Status::BAD_REQUEST, "client prematurely closed connection"),
    };
    request.sent.status = status.0;
    local.log_error(
        Some(request),
        LogLevel::Info,
        format_args!("{why} while reading client request {part}"),
    );
    log::access::write(request, local);
}

/// Says in the error log what was wrong with a head.
fn log_refusal<E: Engine>(request: &Request, refusal: Refusal, local: &Local<E>) {
    if !local.logs_errors_at(Some(request), LogLevel::Info) {
        return;
    }
    let mut text = local.take_buffer();
    refusal.emit_log(&request.message.bytes, &request.message.head, &mut text);
    local.log_error(
        Some(request),
        LogLevel::Info,
        format_args!("{}", Text(&text)),
    );
    local.put_buffer(text);
}

/// Takes the rest of the content, for `lingering_time` at most and `lingering_timeout` between two pieces.
async fn discard_rest<E: Engine>(
    exchange: &mut H1Exchange<'_, E>,
    local: &Local<E>,
    request: &Request,
) -> bool {
    let deadline = local.scheduler.now() + request.location.lingering_time;
    exchange.begin_to_discard(request.location.lingering_timeout);
    loop {
        match local
            .scheduler
            .until(deadline, exchange.content(|_| ()))
            .await
        {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return true,
            Ok(Err(ContentError::TimedOut)) | Err(Expired) => {
                local.counters.borrow_mut().timeout_body += 1;
                return false;
            }
            Ok(Err(ContentError::Malformed)) => {
                local.counters.borrow_mut().refused_chunk += 1;
                let text = "client sent invalid chunked body while sending response to client";
                local.log_error(Some(request), LogLevel::Error, format_args!("{text}"));
                return false;
            }
            Ok(Err(_)) => return false,
        }
    }
}

/// Counts and logs why an answer was not sent whole.
fn on_send_error<E: Engine>(connection: &Connection<E>, request: &mut Request, error: SendError) {
    let local = &*connection.local;
    match error {
        SendError::TimedOut => {
            local.counters.borrow_mut().timeout_send += 1;
            local.log_error(
                Some(request),
                LogLevel::Info,
                format_args!(
                    "client timed out (110: Connection timed out) while sending response to client"
                ),
            );
        }
        SendError::Lost(StreamError::Truncated) => {
            local.counters.borrow_mut().files_truncated += 1;
            // The client must not take the end of the connection for the end of the content.
            let _ = connection.stream.set(StreamOption::ResetOnClose);
            local.log_error(
                Some(request),
                LogLevel::Alert,
                format_args!("a file got shorter while it was sent; the connection is reset"),
            );
        }
        SendError::Lost(error) => {
            local.counters.borrow_mut().connections_reset += 1;
            local.log_error(
                Some(request),
                LogLevel::Info,
                format_args!(
                    "client closed the connection ({error:?}) while sending response to client"
                ),
            );
        }
    }
}

/// What nginx logs for a connection that is closed without an answer.
const STATUS_CLOSED: u16 = 444;
