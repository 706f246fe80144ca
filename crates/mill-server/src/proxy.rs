//! `proxy_pass` and its like: the request goes to a server of a group, and its answer to the client.
//!
//! The way: `target` (which group, which URI) → `content` (the request's content) → `named` (a name that variables
//! have made is resolved) → tries, each at another server:
//! `choice` brings a connection to it, `http` or `gateway` spells the request, `attempt` sends it and reads the head of
//! the answer (`scan`); `retry` decides on another try → `response` makes the answer ours → `source` brings its content
//! (`body`), while the exchange sends it.
//!
//! All of it runs in the task of the client's connection: the events of both streams wake that.

/// Where the request goes.
mod target;

/// Servers that variables name.
mod named;

/// The request's content.
mod content;

/// A connection to a server.
pub mod connection;

/// What a connection becomes after 101.
pub(crate) mod tunnel;

/// The request's spelling.
mod http;

/// The same in the protocols that are not HTTP.
mod gateway;

/// Which server, and a connection to it.
mod choice;

/// What a connection begins with.
mod proxy_header;

/// The near end of that connection.
mod binding;

/// One try.
mod attempt;

/// Whether another server is tried.
mod retry;

/// The head of the answer while it arrives.
mod scan;

/// The answer, made ours.
mod response;

/// What ends the content of the answer.
mod body;

/// The head of the answer.
mod answer;

/// Values of the answer that name the server.
mod rewriting;

/// Where the server says that another answer is.
mod redirected;

/// The content of the answer.
mod source;

/// How fast it is read.
mod read_pace;

/// Why a try failed.
pub(crate) mod fault;

/// What servers did for a request.
pub mod trace;

/// A request of our own, which tells whether a server is healthy.
pub(crate) mod probe;

use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use crate::upstreams::WorkerGroup;
use answer::AnswerHead;
use attempt::Attempt;
use connection::UpstreamConnection;
use content::RequestContent;
use fault::Fault;
use mill_config::config::Location;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::PassSettings;
use mill_http::field::KnownField;
use mill_http::h1::response::RequestKind;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use mill_upstream::pool::Scope;
use mill_upstream::select::{Selected, Tried};
use scan::HeadScan;
use std::rc::Rc;
use std::sync::Arc;
use target::Target;
use trace::UpstreamTrace;

/// Passes the request on, if its location says so.
pub(crate) async fn respond<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let Some(pass) = request.location.pass.clone() else {
        return Answer::Declined;
    };
    request.pure = false;
    let target = match target::evaluate(&pass, request, local) {
        Ok(target) => target,
        Err(status) => return Answer::Status(status),
    };
    let trace = Rc::clone(request.upstream.get_or_insert_with(|| local.take_trace()));
    trace.set_host(&target);
    let settings = settings_of(&request.location, pass.protocol);
    let content = match content::read(pass.protocol, &settings, exchange, request, local).await {
        Ok(content) => content,
        Err(answer) => return answer,
    };
    let group = match named::group(&target.servers, exchange, request, local).await {
        Ok(group) => group,
        Err(status) => return Answer::Status(status),
    };
    let mut proxying = Proxying::new(settings, target, group, content, request, local);
    let answer = proxying.run(exchange, request).await;
    if !matches!(answer, Answer::Response(_) | Answer::Close) {
        proxying.content.keep_for(request);
    }
    answer
}

/// The state of a request that is passed on.
struct Proxying<'a, E: Engine> {
    local: &'a Local<E>,
    settings: Arc<PassSettings>,
    target: Target,
    group: Rc<WorkerGroup<E>>,
    content: RequestContent<E>,
    trace: Rc<UpstreamTrace>,
    /// `None` where its connections are shared with all requests.
    scope: Option<Rc<Scope>>,
    tried: Tried,
    started: Instant,
    /// Servers that may still be tried.
    tries_left: u32,
}

impl<'a, E: Engine> Proxying<'a, E> {
    fn new(
        settings: Arc<PassSettings>,
        target: Target,
        group: Rc<WorkerGroup<E>>,
        content: RequestContent<E>,
        request: &mut Request,
        local: &'a Local<E>,
    ) -> Self {
        let trace = Rc::clone(request.upstream.get_or_insert_with(|| local.take_trace()));
        let tries_max = settings.next_upstream_tries;
        let servers = group.selector.borrow_mut().tries();
        let scope = binding::scope(
            target.pass.protocol,
            &settings,
            group.group.config(),
            request,
            local,
        );
        Self {
            local,
            target,
            content,
            trace,
            scope,
            tried: Tried::default(),
            started: local.scheduler.now(),
            tries_left: match tries_max {
                0 => servers,
                most => servers.min(u32::try_from(most).unwrap_or(u32::MAX)),
            },
            group,
            settings,
        }
    }

    /// Tries servers until one answers.
    async fn run<X: Exchange<Engine = E>>(
        &mut self,
        exchange: &mut X,
        request: &mut Request,
    ) -> AnswerOf<E> {
        let mut is_first = true;
        loop {
            let follows_redirect = std::mem::take(&mut is_first);
            let Some(selected) = self.select(request, follows_redirect) else {
                return self.give_up(Fault::NoPeer, request);
            };
            let tried = self.attempt(selected, exchange, request).await;
            let (fault, selected, was_reused) = match tried {
                Ok(answered) => return self.answer(answered, exchange, request),
                Err(failed) => failed,
            };
            self.report(selected, fault, request);
            if matches!(
                fault,
                Fault::ClientGone(_) | Fault::Content(_) | Fault::NotSpelled | Fault::NotBound
            ) {
                return self.give_up(fault, request);
            }
            if was_reused && fault.is_of_connection() {
                // The server may have closed a kept connection at any time: that says nothing about the server.
                self.tried.forget_last();
            } else {
                self.tries_left = self.tries_left.saturating_sub(1);
            }
            if !self.may_try_another(fault, request) {
                return self.give_up(fault, request);
            }
        }
    }
}

/// A try that failed: why, the server, and whether its connection was a kept one.
type FailedTry = (Fault, Selected, bool);

/// A try that brought an answer.
struct Answered<E: Engine> {
    connection: UpstreamConnection<E>,
    head: AnswerHead,
}

impl<E: Engine> Proxying<'_, E> {
    /// One try.
    async fn attempt<X: Exchange<Engine = E>>(
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
        };
        let mut head = local.take_buffer();
        let scan = match self.emit_request(attempt.kind, request, &mut head) {
            Ok(scan) => scan,
            Err(fault) => return Err((fault, selected, false)),
        };
        let mut connection = self.connect(&attempt, selected, request).await?;
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
        match answered {
            Ok(head) if head.head.status == SWITCHING && !self.may_switch(request) => {
                Err((Fault::InvalidSwitch, connection.into_selected(), false))
            }
            Ok(head) if self.is_unwanted(head.head.status, request) => Err((
                Fault::Status(head.head.status),
                connection.into_selected(),
                false,
            )),
            Ok(head) => Ok(Answered { connection, head }),
            Err(fault) => {
                let was_reused = connection.is_reused;
                Err((fault, connection.into_selected(), was_reused))
            }
        }
    }

    /// What of the method that is sent determines the answer's framing.
    fn kind(&self, request: &mut Request) -> RequestKind {
        let location = Arc::clone(&request.location);
        match (self.target.pass.protocol, &location.proxy_http.method) {
            (PassProtocol::Http, Some(_)) => {
                RequestKind::of(Method::parse(&http::method(request, self.local)))
            }
            _ => RequestKind::of(request.method),
        }
    }

    /// Appends the head of the request in the protocol of the location; returns what reads its answer's.
    fn emit_request(
        &self,
        kind: RequestKind,
        request: &mut Request,
        out: &mut Vec<u8>,
    ) -> Result<HeadScan, Fault> {
        let (protocol, framing) = (self.target.pass.protocol, self.content.framing(request));
        let key = match protocol {
            PassProtocol::Http => {
                http::emit_request(&self.target, framing, request, self.local, out);
                0..0
            }
            _ => gateway::emit_request(protocol, framing, request, self.local, out)?,
        };
        let key = out.get(key).unwrap_or_default();
        Ok(HeadScan::new(protocol, kind, &request.location, key))
    }

    /// Whether the client asked for another protocol: without it, what follows 101 could be anything, and the client would
    /// read it as answers.
    fn may_switch(&self, request: &Request) -> bool {
        let head = &request.message.head;
        self.target.pass.protocol == PassProtocol::Http
            && head.version == Version::Http11
            && head.has(KnownField::Upgrade)
    }

    /// No server answers.
    fn give_up(&self, fault: Fault, request: &mut Request) -> AnswerOf<E> {
        match fault {
            Fault::NoPeer => {
                let now = self.local.scheduler.now();
                self.trace.ended(Some(fault.status().0), 0, now);
                self.local
                    .log_error(Some(request), fault.level(), format_args!("{fault}"));
            }
            Fault::Content(error) => {
                return Answer::without_content(error, request, self.local);
            }
            Fault::ClientGone(_) => {
                request.sent.status = fault.status().0;
                return Answer::Close;
            }
            _ => {}
        }
        Answer::Status(fault.status())
    }
}

/// RFC 9110 15.2.2.
const SWITCHING: u16 = Status::SWITCHING_PROTOCOLS.0;

fn settings_of(location: &Location, protocol: PassProtocol) -> Arc<PassSettings> {
    Arc::clone(match protocol {
        PassProtocol::Http => &location.proxy,
        PassProtocol::Fastcgi => &location.fastcgi,
        PassProtocol::Uwsgi => &location.uwsgi,
        PassProtocol::Scgi => &location.scgi,
        PassProtocol::Memcached => &location.memcached,
    })
}
