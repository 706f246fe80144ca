//! New requests: answered at once by a hot answer, or by a task.

use super::streams::Http2;
use crate::connection::refused;
use crate::delivery::account::count_answer;
use crate::exchange::Exchange;
use crate::exchange::h1::persistence::Progress;
use crate::exchange::h2::H2Exchange;
use crate::hot::{HitContext, HotAnswer, Looked};
use crate::log;
use crate::proxy::websocket;
use crate::request::{self, Arrival, Message, Request};
use mill_config::config::frang::FrangAction;
use mill_config::config::settings::ConnectionSettings;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::h2::connection::HeadFacts;
use mill_http::h2::error::ErrorCode;
use mill_http::h2::frame::StreamId;
use mill_http::h2::priority::Priority;
use mill_http::refusal::Refusal;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::stream::Stream;
use std::rc::Rc;

impl<E: Engine> Http2<E> {
    /// A request has begun.
    pub(super) fn on_head(self: &Rc<Self>, stream: StreamId, end: bool, facts: HeadFacts) {
        self.requests.set(self.requests.get() + 1);
        self.local().counters.borrow_mut().requests += 1;
        let limited = self.connection.count_request();
        if limited == Some(FrangAction::Drop) {
            return self.break_off();
        }
        let is_plain = end && !facts.is_too_large && !facts.is_websocket;
        if is_plain && limited.is_none() && self.answer_hot(stream) {
            return;
        }
        let mut message = self.local().take_message();
        self.with_protocol(|protocol| message.bytes.extend_from_slice(protocol.head()));
        if facts.is_websocket {
            websocket::add_key(&mut message.bytes, self.local());
        }
        let refusal = self.parse(&mut message, facts);
        // What follows an extended CONNECT is no content.
        let ends = end || facts.is_websocket;
        if !self.accept_content(stream, ends, &mut message) {
            return self.local().put_message(message);
        }
        let value = |name: &[u8]| {
            let field =
                (message.head.fields.iter()).find(|field| field.name.of(&message.bytes) == name)?;
            Some(field.value.of(&message.bytes))
        };
        if let Some(priority) = value(b"priority") {
            let priority = Priority::parse(priority);
            self.with_protocol(|protocol| protocol.set_priority(stream, priority));
        }
        let arrival = Arrival {
            connection: Rc::clone(&self.facts),
            listener: self.connection.listener.listener(),
            connection_requests: self.requests.get(),
            message,
            pipelined: false,
        };
        self.begin(stream, end);
        let refused = match (limited, refusal) {
            (Some(_), _) => Some(Refused::Limited),
            (None, Some(refusal)) => Some(Refused::Head(refusal)),
            (None, None) => None,
        };
        let task = run(Rc::clone(self), stream, arrival, refused);
        match self.local().scheduler.spawn(Purpose::Finishing, task) {
            Ok(task) => self.set_task(stream, task),
            Err(_) => {
                self.with_protocol(|protocol| {
                    protocol.reset(stream, ErrorCode::REFUSED_STREAM);
                });
                self.end(stream);
            }
        }
    }

    fn parse(&self, message: &mut Message, facts: HeadFacts) -> Option<Refusal> {
        let mut rules = self.connection.listener.rules();
        rules.accept_bare_lf = false;
        message.head.is_of_fields = true;
        match parse_request(&message.bytes, &mut message.head, &rules) {
            Parsed::Complete { .. } if facts.is_too_large => Some(Refusal::HeadTooLarge),
            Parsed::Complete { .. } => None,
            Parsed::Refused(refusal) => Some(refusal),
            Parsed::Partial => Some(Refusal::InvalidRequestLine),
        }
    }

    /// What the head says of the content, to which the stream is held. `false`: it was reset.
    fn accept_content(&self, stream: StreamId, end: bool, message: &mut Message) -> bool {
        let head = &mut message.head;
        match head.content_length {
            Some(length) => {
                let promised = self.with_protocol(|protocol| protocol.promise(stream, length));
                let Err(fault) = promised else {
                    return true;
                };
                self.on_stream_fault(stream, ErrorCode::PROTOCOL_ERROR, fault);
                false
            }
            None => {
                // Content whose length only its end will tell.
                head.chunked = !end;
                true
            }
        }
    }

    /// Answers with a kept answer, if there is one.
    fn answer_hot(&self, stream: StreamId) -> bool {
        let local = self.local();
        let listener = &self.connection.listener;
        if listener.is_gone() || self.connection.needs_whole_way() {
            return false;
        }
        let now = local.scheduler.now();
        let (_, looked) = self.with_protocol(|protocol| {
            (local.hot.borrow_mut()).find_of_fields(protocol.head(), listener, now)
        });
        let Looked::Found {
            answer, received, ..
        } = looked
        else {
            return false;
        };
        let content = answer.content();
        let room = self.with_protocol(|protocol| protocol.sendable(stream));
        if content.len() > room || self.queued() > HOT_QUEUED_MAX {
            return false;
        }
        let limits = answer.limits.as_ref();
        if limits.is_some_and(|limits| !limits.pass(&self.facts.peer, local)) {
            return false;
        }
        local.date_of(|second, date| answer.set_date(second, date));
        let sent_bytes = self.write_hot(stream, &answer);
        let mut counters = local.counters.borrow_mut();
        count_answer(&mut counters, answer.status, sent_bytes);
        drop(counters);
        (answer.zones).count(answer.status, received as u64, sent_bytes);
        self.after_answer(&answer.location.connection);
        self.log_hot(&answer, sent_bytes);
        true
    }

    fn write_hot(&self, stream: StreamId, answer: &HotAnswer) -> u64 {
        let content = answer.content();
        answer.with_h2_block(|block| {
            self.with_protocol(|protocol| {
                let before = protocol.output().len();
                protocol.emit_block(stream, block, content.is_empty());
                if !content.is_empty() {
                    protocol.emit_data(stream, content, true, usize::MAX);
                }
                (protocol.output().len() - before) as u64
            })
        })
    }

    fn log_hot(&self, answer: &HotAnswer, sent_bytes: u64) {
        let Some(template) = &answer.log_template else {
            return;
        };
        let local = self.local();
        let hit = HitContext {
            connection: Rc::clone(&self.facts),
            connection_requests: self.requests.get(),
            pipelined: false,
            sent_bytes,
        };
        let (now, wall_clock) = (local.scheduler.now(), local.scheduler.wall_clock());
        let mut template = template.borrow_mut();
        let request = template.turn_into(hit, now, wall_clock);
        if request.site.mentions.transport {
            request.connection.transport.set(self.stream().info());
        }
        log::access::write(request, local);
    }

    /// `keepalive_requests`, `keepalive_time` and `keepalive_timeout` of the location that answered.
    pub(crate) fn after_answer(&self, settings: &ConnectionSettings) {
        self.idle_timeout.set(settings.keepalive_timeout);
        let progress = Progress {
            requests: self.requests.get(),
            started: self.facts.started,
        };
        if !progress.allows_another(settings, self.local()) {
            self.go_away();
        }
    }
}

/// Why a request has no way through the phases.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Head(Refusal),
    /// It is one too many of its client.
    Limited,
}

/// The task of one request.
async fn run<E: Engine>(
    shared: Rc<Http2<E>>,
    stream: StreamId,
    arrival: Arrival,
    refused: Option<Refused>,
) {
    let place = Place {
        shared: &shared,
        stream,
    };
    let local = shared.local();
    let site = shared.connection.listener.site();
    let Some(request) = Request::of_site(arrival, site, local) else {
        return;
    };
    if request.site.mentions.transport {
        request.connection.transport.set(shared.stream().info());
    }
    let mut exchange = H2Exchange::new(&shared, stream, &request.message.head);
    match refused {
        None => request::handle(&mut exchange, request, local).await,
        Some(Refused::Head(refusal)) => {
            refused::note(&request, refusal, local);
            request::refuse(&mut exchange, request, refusal.status(), local).await;
        }
        Some(Refused::Limited) => {
            exchange.end_connection(false);
            request::refuse(&mut exchange, request, Status::FORBIDDEN, local).await;
        }
    }
    if let Some(tunnel) = exchange.into_tunnel() {
        shared.carry(stream, *tunnel).await;
    }
    drop(place);
}

/// A request's place among those of the connection; given up also where the task is dropped.
struct Place<'s, E: Engine> {
    shared: &'s Http2<E>,
    stream: StreamId,
}

impl<E: Engine> Drop for Place<'_, E> {
    fn drop(&mut self) {
        self.shared.end(self.stream);
    }
}

/// With more than this many bytes waiting to be sent, a request goes the whole way, and waits there.
const HOT_QUEUED_MAX: u64 = 128 * 1024;
