//! The tries of a request, each at one server: what is sent, and what comes of it.

use super::answer::AnswerHead;
use super::attempt::Attempt;
use super::connection::UpstreamConnection;
use super::fault::Fault;
use super::http::Asked;
use super::scan::HeadScan;
use super::{Proxying, gateway, hints, http};
use crate::exchange::Exchange;
use crate::local::Local;
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_config::config::pass::PassProtocol;
use mill_http::h1::response::RequestKind;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_upstream::select::Selected;
use std::rc::Rc;
use std::sync::Arc;

/// A try that failed.
pub(super) struct FailedTry {
    pub(super) fault: Fault,
    pub(super) selected: Selected,
    /// Its connection was a kept one.
    pub(super) was_reused: bool,
    /// Bytes of the request that have gone out.
    pub(super) sent: u64,
}

impl FailedTry {
    /// Nothing was sent.
    pub(super) const fn before(fault: Fault, selected: Selected) -> Self {
        Self {
            fault,
            selected,
            was_reused: false,
            sent: 0,
        }
    }

    /// The connection is closed.
    pub(super) fn on<E: Engine>(connection: UpstreamConnection<E>, fault: Fault) -> Self {
        Self {
            fault,
            was_reused: connection.is_reused,
            sent: connection.sent(),
            selected: connection.into_selected(),
        }
    }
}

/// A try that brought an answer.
pub(super) struct Answered<E: Engine> {
    pub(super) connection: UpstreamConnection<E>,
    pub(super) head: AnswerHead,
}

impl<E: Engine> Proxying<'_, E> {
    /// One try.
    pub(super) async fn attempt<X: Exchange<Engine = E>>(
        &mut self,
        selected: Selected,
        exchange: &mut X,
        request: &mut Request,
    ) -> Result<Answered<E>, FailedTry> {
        let (local, trace) = (self.local, Rc::clone(&self.trace));
        let settings = Arc::clone(&self.settings);
        let attempt = Attempt {
            local,
            settings: &settings,
            trace: &trace,
            kind: self.kind(request),
            pieces: self.content.pieces(self.target.pass.protocol, request),
            passes_hints: hints::are_passed(self.target.pass.protocol, request, local),
            needs_client: self.needs_client(),
        };
        let mut head = local.take_buffer();
        let (scan, asked) = match self.emit_request(attempt.kind, request, &mut head) {
            Ok(emitted) => emitted,
            Err(fault) => return Err(FailedTry::before(fault, selected)),
        };
        let mut connection = self.connect(&attempt, selected, exchange, request).await?;
        trace.connected(local.scheduler.now());
        let answered = attempt
            .exchange(
                &mut connection,
                &head,
                &mut self.content,
                exchange,
                scan,
                request,
            )
            .await;
        local.put_buffer(head);
        connection.may_be_kept &= !asked.close;
        let fault = match answered {
            Err(Fault::Failed(..)) if connection.is_refused() => Fault::NotBegun,
            Err(fault) => fault,
            Ok(head) => match head.head.status {
                SWITCHING if !(asked.upgrade && trace.may_switch(request)) => Fault::InvalidSwitch,
                status if self.is_unwanted(status, request) => {
                    let now = local.scheduler.now();
                    if connection.selected().refused(status, now) {
                        log_unhealthy(local, request, status);
                    }
                    Fault::Status(status)
                }
                _ => return Ok(Answered { connection, head }),
            },
        };
        trace.arrived(connection.unread(), settings.buffer_size);
        Err(FailedTry::on(connection, fault))
    }

    /// What of the method that is sent determines the answer's framing.
    pub(super) fn kind(&self, request: &mut Request) -> RequestKind {
        if self.question().is_some_and(|question| question.as_get) {
            return RequestKind::Other;
        }
        match self.target.pass.protocol {
            PassProtocol::Http => http::kind(request, self.local),
            _ => RequestKind::of(request.method),
        }
    }

    /// Appends the head of the request in the protocol of the location; returns what reads its answer's, and what the
    /// request asks of the connection.
    fn emit_request(
        &self,
        kind: RequestKind,
        request: &mut Request,
        out: &mut Vec<u8>,
    ) -> Result<(HeadScan, Asked), Fault> {
        let (protocol, framing) = (self.target.pass.protocol, self.content.framing(request));
        let (key, asked) = match protocol {
            PassProtocol::Http => {
                let asked = http::emit_request(
                    &self.target,
                    framing,
                    self.question(),
                    request,
                    self.local,
                    out,
                );
                (0..0, asked)
            }
            _ => {
                let key = gateway::emit_request(
                    protocol,
                    framing,
                    self.question(),
                    request,
                    self.local,
                    out,
                )?;
                (key, Asked::default())
            }
        };
        let key = out.get(key).unwrap_or_default();
        let scan = HeadScan::new(protocol, kind, &request.location, key);
        Ok((scan, asked))
    }
}

/// RFC 9110 15.2.2.
const SWITCHING: u16 = Status::SWITCHING_PROTOCOLS.0;

/// The server is unhealthy because of its answers (`failover=` of `health_check`).
pub(super) fn log_unhealthy<E: Engine>(local: &Local<E>, request: &Request, status: u16) {
    let text = format_args!("peer is unhealthy because of its answers with status {status}");
    local.log_error(Some(request), LogLevel::Warn, text);
}
