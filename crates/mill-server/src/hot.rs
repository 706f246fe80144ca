//! Answers that are there already: whole, serialised, found by what the client sent, before any phase runs.
//!
//! An answer is kept when nothing but its key and the file's state went into it (`Request::pure`), and it is given
//! while the open-file cache vouches for the file, until it has to look at the file again (`open_file_cache_valid`) or the
//! configuration changes. Then a request costs a parse, a look-up and a copy. Without `open_file_cache` nothing is kept:
//! nginx looks at the file each time, and so does this server. An answer holds at most 64 KiB of content. One that is
//! logged keeps the request it was made for ([`LogTemplate`]), so that a log line costs no second request.
//!
//! Apart from that a file up to 512 KiB is compressed once for each state it is found in (`delivery/compressed.rs`), with
//! or without `open_file_cache`.

/// Requests that were found lately, byte for byte.
mod recent;

use crate::listener_context::ListenerContext;
use crate::open_files::Freshness;
use crate::request::{ConnectionFacts, Request};
use hashbrown::{Equivalent, HashMap};
use mill_config::config::Location;
use mill_http::field::KnownField;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::head::RequestHead;
use mill_http::method::Method;
use mill_http::version::Version;
use mill_runtime::payload::Shared;
use mill_runtime::time::{Instant, UnixTime};
use recent::RecentRequests;
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// A worker's pre-serialised answers. Bounded in number and bytes; when it is full it starts anew, for what is
/// hot is soon there again.
#[derive(Debug)]
pub struct HotAnswers {
    answers: HashMap<HotKey, Rc<HotAnswer>>,
    bytes: usize,
    recent: RecentRequests<Rc<HotAnswer>>,
    /// The head of the request that is being looked at; kept for its memory.
    head: RequestHead,
}

/// What a client sent, as far as a kept answer may depend on it. The method is GET. The version is HTTP/1.1, or 1.0 if
/// no coding was asked for: a compressed answer is in chunks, and `gzip_http_version` decides who gets one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct HotKey {
    pub listener: u32,
    pub host: Box<[u8]>,
    pub target: Box<[u8]>,
    pub accept_encoding: Option<Box<[u8]>>,
}

/// One answer, as it goes out.
#[derive(Debug)]
pub struct HotAnswer {
    /// The head with `Connection: keep-alive`, and with `Connection: close`.
    pub keep_alive_head: RefCell<Box<[u8]>>,
    pub close_head: RefCell<Box<[u8]>>,
    /// Where the 29 bytes of the date stand in both heads.
    pub date_at: usize,
    /// Head and content in one, for a connection that is kept; made when it is first needed with another date.
    pub whole: RefCell<Option<Shared>>,
    /// The second that they show.
    pub date_second: Cell<i64>,
    pub body: Shared,
    pub status: u16,
    /// Keep-alive limits and logs are the location's.
    pub location: Arc<Location>,
    /// What the answer was made of; it is given as long as that is fresh.
    pub freshness: Freshness,
    /// What the log lines are made from, if there are logs.
    pub log_template: Option<RefCell<LogTemplate>>,
}

/// The request that a kept answer was first made for. Those that are answered with it differ in what
/// [`LogTemplate::turn_into`] sets.
#[derive(Debug)]
pub struct LogTemplate {
    request: Request,
    /// As they were when the answer was made, before a log evaluated more of them.
    variables: Vec<Option<Vec<u8>>>,
}

/// What came of looking at the bytes of a connection.
#[derive(Debug)]
pub enum Looked {
    /// Answer with this.
    Found {
        answer: Rc<HotAnswer>,
        /// The client wants the connection kept.
        keep: bool,
        /// Bytes of a next request are here.
        more: bool,
    },
    /// The whole way, then: unknown, incomplete, or refused.
    Missed,
}

impl HotAnswers {
    /// Looks for the answer to the request at the beginning of `bytes`; returns also how many bytes the request
    /// takes, 0 if it was missed.
    pub fn find(
        &mut self,
        bytes: &[u8],
        listener: &ListenerContext,
        now: Instant,
    ) -> (usize, Looked) {
        if let Some((answer, keep)) = self.recent.find(listener.id, bytes)
            && answer.freshness.is_fresh(now)
        {
            answer.freshness.count_use(now);
            let answer = Rc::clone(answer);
            let more = false;
            return (bytes.len(), Looked::Found { answer, keep, more });
        }
        let head = &mut self.head;
        head.clear();
        let Parsed::Complete { consumed } = parse_request(bytes, head, &listener.rules()) else {
            return (0, Looked::Missed);
        };
        if head.method != Method::Get || !head.is_plain() || is_for_the_filters(head) {
            return (0, Looked::Missed);
        }
        let key = HotKeyRef {
            listener: listener.id,
            host: head.host.of(bytes),
            target: head.target.whole.of(bytes),
            accept_encoding: head.accept_encoding().map(|span| span.of(bytes)),
        };
        if head.version != Version::Http11 && key.accept_encoding.is_some() {
            // What is kept was made for HTTP/1.1 and may be compressed, which `gzip_http_version` decides.
            return (0, Looked::Missed);
        }
        let Some(answer) = self.answers.get(&key) else {
            return (0, Looked::Missed);
        };
        if !answer.freshness.is_fresh(now) {
            return (0, Looked::Missed);
        }
        answer.freshness.count_use(now);
        let keep = head.connection.persists(head.version);
        let answer = Rc::clone(answer);
        if let Some(log_template) = &answer.log_template {
            let message = &mut log_template.borrow_mut().request.message;
            message.bytes.clear();
            message
                .bytes
                .extend_from_slice(bytes.get(..consumed).unwrap_or_default());
            std::mem::swap(&mut message.head, head);
        }
        let more = consumed < bytes.len();
        // A line of a log needs the head.
        if !more && answer.log_template.is_none() {
            self.recent
                .note(listener.id, bytes, Rc::clone(&answer), keep);
        }
        (consumed, Looked::Found { answer, keep, more })
    }

    pub fn insert(&mut self, key: HotKey, answer: HotAnswer) {
        let size = answer.size() + key.size();
        self.recent.clear();
        if self.answers.len() >= ANSWERS_MAX || self.bytes + size > BYTES_MAX {
            self.clear();
        }
        self.bytes += size;
        if let Some(former) = self.answers.insert(key, Rc::new(answer)) {
            self.bytes = self.bytes.saturating_sub(former.size());
        }
    }

    pub fn clear(&mut self) {
        self.answers.clear();
        self.recent.clear();
        self.bytes = 0;
    }
}

impl HotKey {
    fn size(&self) -> usize {
        self.host.len() + self.target.len() + size_of::<Self>()
    }
}

impl HotAnswer {
    /// Head and content in one piece for a connection that is kept, if they are small: one piece is handed over in half
    /// the time of two.
    pub fn whole(&self) -> Option<Shared> {
        let mut whole = self.whole.borrow_mut();
        if whole.is_none() {
            let head = self.keep_alive_head.borrow();
            if head.len() + self.body.len() > WHOLE_BYTES_MAX {
                return None;
            }
            *whole = Some([&head[..], &self.body[..]].concat().into());
        }
        whole.clone()
    }

    /// Makes both heads show `second`, whose IMF-fixdate is `date`.
    pub fn set_date(&self, second: i64, date: &[u8; 29]) {
        if self.date_second.replace(second) == second {
            return;
        }
        *self.whole.borrow_mut() = None;
        for head in [&self.keep_alive_head, &self.close_head] {
            let mut head = head.borrow_mut();
            if let Some(place) = head.get_mut(self.date_at..self.date_at + date.len()) {
                place.copy_from_slice(date);
            }
        }
    }

    fn size(&self) -> usize {
        let (head, body) = (self.keep_alive_head.borrow().len(), self.body.len());
        let whole = Some(head + body).filter(|len| *len <= WHOLE_BYTES_MAX);
        head * 2 + body + whole.unwrap_or(0) + size_of::<Self>()
    }
}

impl LogTemplate {
    /// `request` has been answered and logged; `variables` are those it had before it was logged.
    pub fn new(request: Request, variables: Vec<Option<Vec<u8>>>) -> RefCell<Self> {
        RefCell::new(Self { request, variables })
    }

    /// The request that was just found and answered, for its log line. Its message is in place already.
    pub fn turn_into(
        &mut self,
        arrival: HitContext,
        now: Instant,
        wall_clock: UnixTime,
    ) -> &mut Request {
        let request = &mut self.request;
        request.connection = arrival.connection;
        request.connection_requests = arrival.connection_requests;
        request.pipelined = arrival.pipelined;
        request.started = now;
        request.started_wall_clock = wall_clock;
        request.id = None;
        request.variables.clone_from(&self.variables);
        request.sent.bytes = arrival.sent_bytes;
        request
    }
}

/// What is its own of a request that is answered with a kept answer.
#[derive(Debug)]
pub struct HitContext {
    pub connection: Rc<ConnectionFacts>,
    pub connection_requests: u64,
    pub pipelined: bool,
    /// Head and content.
    pub sent_bytes: u64,
}

/// The request has fields that filters look at besides `Accept-Encoding`: through a proxy, or authorized.
fn is_for_the_filters(head: &RequestHead) -> bool {
    head.has(KnownField::Via) || head.has(KnownField::Authorization)
}

impl Default for HotAnswers {
    fn default() -> Self {
        Self {
            answers: HashMap::new(),
            bytes: 0,
            recent: RecentRequests::default(),
            head: RequestHead::default(),
        }
    }
}

/// A key that borrows what it is made of.
struct HotKeyRef<'a> {
    listener: u32,
    host: &'a [u8],
    target: &'a [u8],
    accept_encoding: Option<&'a [u8]>,
}

/// Hashes as [`HotKey`] does.
impl Hash for HotKeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.listener.hash(state);
        self.host.hash(state);
        self.target.hash(state);
        self.accept_encoding.hash(state);
    }
}

impl Equivalent<HotKey> for HotKeyRef<'_> {
    fn equivalent(&self, key: &HotKey) -> bool {
        self.listener == key.listener
            && *self.host == *key.host
            && *self.target == *key.target
            && self.accept_encoding == key.accept_encoding.as_deref()
    }
}

/// The largest content that is kept ready, in bytes; larger files go by `sendfile`.
pub const CONTENT_MAX: u64 = 64 * 1024;

/// Bytes of head and content that are kept in one piece as well: what is copied once a second must cost nothing beside the
/// answers that it is for.
const WHOLE_BYTES_MAX: usize = 4 * 1024;

/// The most answers, and the most bytes of them, that a worker keeps.
const ANSWERS_MAX: usize = 16 * 1024;
const BYTES_MAX: usize = 64 * 1024 * 1024;
