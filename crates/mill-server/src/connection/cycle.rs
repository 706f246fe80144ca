//! One request the whole way: head, phases, answer, rest of its content.

use super::finish::{Ending, finish};
use super::head::{self, Head};
use super::{Connection, Standing, refused};
use crate::exchange::h1::{Fate, H1Exchange};
use crate::frang::refusal;
use crate::local::Local;
use crate::log;
use crate::request::{self, Arrival, Request};
use crate::zones;
use mill_config::config::LogLevel;
use mill_config::config::frang::FrangAction;
use mill_http::refusal::Refusal;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use std::rc::Rc;

/// Handles the request that has arrived, at least in part. Returns the connection if it stays open.
pub(super) async fn cycle<E: Engine>(mut connection: Connection<E>) -> Option<Connection<E>> {
    let local = Rc::clone(&connection.local);
    let mut stage = Stage::reading(&local);
    let (started, started_wall_clock) = (local.scheduler.now(), local.scheduler.wall_clock());
    let mut message = local.take_message();
    let head = head::read(&connection, &mut message).await;
    if let Head::NotBegun = head {
        return None;
    }
    connection.requests += 1;
    local.counters.borrow_mut().requests += 1;
    let arrival = Arrival {
        connection: connection.facts(!message.head.host.is_empty()),
        listener: connection.listener.listener(),
        connection_requests: u64::from(connection.requests),
        message,
        pipelined: connection.pipelined,
    };
    let site = connection.listener.site();
    let mut request = Request::of_site(arrival, site, &local)?;
    (request.started, request.started_wall_clock) = (started, started_wall_clock);
    let refusal = match head {
        Head::Refused(refusal) => Some(refusal),
        Head::TimedOut | Head::BrokenOff => {
            give_up(&mut request, &head, &local);
            return None;
        }
        Head::TooManyPieces(exceeded) => {
            connection.standing = Standing::Limited;
            if refusal::tell_exceeded(&exceeded, &request, &local) == FrangAction::Drop {
                connection.reset_on_close();
                request.sent.status = Status::CLOSE.0;
                log::access::write(&mut request, &local);
                zones::end(&mut request, &local);
                return None;
            }
            None
        }
        Head::Complete | Head::NotBegun => None,
    };
    stage.write();
    if request.site.mentions.transport {
        request.connection.transport.set(connection.stream.info());
    }
    let fate = answer(&connection, request, refusal).await;
    drop(stage);
    match fate {
        Fate::Kept(location) => {
            connection.begin_idle(location.connection.keepalive_timeout);
            connection.pipelined = connection.stream.read(|bytes| (0, !bytes.is_empty()));
            Some(connection)
        }
        Fate::Finished {
            location,
            expects_more,
        } => {
            let ending = Ending {
                location,
                expects_more,
            };
            finish(connection, ending).await;
            None
        }
        Fate::Tunnel(tunnel) => {
            connection.tunnel = Some(tunnel);
            Some(connection)
        }
        Fate::Dropped => None,
    }
}

/// Has the request answered. Returns the fate of the connection.
async fn answer<E: Engine>(
    connection: &Connection<E>,
    request: Box<Request>,
    refusal: Option<Refusal>,
) -> Fate<E> {
    let (stream, listener) = (&connection.stream, &*connection.listener);
    let local = &*connection.local;
    match refusal {
        None if connection.standing == Standing::Limited => {
            let mut exchange = H1Exchange::of_refused(stream, listener, local);
            request::refuse(&mut exchange, request, Status::FORBIDDEN, local).await;
            exchange.into_fate()
        }
        None => {
            let head = &request.message.head;
            let mut exchange = H1Exchange::new(stream, listener, local, head);
            request::handle(&mut exchange, request, local).await;
            exchange.into_fate()
        }
        Some(refusal) => {
            refused::note(&request, refusal, local);
            let mut exchange = H1Exchange::of_refused(stream, listener, local);
            request::refuse(&mut exchange, request, refusal.status(), local).await;
            exchange.into_fate()
        }
    }
}

/// The connection's state in the counters: reading, then writing, while a request is handled; waiting before and after.
pub(crate) struct Stage<E: Engine> {
    local: Rc<Local<E>>,
    writes: bool,
}

impl<E: Engine> Stage<E> {
    pub(crate) fn reading(local: &Rc<Local<E>>) -> Self {
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
    pub(crate) fn write(&mut self) {
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

/// Logs a request whose head never became complete, as nginx does.
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
    zones::end(request, local);
}
