//! A request, and the spine that leads it through its phases.
//!
//! The phases are nginx's, in nginx's order, and so are the steps back to an earlier one: a rewrite repeats the look-up
//! of the location, an internal redirect the server's rewrites, a named location has its own rewrites.

/// What a request knows of its connection.
mod connection_facts;

/// What regular expressions have captured.
mod captures;

/// Whether the client's certificate is revoked.
mod revocation;

/// The making of a request from a head, and the server that its host names.
pub(crate) mod arrival;

/// The location of a path, and its own checks: `internal`, `client_max_body_size`, `limit_except`.
pub(crate) mod locate;

/// `rewrite`, `return`, `set`, `if`, `break`.
mod rewrite;

/// The client's address as a proxy in front tells it.
pub(crate) mod real_ip;

/// `allow`, `deny`, `satisfy`.
mod access;

/// `limit_req`.
pub(crate) mod limit_req;

/// `limit_conn`.
mod limit_conn;

/// `try_files`.
pub(crate) mod try_files;

/// Which handler answers.
mod handler;

/// Content that no handler has read.
mod unread;

/// Where the file of a request is.
pub mod document;

/// The value of `Location`.
pub mod redirect;

/// What has been sent.
mod sent;

/// How fast an answer may go out.
pub(crate) mod rate;

/// The piece of an answer that it is for.
pub(crate) mod slice;

pub use arrival::Arrival;
pub use captures::CaptureSet;
pub use connection_facts::ConnectionFacts;
pub use sent::Sent;

use crate::acme::challenges;
use crate::answer::Answer;
use crate::cache::note::{CacheNote, CacheOutcome};
use crate::challenge::{self, Challenged};
use crate::delivery;
use crate::error_page;
use crate::exchange::Exchange;
use crate::filter;
use crate::frang::refusal;
use crate::limits::note::LimitNote;
use crate::local::{AnswerOf, FileOf, Local, OutcomeOf, PhaseOf};
use crate::open_files::Freshness;
use crate::proxy::trace::UpstreamTrace;
use crate::proxy::websocket;
use crate::response::{FieldLine, Response};
use crate::site::Site;
use crate::zones::Visit;
use mill_config::config::{Location, Server, Variable};
use mill_http::head::RequestHead;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::time::{Instant, UnixTime};
use slice::Slice;
use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// The state of a request while it is handled. Handlers and filters read and change it; variables are evaluated from
/// it.
#[derive(Debug)]
pub struct Request {
    /// The configuration this request began with.
    pub site: Arc<Site>,
    pub connection: Rc<ConnectionFacts>,
    /// Requests that the connection has carried, this one included.
    pub connection_requests: u64,
    pub message: Message,
    /// When its first byte was read.
    pub started: Instant,
    pub started_wall_clock: UnixTime,

    /// The client as a proxy in front tells it, if one does: `set_real_ip_from`.
    pub told_client: Option<Address>,
    pub server: Arc<Server>,
    pub location: Arc<Location>,
    /// As sent, or GET after an `error_page` redirect.
    pub method: Method,
    /// Decoded and normalised path; changed by rewrites and internal redirects.
    pub uri: Vec<u8>,
    /// The part after `?`; changed by rewrites.
    pub args: Vec<u8>,
    /// The captures of the last regular expression that matched.
    pub captures: CaptureSet,
    /// Values of user variables (`set`, `map`, named captures) by their index; `None` is not set.
    pub variables: Vec<Option<Vec<u8>>>,
    /// Assigned by `set` to built-in variables that may be set, such as `$http_…`; they hide the request's own.
    pub overrides: Vec<(Variable, Vec<u8>)>,
    /// It was changed by an internal redirect or a rewrite.
    pub internal: bool,
    /// No internal redirect and no rewrite has changed `uri`: a server gets the target as it was sent.
    pub uri_is_as_sent: bool,
    /// Number of internal redirects and rewrites to another location.
    pub redirects: u8,
    /// An `error_page` was applied, and `recursive_error_pages` is off: there is no second one.
    pub error_page_used: bool,
    /// The path still matches its location: `alias` may cut the location's name off.
    pub valid_location: bool,
    /// `try_files` found a file below an `alias` whose text does not end in the path.
    pub alias_takes_uri: bool,
    /// The content has been discarded; its length is not checked again.
    pub content_refused: bool,
    /// It has broken a limit of `frang`, and is not checked again on the way to its answer.
    pub(crate) broke_limit: bool,
    /// What `challenge_cookie` has made of it.
    pub(crate) challenged: Challenged,
    /// The connection closes after the answer, because an error's status or a location on the way requires it.
    pub closing: bool,
    /// `Location` of the current redirect.
    pub redirect_target: Option<Box<[u8]>>,
    /// The target has no valid path: it is refused before the host is looked at.
    pub path_is_invalid: bool,
    /// It is for a server that asks for certificates, and not for the one that the handshake was with.
    pub(crate) is_misdirected: bool,
    /// It arrived before the previous request was answered: `$pipe`.
    pub pipelined: bool,
    /// `$request_id`, once evaluated.
    pub id: Option<[u8; 16]>,
    /// `$realpath_root`, once evaluated.
    pub real_root: Option<document::RealRoot>,
    /// How deep the evaluation of variables is nested.
    pub variable_depth: u8,
    /// The status that the `error_page` replaces.
    pub error_status: Option<u16>,
    /// Bytes per second: set by `set $limit_rate`, or evaluated when `limit_rate` has variables.
    pub limit_rate: Option<u64>,
    /// Bytes: evaluated when `limit_rate_after` has variables.
    pub limit_rate_after: Option<u64>,
    /// So far the answer depends only on what [`purity`](crate::variables::purity) lists: it may be kept for equal
    /// requests.
    pub pure: bool,
    /// How long the answer's file counts as unchanged; `None` if no cache has it.
    pub freshness: Option<Freshness>,
    /// Another `Accept-Encoding` would have had another answer; sent as `Vary` if `gzip_vary` is on.
    pub varies_by_encoding: bool,
    /// Field lines of an answer that this one replaces: whose ranges could not be satisfied, or that an upstream server
    /// has redirected.
    pub carried_fields: Vec<FieldLine>,
    /// Its content, once a handler has read it whole.
    pub stored_content: Option<Box<StoredContent>>,
    /// Some of its content was read for an upstream server.
    pub content_taken: bool,
    /// That content, for a location that an internal redirect leads to: proxy/content.rs alone knows its type.
    pub kept_content: Option<Box<dyn Any>>,
    /// What upstream servers did for it.
    pub upstream: Option<Rc<UpstreamTrace>>,
    /// What a cache had to do with it.
    pub(crate) cached: Option<Box<CacheNote>>,
    /// The piece of the answer that a server is asked for, once `$slice_range` has told it.
    pub(crate) slice: Option<Slice>,
    /// The same once the answer is put together of slices: the last one that was asked for, none when all are there.
    pub(crate) slice_under_way: Option<Rc<Cell<Option<Slice>>>>,
    /// What limits have made of it.
    pub(crate) limited: Option<Box<LimitNote>>,
    /// It is under way in the `status_zone` of its server.
    pub(crate) visit: Option<Visit>,
    /// Bytes of its content that were read and not discarded, with their framing.
    pub(crate) content_received: Cell<u64>,
    pub sent: Sent,
}

/// Where the content of a request is.
#[derive(Debug)]
pub enum StoredContent {
    /// Kept if the configuration mentions `$request_body`.
    Memory(Vec<u8>),
    File {
        path: Vec<u8>,
        /// It is removed with the request: `client_body_in_file_only clean`.
        is_removed: bool,
    },
}

/// The end of a request.
#[derive(Debug)]
pub enum Outcome<File> {
    /// Send this.
    Respond(Box<Response<File>>),
    /// Close the connection without an answer (444).
    Close,
}

/// The result of a phase: go on with the next one, or stop with this answer.
pub type Phase<File> = ControlFlow<Answer<File>>;

impl Request {
    /// Its answer is one that a cache keeps and that is fresh.
    pub(crate) fn is_cache_hit(&self) -> bool {
        let note = self.cached.as_ref();
        note.is_some_and(|note| note.outcome == CacheOutcome::Hit)
    }
}

/// Leads a request to its answer, and the answer to the client and into the logs.
pub async fn handle<X: Exchange>(
    exchange: &mut X,
    mut request: Box<Request>,
    local: &Local<X::Engine>,
) {
    let mut arrived = arrival::check(&mut request, local);
    if arrived.is_continue() && revocation::is_due(&request) {
        arrived = Box::pin(revocation::check(&request, local)).await;
    }
    let answer = match arrived {
        ControlFlow::Continue(()) => {
            real_ip::find(&mut request);
            match refusal::check_arrival(exchange, &mut request, local) {
                ControlFlow::Break(answer) => answer,
                ControlFlow::Continue(()) => match challenges::answer(&mut request) {
                    Some(answer) => answer,
                    None => from_server(exchange, &mut request, local).await,
                },
            }
        }
        // The target is malformed.
        ControlFlow::Break(Answer::Status(Status::BAD_REQUEST))
            if refusal::drops_malformed(exchange, &mut request) =>
        {
            Answer::Close
        }
        ControlFlow::Break(answer) => answer,
    };
    let outcome = conclude(answer, exchange, &mut request, local).await;
    let outcome = unread::pass_over(outcome, exchange, &mut request, local).await;
    delivery::deliver(outcome, exchange, request, local).await;
}

/// The way of a request whose head was refused: the page of `status`, or its `error_page`.
pub async fn refuse<X: Exchange>(
    exchange: &mut X,
    mut request: Box<Request>,
    status: Status,
    local: &Local<X::Engine>,
) {
    let is_malformed = !matches!(status, Status::FORBIDDEN | Status::REQUEST_TIMEOUT);
    let is_dropped = is_malformed && refusal::drops_malformed(exchange, &mut request);
    let outcome = match is_dropped {
        true => Outcome::Close,
        false => refusal(exchange, &mut request, status, local).await,
    };
    let outcome = unread::pass_over(outcome, exchange, &mut request, local).await;
    delivery::deliver(outcome, exchange, request, local).await;
}

/// The answer to an invalid request; the connection closes after it.
async fn refusal<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    status: Status,
    local: &Local<X::Engine>,
) -> OutcomeOf<X::Engine> {
    request.closing = true;
    request.content_refused = true;
    conclude(Answer::Status(status), exchange, request, local).await
}

/// All phases, from the server's rewrites on.
async fn from_server<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    locate::leave(request);
    let flow = async {
        rewrite::in_server(request, local).await?;
        locate::find(request, local)?;
        refusal::check_location(exchange, request, local)?;
        rewrite::in_location(request, local).await
    };
    match flow.await {
        ControlFlow::Continue(()) => from_location(exchange, request, local).await,
        ControlFlow::Break(answer) => answer,
    }
}

/// The phases of a location whose rewrites are done.
async fn from_location<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    real_ip::find(request);
    let flow = async {
        limit_req::check(exchange, request, local).await?;
        limit_conn::check(request, local)?;
        challenge::check(exchange, request, local)?;
        access::check(request, local)?;
        try_files::choose(request, local).await?;
        handler::respond(exchange, request, local).await
    };
    match flow.await {
        ControlFlow::Continue(()) => Answer::Status(Status::NOT_FOUND),
        ControlFlow::Break(answer) => answer,
    }
}

/// Processes an answer until it can be sent: redirects are followed, statuses get their pages. It ends because
/// redirects are counted and limited.
async fn conclude<X: Exchange>(
    mut answer: AnswerOf<X::Engine>,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> OutcomeOf<X::Engine> {
    loop {
        answer = match answer {
            Answer::Response(response) if lacks_tunnel(&response, request) => {
                error_page::answer(Status::NOT_IMPLEMENTED, request, local)
            }
            Answer::Response(mut response) => match finish(&mut response, request, local) {
                Ok(()) => return Outcome::Respond(response),
                Err(status) => error_page::answer(status, request, local),
            },
            Answer::Close => return Outcome::Close,
            Answer::Declined => Answer::Status(Status::NOT_FOUND),
            Answer::Status(status) => error_page::answer(status, request, local),
            Answer::Redirect { uri, args } => {
                match locate::redirect_internally(uri, args, request, local) {
                    ControlFlow::Continue(()) => from_server(exchange, request, local).await,
                    ControlFlow::Break(answer) => answer,
                }
            }
            Answer::Named(name) => match from_named(&name, exchange, request, local).await {
                ControlFlow::Continue(()) => from_location(exchange, request, local).await,
                ControlFlow::Break(answer) => answer,
            },
        }
    }
}

/// Enters a named location, with its rewrites.
async fn from_named<X: Exchange>(
    name: &[u8],
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> PhaseOf<X::Engine> {
    locate::enter_named(name, request, local)?;
    refusal::check_location(exchange, request, local)?;
    rewrite::in_location(request, local).await
}

/// RFC 8441 4: a success would say that the tunnel is open which the client has asked for.
fn lacks_tunnel<File>(response: &Response<File>, request: &Request) -> bool {
    let status = request.error_status.map_or(response.status, Status);
    websocket::is_asked_on_stream(request)
        && matches!(status.0, 200..=299)
        && !request.error_page_used
}

/// Completes every answer: the status of the error whose page it is, the filters, an absolute `Location`. The error is
/// the status with which a filter replaces the answer: a condition or a range does not hold.
fn finish<E: Engine>(
    response: &mut Response<FileOf<E>>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<(), Status> {
    if let Some(status) = request.error_status {
        response.status = Status(status);
        response.reason = None;
    }
    if response.location.is_none() {
        response.location = request.redirect_target.take().map(Vec::from);
    }
    rate::resolve(request, local);
    request.sent.status = response.status.0;
    if request.site.mentions.sent_fields {
        request.sent.announce(response);
    }
    let before = response.status;
    filter::apply(request, response, local)?;
    if response.status != before {
        response.reason = None;
    }
    request.sent.fields.clear();
    response.close |= request.closing;
    if response.status == Status::NO_CONTENT && request.location.pass.is_none() {
        // An answer without content has no content type, but what an upstream server says passes.
        response.content_type = None;
        response.last_modified = None;
    }
    if let Some(location) = response.location.take() {
        response.location = Some(redirect::absolute(location, request));
    }
    Ok(())
}

/// The request's head, in memory of its own.
#[derive(Debug, Default)]
pub struct Message {
    /// From the request line's first byte to the empty line. The spans of `head` refer to it.
    pub bytes: Vec<u8>,
    pub head: RequestHead,
}

impl Request {
    /// Lets go of all that it alone holds, but for the memory of its texts: it is over.
    pub(crate) fn forget(&mut self) {
        self.message = Message::default();
        self.uri.clear();
        self.args.clear();
        self.captures = CaptureSet::default();
        self.variables.clear();
        self.overrides.clear();
        self.redirect_target = None;
        self.real_root = None;
        self.freshness = None;
        self.carried_fields.clear();
        self.stored_content = None;
        self.kept_content = None;
        self.upstream = None;
        self.cached = None;
        self.limited = None;
        self.visit = None;
        self.sent.fields.clear();
    }

    /// The answer depends on a file. A kept answer may depend on at most one.
    pub fn depend_on(&mut self, freshness: Option<&Freshness>) {
        match (freshness, &self.freshness) {
            (Some(new), None) => self.freshness = Some(new.clone()),
            (Some(new), Some(known)) if known.is_same(new) => {}
            _ => self.pure = false,
        }
    }
}

impl Request {
    /// The client: the connection's peer, or what a proxy in front tells.
    pub fn client(&self) -> &Address {
        let told = self.told_client.as_ref();
        told.unwrap_or(&self.connection.peer)
    }

    /// `$request_length`: the lines of the head that were read whole, and the content that was not discarded.
    pub(crate) fn received_bytes(&self) -> u64 {
        let head = &self.message.head;
        let head_bytes = if self.path_is_invalid {
            head.request_line_bytes()
        } else {
            head.length_bytes()
        };
        u64::from(head_bytes) + self.content_received.get()
    }

    /// The method's name as sent, or `GET` after an `error_page`; empty if the request line was refused.
    pub fn method_name(&self) -> &[u8] {
        let head = &self.message.head;
        let is_unknown = head.method_name.is_empty() && self.internal;
        if self.method == head.method && !is_unknown {
            head.method_name.of(&self.message.bytes)
        } else {
            self.method.name().as_bytes()
        }
    }

    /// The host in lower case, without port; empty if the client sent none, or the head was refused before.
    pub fn host(&self) -> Cow<'_, [u8]> {
        if self.path_is_invalid {
            return Cow::Borrowed(b"");
        }
        let head = &self.message.head;
        let host = head.host.of(&self.message.bytes);
        if head.host_has_uppercase {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        }
    }

    /// Gives up memory that it does not need to be logged: it may wait for hours.
    pub(crate) fn shrink(&mut self) {
        self.message.bytes.shrink_to_fit();
        self.message.head.fields.shrink_to_fit();
        self.sent.fields.shrink_to_fit();
        self.uri.shrink_to_fit();
        self.args.shrink_to_fit();
        self.kept_content = None;
        if let Some(trace) = &self.upstream {
            trace.shrink();
        }
    }
}
