//! Hot answers: kept whole, serialised, found by the request's bytes before any phase runs.
//!
//! An answer is kept when it was made only from its key and the file's state (`Request::pure`), and it is given as long
//! as the open-file cache holds the file to be unchanged, until `open_file_cache_valid` has passed or the configuration
//! changes. Such a request costs a parse, a look-up and a copy. Without `open_file_cache` nothing is kept: nginx examines
//! the file each time, and so does this server. An answer holds at most 64 KiB of content. One that is logged keeps the
//! request it was made for (`LogTemplate`), so that a log line costs no second request.
//!
//! Independently, a file up to 512 KiB is compressed once for each of its states (`delivery/compressed.rs`), with or
//! without `open_file_cache`.

/// `limit_req`.
pub(crate) mod limits;

/// Recent requests, byte for byte.
mod recent;

use crate::frang::head::{self, ReachedPort};
use crate::listener_context::{ListenerContext, ip_of};
use crate::open_files::Freshness;
use crate::request::{ConnectionFacts, Request, real_ip};
use crate::zones::HotZones;
use hashbrown::{Equivalent, HashMap};
use limits::HotLimits;
use mill_config::config::Location;
use mill_http::field::KnownField;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::h2::response::emit_kept_block;
use mill_http::head::RequestHead;
use mill_http::method::Method;
use mill_http::version::Version;
use mill_runtime::payload::Shared;
use mill_runtime::time::{Duration, Instant, UnixTime};
use recent::{RecentRequests, Source};
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A worker's hot answers. Bounded in number and bytes; when it is full it is cleared: frequent requests soon fill it
/// again.
#[derive(Debug)]
pub struct HotAnswers {
    answers: HashMap<HotKey, Rc<HotAnswer>>,
    bytes: usize,
    /// Some of them have limits.
    are_limited: bool,
    recent: RecentRequests<Rc<HotAnswer>>,
    /// When it is next looked for answers that no cache has any more.
    sweep_at: Instant,
    /// The head of the current request; kept for its memory.
    head: RequestHead,
}

/// The parts of a request that a kept answer may depend on. The method is GET. The version is HTTP/1.1, or 1.0 without
/// `Accept-Encoding`: a compressed answer is in chunks, and `gzip_http_version` decides which clients may get one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct HotKey {
    pub listener: u32,
    pub host: Box<[u8]>,
    pub target: Box<[u8]>,
    pub accept_encoding: Option<Box<[u8]>>,
}

/// One answer, as it is sent.
#[derive(Debug)]
pub struct HotAnswer {
    /// The head with `Connection: keep-alive`, and with `Connection: close`.
    pub keep_alive_head: RefCell<Box<[u8]>>,
    pub close_head: RefCell<Box<[u8]>>,
    /// The position of the date's 29 bytes in both heads.
    pub date_at: usize,
    /// Head and content in one piece, for a connection that stays open; made when the date first changes.
    pub whole: RefCell<Option<Shared>>,
    /// The second of the date in both heads.
    pub date_second: Cell<i64>,
    pub body: Shared,
    /// The content within `body`, without chunks.
    pub content: Range<usize>,
    /// Made when it is first asked for.
    pub h2_block: RefCell<Option<H2Block>>,
    pub status: u16,
    /// Keep-alive limits and logs are the location's.
    pub location: Arc<Location>,
    pub(crate) zones: HotZones,
    /// `None` without `limit_req`.
    pub(crate) limits: Option<Box<HotLimits>>,
    /// The file it was made from; the answer is given as long as that is fresh.
    pub freshness: Freshness,
    /// The template of its log lines, if there are logs.
    pub log_template: Option<RefCell<LogTemplate>>,
}

/// An answer's head as HTTP/2 has it.
#[derive(Debug)]
pub struct H2Block {
    bytes: Box<[u8]>,
    /// The position of the date's bytes.
    date_at: Option<usize>,
}

/// The request that a kept answer was first made for. A later request with the same answer differs in what
/// [`LogTemplate::turn_into`] sets.
#[derive(Debug)]
pub struct LogTemplate {
    request: Box<Request>,
    /// Their values when the answer was made, before a log evaluated more of them.
    variables: Vec<Option<Vec<u8>>>,
}

/// The result of a look-up.
#[derive(Debug)]
pub enum Looked {
    /// Answer with this.
    Found {
        answer: Rc<HotAnswer>,
        /// The client asks to keep the connection open.
        keep: bool,
        /// Bytes of a next request have arrived.
        more: bool,
        /// Bytes of the request.
        received: usize,
    },
    /// Not found, incomplete, or refused: the request goes the whole way.
    Missed,
}

impl HotAnswers {
    /// The answer to a request whose head was made of the fields of HTTP/2. What asks still has to ask for its limits.
    pub fn find_of_fields(
        &mut self,
        bytes: &[u8],
        listener: &ListenerContext,
        now: Instant,
    ) -> (usize, Looked) {
        self.look_up(bytes, listener, now, true, |_| true)
    }

    /// Looks up the answer to the request at the beginning of `bytes`; also returns the bytes of the request, 0 if it
    /// was missed. An answer with limits is missed unless they are passed.
    pub(crate) fn find(
        &mut self,
        bytes: &[u8],
        listener: &ListenerContext,
        now: Instant,
        passes: impl FnOnce(&HotLimits) -> bool,
    ) -> (usize, Looked) {
        self.look_up(bytes, listener, now, false, passes)
    }

    fn look_up(
        &mut self,
        bytes: &[u8],
        listener: &ListenerContext,
        now: Instant,
        is_of_fields: bool,
        passes: impl FnOnce(&HotLimits) -> bool,
    ) -> (usize, Looked) {
        // Where nothing is kept, such as without `open_file_cache`, the request is not parsed twice.
        if self.answers.is_empty() {
            return (0, Looked::Missed);
        }
        if now >= self.sweep_at {
            self.sweep(now);
        }
        let source = Source {
            listener: listener.id,
            is_of_fields,
        };
        if let Some((answer, keep)) = self.recent.find(source, bytes)
            && answer.freshness.is_fresh(now)
        {
            if answer.limits.as_ref().is_some_and(|limits| !passes(limits)) {
                return (0, Looked::Missed);
            }
            answer.freshness.count_use(now);
            let answer = Rc::clone(answer);
            let found = Looked::Found {
                answer,
                keep,
                more: false,
                received: bytes.len(),
            };
            return (bytes.len(), found);
        }
        // Only GET has kept answers.
        if !bytes.starts_with(b"GET ") {
            return (0, Looked::Missed);
        }
        let head = &mut self.head;
        head.clear();
        head.is_of_fields = is_of_fields;
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
        if head.version == Version::Http10 && key.accept_encoding.is_some() {
            // Kept answers were made for HTTP/1.1 and may be compressed, which `gzip_http_version` decides.
            return (0, Looked::Missed);
        }
        let Some(answer) = self.answers.get(&key) else {
            return (0, Looked::Missed);
        };
        if is_limited(&answer.location, head, bytes, listener) {
            return (0, Looked::Missed);
        }
        let speaks_to_caches = head.has(KnownField::CacheControl) || head.has(KnownField::Pragma);
        if !answer.freshness.is_fresh(now)
            || (speaks_to_caches && answer.freshness.heeds_requests())
        {
            return (0, Looked::Missed);
        }
        if answer.limits.as_ref().is_some_and(|limits| !passes(limits)) {
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
        // A log line needs the head.
        if !more && answer.log_template.is_none() {
            self.recent.note(source, bytes, Rc::clone(&answer), keep);
        }
        let found = Looked::Found {
            answer,
            keep,
            more,
            received: consumed,
        };
        (consumed, found)
    }

    pub fn insert(&mut self, key: HotKey, answer: HotAnswer) {
        let size = answer.size() + key.size();
        self.recent.clear();
        if self.answers.len() >= ANSWERS_MAX || self.bytes + size > BYTES_MAX {
            self.clear();
        }
        let key_size = key.size();
        self.bytes += size;
        self.are_limited |= answer.limits.is_some();
        if let Some(former) = self.answers.insert(key, Rc::new(answer)) {
            self.bytes = self.bytes.saturating_sub(former.size() + key_size);
        }
    }

    /// Lets go of the answers that caches have removed or that are stale: their memory is beside what a cache may hold. Costs a
    /// look at each answer, every [`SWEEP_INTERVAL`], in a worker that has requests.
    fn sweep(&mut self, now: Instant) {
        self.sweep_at = now + SWEEP_INTERVAL;
        let before = self.answers.len();
        let bytes = &mut self.bytes;
        self.answers.retain(|key, answer| {
            let is_over = answer.freshness.is_over(now);
            if is_over {
                *bytes = bytes.saturating_sub(answer.size() + key.size());
            }
            !is_over
        });
        if self.answers.len() < before {
            self.recent.clear();
        }
    }

    /// Whether [`Self::find`] may ask for the limits of an answer.
    pub(crate) const fn are_limited(&self) -> bool {
        self.are_limited
    }

    pub fn clear(&mut self) {
        self.answers.clear();
        self.recent.clear();
        self.bytes = 0;
        self.are_limited = false;
    }
}

impl HotKey {
    fn size(&self) -> usize {
        self.host.len() + self.target.len() + size_of::<Self>()
    }
}

impl HotAnswer {
    /// Head and content in one piece for a connection that stays open, if they are small: one piece is queued in half
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

    /// The content, without chunks.
    pub fn content(&self) -> &[u8] {
        self.body.get(self.content.clone()).unwrap_or_default()
    }

    /// Passes the head as HTTP/2 has it.
    pub fn with_h2_block<R>(&self, use_block: impl FnOnce(&[u8]) -> R) -> R {
        let mut block = self.h2_block.borrow_mut();
        let block = block.get_or_insert_with(|| {
            let mut bytes = Vec::new();
            let date_at = emit_kept_block(&self.keep_alive_head.borrow(), &mut bytes);
            let bytes = bytes.into();
            H2Block { bytes, date_at }
        });
        use_block(&block.bytes)
    }

    /// Sets the date in all heads: `second`, whose IMF-fixdate is `date`.
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
        if let Some(block) = &mut *self.h2_block.borrow_mut()
            && let Some(at) = block.date_at
            && let Some(place) = block.bytes.get_mut(at..at + date.len())
        {
            place.copy_from_slice(date);
        }
    }

    fn size(&self) -> usize {
        let (head, body) = (self.keep_alive_head.borrow().len(), self.body.len());
        let whole = Some(head + body).filter(|len| *len <= WHOLE_BYTES_MAX);
        head * 2 + body + whole.unwrap_or(0) + size_of::<Self>()
    }
}

impl LogTemplate {
    /// `request` has been answered and logged; `variables` are its values before it was logged.
    pub fn new(request: Box<Request>, variables: Vec<Option<Vec<u8>>>) -> RefCell<Self> {
        RefCell::new(Self { request, variables })
    }

    /// Turns the template into the request that was just answered, for its log line. Its message is in place already.
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
        request.told_client = None;
        real_ip::find(request);
        request.started = now;
        request.started_wall_clock = wall_clock;
        request.id = None;
        request.variables.clone_from(&self.variables);
        request.sent.bytes = arrival.sent_bytes;
        request
    }
}

/// The values of a request that differ from those of the request its answer was made for.
#[derive(Debug)]
pub struct HitContext {
    pub connection: Rc<ConnectionFacts>,
    pub connection_requests: u64,
    pub pipelined: bool,
    /// Head and content.
    pub sent_bytes: u64,
}

/// Whether the head breaks a limit of `frang`: the request is refused the whole way.
fn is_limited(
    location: &Location,
    head: &RequestHead,
    bytes: &[u8],
    listener: &ListenerContext,
) -> bool {
    if listener.head_limits().broken(head).is_some() {
        return true;
    }
    let settings = &location.frang;
    settings.checks_heads() && {
        let reached = ReachedPort {
            port: ip_of(&listener.address).map_or(0, |address| address.port()),
            is_tls: listener.may_have_tls(),
        };
        head::broken(settings, head, bytes, reached).is_some()
    }
}

/// Whether the request has fields that filters depend on besides `Accept-Encoding`: through a proxy, or authorized.
fn is_for_the_filters(head: &RequestHead) -> bool {
    head.has(KnownField::Via) || head.has(KnownField::Authorization)
}

impl Default for HotAnswers {
    fn default() -> Self {
        Self {
            answers: HashMap::new(),
            bytes: 0,
            are_limited: false,
            recent: RecentRequests::default(),
            sweep_at: Instant::from_nanos(0),
            head: RequestHead::default(),
        }
    }
}

/// A borrowed key.
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

/// The largest content that is kept, in bytes; larger files go by `sendfile`.
pub const CONTENT_MAX: u64 = 64 * 1024;

/// Bytes of head and content that are also kept in one piece: this copy is remade once a second, which must be
/// negligible beside the answers that it serves.
const WHOLE_BYTES_MAX: usize = 4 * 1024;

/// Time between two looks for answers that no cache has any more.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The most answers, and the most bytes of them, that a worker keeps.
const ANSWERS_MAX: usize = 16 * 1024;
const BYTES_MAX: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
