//! `proxy_pass` and its like: the request goes to a server of a group, and its answer to the client.
//!
//! The way: `target` (which group, which URI) → `content` (the request's content) → `named` (a name that variables
//! have made is resolved) → tries, each at another server:
//! `choice` brings a connection to it, `http` or `gateway` spells the request, `attempt` sends it and reads the head of
//! the answer (`scan`); `retry` decides on another try → `response` makes the answer ours → `source` brings its content
//! (`body`), while the exchange sends it.
//!
//! All of it runs in the task of the client's connection: the events of both streams wake that.

/// What is kept, and what is to be.
pub(crate) mod caching;

/// Answers in slices.
mod slicing;

/// Where the request goes.
mod target;

/// Servers that variables name.
mod named;

/// TLS to servers.
pub(crate) mod tls;

/// The request's content.
mod content;

/// Content that goes to the server while its answer comes.
mod pump;

/// A connection to a server.
pub mod connection;

/// What a connection becomes after 101.
pub(crate) mod tunnel;

/// WebSockets over HTTP/2.
pub(crate) mod websocket;

/// The request's spelling.
mod http;

/// The same in the protocols that are not HTTP.
mod gateway;

/// Which server, and a connection to it.
mod choice;

/// What a connection begins with.
mod proxy_header;

/// The near end of that connection.
pub(crate) mod binding;

/// A server, waited for if need be.
mod waiting;

/// Which server the request's session is bound to.
mod session;

/// Why that server.
mod decision;

/// One try.
mod attempt;

/// What comes of it.
mod tries;

/// 103 on its way to the client.
mod hints;

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

/// What follows it.
mod trailers;

/// A copy of it as a file.
mod store;

/// How fast it is read.
mod read_pace;

/// Why a try failed.
pub(crate) mod fault;

/// What servers did for a request.
pub mod trace;

/// A request of our own, which tells whether a server is healthy.
pub(crate) mod probe;

use crate::answer::Answer;
use crate::challenge::{self, Challenged};
use crate::exchange::Exchange;
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use crate::upstreams::WorkerGroup;
use caching::{Caching, LookedUp, NoClient, Question};
use content::RequestContent;
use fault::{Fault, Step};
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::PassSettings;
use mill_config::config::{Location, LogLevel};
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use mill_upstream::peer::Peer;
use mill_upstream::pool::Scope;
use mill_upstream::select::Tried;
use std::rc::Rc;
use std::sync::Arc;
use target::Target;
use tls::Securing;
use trace::UpstreamTrace;

/// Passes the request on, if its location says so.
pub(crate) async fn respond<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let answer = answer_one(exchange, request, local).await;
    match request.slice {
        Some(slice) => slicing::begin(answer, slice, request, local),
        None => answer,
    }
}

/// The answer of a server, or of a cache; with `slice`, to one slice.
async fn answer_one<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let Some(pass) = request.location.pass.clone() else {
        return Answer::Declined;
    };
    let target = match target::evaluate(&pass, request, local) {
        Ok(target) => target,
        Err(status) => return Answer::Status(status),
    };
    let caching = match caching::look_up(&target, exchange, request, local).await {
        LookedUp::Answered(answer) => return answer,
        LookedUp::Uncached => None,
        LookedUp::Ask(caching) => Some(caching),
    };
    if request.challenged == Challenged::OnlyKept {
        return challenge::refuse(request, local);
    }
    request.pure = false;
    pass_on(target, caching, exchange, request, local).await
}

/// Has a server asked for what a cache has and is stale, without a client.
async fn update<E: Engine>(caching: Box<Caching>, request: &mut Request, local: &Local<E>) {
    if let Some(pass) = request.location.pass.clone()
        && let Ok(target) = target::evaluate(&pass, request, local)
    {
        let mut exchange = NoClient::new();
        // What is kept of the answer goes on by itself.
        let answer = pass_on(target, Some(caching), &mut exchange, request, local).await;
        if let Answer::Response(response) = answer {
            response.content.release(local);
        }
    }
}

async fn pass_on<X: Exchange>(
    target: Target,
    caching: Option<Box<Caching>>,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let pass = Arc::clone(&target.pass);
    let trace = Rc::clone(request.upstream.get_or_insert_with(|| local.take_trace()));
    trace.set_host(&target);
    let settings = settings_of(&request.location, pass.protocol);
    let needs_client = !settings.ignore_client_abort;
    let content = match content::read(pass.protocol, &settings, exchange, request, local).await {
        Ok(content) => content,
        Err(answer) => return answer,
    };
    let group = named::group(&target.servers, needs_client, exchange, request, local).await;
    let group = match group {
        Ok(group) => group,
        Err(fault) => return without_server(fault, request, local),
    };
    let mut proxying = Proxying::new(settings, target, group, content, request, local);
    proxying.caching = caching;
    let answer = proxying.run(exchange, request).await;
    proxying.set_cookie(request);
    match answer {
        Answer::Response(_) | Answer::Close => proxying.content.release(local),
        _ => proxying.content.keep_for(request),
    }
    answer
}

/// What carries a request to a server.
type CarrierOf<E> = mill_multiplex::carrier::Carrier<mill_tls::transport::TransportOf<E>>;

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
    /// `None`: connections are in clear.
    securing: Option<Securing>,
    /// Its location has a cache.
    caching: Option<Box<Caching>>,
    tried: Tried,
    /// The name of the request's session, or of the server that it is bound to (`sticky`); empty if there is none.
    session: Vec<u8>,
    /// The last server that was chosen, if a cookie is to name it.
    named: Option<Arc<Peer>>,
    started: Instant,
    /// Servers that may still be tried.
    tries_left: u32,
    /// How often a server may still say that it has not begun, before that counts as a try.
    not_begun_left: u32,
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
        let securing = Securing::of(&target, request, local);
        let scope = binding::scope(
            target.pass.protocol,
            &settings,
            securing.as_ref(),
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
            securing,
            caching: None,
            tried: Tried::default(),
            session: session::lookup(group.group.config(), request, local),
            named: None,
            started: local.scheduler.now(),
            tries_left: match tries_max {
                0 => servers,
                most => servers.min(u32::try_from(most).unwrap_or(u32::MAX)),
            },
            group,
            settings,
            not_begun_left: NOT_BEGUN_MAX,
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
            let selected = match self.select(exchange, request, follows_redirect).await {
                Ok(selected) => selected,
                Err(fault) => return self.give_up(fault, request),
            };
            let failed = match self.attempt(selected, exchange, request).await {
                Ok(answered) if self.is_of_another(&answered) => {
                    self.ask_again(answered);
                    continue;
                }
                Ok(answered) => return self.answer(answered, exchange, request),
                Err(failed) => failed,
            };
            let (fault, was_reused) = (failed.fault, failed.was_reused);
            self.report(failed, request);
            if matches!(
                fault,
                Fault::ClientGone(_) | Fault::Content(_) | Fault::NotSpelled | Fault::NotBound
            ) {
                return self.give_up(fault, request);
            }
            if fault == Fault::NotBegun && self.not_begun_left > 0 {
                self.not_begun_left -= 1;
                self.tried.forget_last();
            } else if was_reused && fault.is_of_connection() {
                // The server may have closed a kept connection at any time: that says nothing about the server.
                self.tried.forget_last();
            } else {
                self.tries_left = self.tries_left.saturating_sub(1);
            }
            if !self.may_try_another(fault, request) {
                return self.give_up(fault, request);
            }
            if self.needs_client() && !self.content.is_streamed() && exchange.is_abandoned() {
                return self.give_up(Fault::ClientGone(Step::Connecting), request);
            }
            let text = format_args!("another server is tried after: {fault}");
            self.local.log_error(Some(request), LogLevel::Debug, text);
        }
    }
}

impl<E: Engine> Proxying<'_, E> {
    /// The request is given up when its client leaves.
    fn needs_client(&self) -> bool {
        !self.settings.ignore_client_abort
    }

    /// What a server is asked for the cache.
    fn question(&self) -> Option<&Question> {
        self.caching.as_ref().map(|caching| &caching.question)
    }

    /// No server answers.
    fn give_up(&self, fault: Fault, request: &mut Request) -> AnswerOf<E> {
        if fault == Fault::NoPeer {
            let now = self.local.scheduler.now();
            self.trace.ended(Some(fault.status().0), 0, now);
            self.local
                .log_error(Some(request), fault.level(), format_args!("{fault}"));
        }
        if let Some(caching) = &self.caching
            && let Some(kept) = caching.stale_for_fault(fault, request, self.local)
            && let Some(answer) = caching::serve_stale(&kept, &self.target, request, self.local)
        {
            return answer;
        }
        without_server(fault, request, self.local)
    }
}

/// The answer where no server gives one.
fn without_server<E: Engine>(fault: Fault, request: &mut Request, local: &Local<E>) -> AnswerOf<E> {
    match fault {
        Fault::Content(error) => {
            let words = format!(" while {}", Step::Sending.words());
            Answer::without_content_while(&words, error, request, local)
        }
        Fault::ClientGone(_) => {
            request.sent.status = fault.status().0;
            Answer::Close
        }
        _ => Answer::Status(fault.status()),
    }
}

/// A connection that ends says so once; more than a few in a row are no coincidence.
const NOT_BEGUN_MAX: u32 = 8;

fn settings_of(location: &Location, protocol: PassProtocol) -> Arc<PassSettings> {
    Arc::clone(match protocol {
        PassProtocol::Http => &location.proxy,
        PassProtocol::Fastcgi => &location.fastcgi,
        PassProtocol::Uwsgi => &location.uwsgi,
        PassProtocol::Scgi => &location.scgi,
        PassProtocol::Memcached => &location.memcached,
    })
}
