//! A request on its way, and the spine that leads it through its phases.
//!
//! The phases are nginx's, in nginx's order, and so is what leads back to an earlier one: a rewrite to the look-up of
//! the location, an internal redirect to the server's rewrites, a named location to its own rewrites.

/// The making of a request from a head, and the server that its host names.
mod arrival;

/// The location of a path, and whom it lets in by its nature: `internal`, `client_max_body_size`, `limit_except`.
pub(crate) mod locate;

/// `rewrite`, `return`, `set`, `if`, `break`.
mod rewrite;

/// `allow`, `deny`, `satisfy`.
mod access;

/// `try_files`.
pub(crate) mod try_files;

/// Which handler answers.
mod handler;

/// Content that no handler has read.
mod unread;

/// Where the file of a request is.
pub mod document;

/// `Location` as it is sent.
pub mod redirect;

/// How fast an answer may go out.
mod rate;

pub use arrival::Arrival;

use crate::answer::Answer;
use crate::content::Compressed;
use crate::delivery;
use crate::error_page;
use crate::exchange::Exchange;
use crate::filter;
use crate::local::{AnswerOf, FileOf, Local, OutcomeOf};
use crate::open_files::Freshness;
use crate::response::{FieldLine, Response};
use crate::site::Site;
use mill_config::config::{Captures, Location, Pattern, Server, Variable};
use mill_http::date::imf_fixdate;
use mill_http::head::RequestHead;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::stream::TransportInfo;
use mill_runtime::time::{Instant, UnixTime};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;
use std::sync::Arc;

/// Everything that is known of a request while it is handled. Handlers and filters read and change it; what is
/// evaluated for a variable comes from it.
#[derive(Debug)]
pub struct Request {
    /// The configuration this request began with.
    pub site: Arc<Site>,
    pub connection: Rc<ConnectionFacts>,
    /// How many requests the connection has brought, this one included.
    pub connection_requests: u64,
    pub message: Message,
    /// When its first byte was looked at.
    pub started: Instant,
    pub started_wall_clock: UnixTime,

    pub server: Arc<Server>,
    pub location: Arc<Location>,
    /// As sent, or GET after an `error_page` redirect.
    pub method: Method,
    /// Decoded and normalised path; changed by rewrites and internal redirects.
    pub uri: Vec<u8>,
    /// What follows `?`; changed by rewrites.
    pub args: Vec<u8>,
    /// The captures of the regular expression that matched last.
    pub captures: CaptureSet,
    /// Values of user variables (`set`, `map`, named captures) by their index; `None` is not set.
    pub variables: Vec<Option<Vec<u8>>>,
    /// Assigned by `set` to built-in variables that may be set, such as `$http_…`; they hide the request's own.
    pub overrides: Vec<(Variable, Vec<u8>)>,
    /// It came here by an internal redirect or a rewrite.
    pub internal: bool,
    /// How many internal redirects and rewrites to another location it has made.
    pub redirects: u8,
    /// An `error_page` was looked for, and `recursive_error_pages` is off: no further one is.
    pub error_page_used: bool,
    /// The path still fits the location it is in: `alias` may cut the location's name off.
    pub valid_location: bool,
    /// `try_files` found a file below an `alias` whose text does not end in the path.
    pub alias_takes_uri: bool,
    /// The content is thrown away already; its length bothers no one any more.
    pub content_refused: bool,
    /// The connection is to be closed after the answer, for the status of an error asks for it.
    pub closing: bool,
    /// `Location` of the redirect that is under way.
    pub redirect_target: Option<Vec<u8>>,
    /// The target's path is none: refused before the host was looked at.
    pub path_is_invalid: bool,
    /// It came behind another request, before that was answered: `$pipe`.
    pub pipelined: bool,
    /// `$request_id`, once somebody asked.
    pub id: Option<[u8; 16]>,
    /// `$realpath_root`, once something asked.
    pub real_root: Option<document::RealRoot>,
    /// How deep the evaluation of variables is nested.
    pub variable_depth: u8,
    /// The status that an `error_page` answers for.
    pub error_status: Option<u16>,
    /// Bytes per second: set by `set $limit_rate`, or evaluated when `limit_rate` has variables.
    pub limit_rate: Option<u64>,
    /// Bytes: evaluated when `limit_rate_after` has variables.
    pub limit_rate_after: Option<u64>,
    /// Nothing but what [`purity`](crate::variables::purity) lists went into the answer so far: it may be
    /// kept for equal requests.
    pub pure: bool,
    /// For how long the answer's file is known to be what it was found to be; `None` if no cache keeps it.
    pub freshness: Option<Freshness>,
    /// Another `Accept-Encoding` would have got another answer; said in `Vary` if `gzip_vary` is on.
    pub varies_by_encoding: bool,
    /// The field lines of an answer whose ranges could not be satisfied: they go with the 416, as in nginx.
    pub refused_range: Vec<FieldLine>,
    pub sent: Sent,
}

/// What became of a request.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one exists per request, and nearly all respond"
)]
pub enum Outcome<File> {
    /// Send this.
    Respond(Response<File>),
    /// Close the connection without an answer (444).
    Close,
}

/// What a phase says: go on with the next one, or break off with this answer.
pub type Phase<File> = ControlFlow<Answer<File>>;

/// Leads a request to its answer, and the answer to the client and into the logs.
pub async fn handle<X: Exchange>(exchange: &mut X, mut request: Request, local: &Local<X::Engine>) {
    let answer = match arrival::check(&mut request, local) {
        ControlFlow::Continue(()) => from_server(exchange, &mut request, local).await,
        ControlFlow::Break(answer) => answer,
    };
    let outcome = conclude(answer, exchange, &mut request, local).await;
    let outcome = unread::pass_over(outcome, exchange, &mut request, local).await;
    delivery::deliver(outcome, exchange, request, local).await;
}

/// The way of a request whose head was refused: the page of `status`, or what an `error_page` has for it.
pub async fn refuse<X: Exchange>(
    exchange: &mut X,
    mut request: Request,
    status: Status,
    local: &Local<X::Engine>,
) {
    let outcome = refusal(exchange, &mut request, status, local).await;
    let outcome = unread::pass_over(outcome, exchange, &mut request, local).await;
    delivery::deliver(outcome, exchange, request, local).await;
}

/// The answer to a request that is not what it must be; nothing follows it on the connection.
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
    let flow = async {
        access::check(request, local)?;
        try_files::choose(request, local).await?;
        handler::respond(exchange, request, local).await
    };
    match flow.await {
        ControlFlow::Continue(()) => Answer::Status(Status::NOT_FOUND),
        ControlFlow::Break(answer) => answer,
    }
}

/// Follows an answer until it is one that can be sent: redirects are walked, statuses get their pages. It ends,
/// because each redirect counts and there are few.
async fn conclude<X: Exchange>(
    mut answer: AnswerOf<X::Engine>,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> OutcomeOf<X::Engine> {
    loop {
        answer = match answer {
            Answer::Response(response) => match finish(response, request, local).await {
                Ok(response) => return Outcome::Respond(response),
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
            Answer::Named(name) => match locate::enter_named(&name, request, local) {
                ControlFlow::Continue(()) => match rewrite::in_location(request, local).await {
                    ControlFlow::Continue(()) => from_location(exchange, request, local).await,
                    ControlFlow::Break(answer) => answer,
                },
                ControlFlow::Break(answer) => answer,
            },
        }
    }
}

/// The last touches on every answer: the status of the error it is a page for, the filters, an absolute `Location`.
/// An error is the status that a filter answers with instead: a condition or a range does not hold.
async fn finish<E: Engine>(
    mut response: Response<FileOf<E>>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<Response<FileOf<E>>, Status> {
    if let Some(status) = request.error_status {
        response.status = Status(status);
    }
    if response.location.is_none() {
        response.location = request.redirect_target.take();
    }
    rate::resolve(request, local);
    request.sent.announce(&response);
    let mut response = filter::apply(request, response, local)?;
    request.sent.fields.clear();
    response.close |= request.closing;
    if response.status == Status::NO_CONTENT {
        // What a content would be is not said of none.
        response.content_type = None;
        response.last_modified = None;
    }
    response.location = response
        .location
        .map(|location| redirect::absolute(location, request));
    Ok(response)
}

/// What does not change while a connection lives.
#[derive(Debug)]
pub struct ConnectionFacts {
    /// Unique within the server process: `$connection`.
    pub number: u64,
    /// Which of the worker's listeners accepted it: `ListenerContext::id`.
    pub listener: u32,
    pub peer: Address,
    pub local: Address,
    /// What the transport measured, for `$tcpinfo_…`: asked anew by the connection for each request of a site that
    /// [mentions](crate::variables::mention::Mentions) one of them.
    pub transport: Cell<Option<TransportInfo>>,
    pub started: Instant,
}

/// The request's head, in memory of its own.
#[derive(Debug, Default)]
pub struct Message {
    /// From the request line's first byte to the empty line. What `head`'s spans refer to.
    pub bytes: Vec<u8>,
    pub head: RequestHead,
}

/// Captures and the text they were taken from.
#[derive(Debug, Default)]
pub struct CaptureSet {
    pub subject: Vec<u8>,
    pub ranges: Vec<Option<Range<usize>>>,
}

/// What has been sent, for logs and variables.
#[derive(Debug, Default)]
pub struct Sent {
    /// 0 until the answer's head is made. Of a connection that is closed without an answer what the log says: 444, 408, 400.
    pub status: u16,
    /// Head and content.
    pub bytes: u64,
    pub content_bytes: u64,
    /// The answer's field lines, for `$sent_http_…`; empty for an answer that came from the hot path.
    pub fields: Vec<FieldLine>,
    /// What compression of the content came to, if it was compressed.
    pub compressed: Option<Compressed>,
    /// The answer went out whole (`$request_completion`).
    pub complete: bool,
}

impl Request {
    /// The answer depends on a file. On one file at most an answer may depend that is given again.
    pub fn depend_on(&mut self, freshness: Option<&Freshness>) {
        match (freshness, &self.freshness) {
            (Some(new), None) => self.freshness = Some(new.clone()),
            (Some(new), Some(known)) if known.is_same(new) => {}
            _ => self.pure = false,
        }
    }
}

impl Request {
    /// The method's name as sent, or `GET` once an `error_page` made it so; empty of a request line that was refused.
    pub fn method_name(&self) -> &[u8] {
        let head = &self.message.head;
        let is_unknown = head.method_name.is_empty() && self.internal;
        if self.method == head.method && !is_unknown {
            head.method_name.of(&self.message.bytes)
        } else {
            self.method.name().as_bytes()
        }
    }

    /// The host that the client named: in lower case, without port; empty if it named none, or was refused before.
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

    /// Keeps what a regular expression captured in `subject`: numbers for `$1`, names for user variables.
    pub fn keep_captures(&mut self, pattern: Option<&Pattern>, subject: &[u8], ranges: Captures) {
        self.captures.subject.clear();
        self.captures.subject.extend_from_slice(subject);
        self.captures.ranges = ranges;
        for &(capture, variable) in pattern.map(Pattern::named).unwrap_or_default() {
            let value = self.captures.capture(capture).to_vec();
            if let Some(place) = self.variables.get_mut(variable) {
                *place = Some(value);
            }
        }
    }
}

impl Sent {
    /// Shows `$sent_http_…` and `$status` to those who ask before the answer is sent: the filters' own settings.
    pub(crate) fn announce<File>(&mut self, response: &Response<File>) {
        self.status = response.status.0;
        self.fields.clear();
        let mut add = |name: &'static str, value: Option<Vec<u8>>| {
            let name = Cow::Borrowed(name.as_bytes());
            self.fields
                .extend(value.map(|value| FieldLine { name, value }));
        };
        add("Content-Type", response.full_content_type());
        let len = response
            .content
            .len()
            .filter(|_| !response.status.has_no_content());
        add(
            "Content-Length",
            len.map(|len| len.to_string().into_bytes()),
        );
        let modified = response.last_modified.map(imf_fixdate);
        add("Last-Modified", modified.map(|date| date.to_vec()));
        add("ETag", response.etag.clone());
        add("Location", response.location.clone());
        self.fields.extend_from_slice(&response.fields);
    }
}

impl CaptureSet {
    /// Capture `number`; empty if it took no part.
    pub fn capture(&self, number: usize) -> &[u8] {
        let range = self.ranges.get(number).and_then(Option::clone);
        range
            .and_then(|range| self.subject.get(range))
            .unwrap_or_default()
    }
}
