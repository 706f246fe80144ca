//! What upstream servers did for a request: `$upstream_…`, and the part `upstream: "…"` of error-log lines.

use super::fault::Fault;
use super::target::Target;
use super::trailers;
use crate::local::Local;
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_http::field::{Field, KnownField};
use mill_runtime::engine::Engine;
use mill_runtime::time::{Duration, Instant};
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use std::cell::{Cell, Ref, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The tries of one request, shared by the request and the content that still arrives while it is sent.
#[derive(Debug, Default)]
pub struct UpstreamTrace {
    tries: RefCell<Vec<Try>>,
    /// The URL of the current try, as error logs show it.
    url: RefCell<Vec<u8>>,
    /// `$proxy_host` and `$proxy_port`, where variables have made them.
    host: RefCell<Option<(Vec<u8>, Vec<u8>)>>,
    /// Why the content that was being sent has ended early; logged once the request is.
    pub(super) cut: Cell<Option<Fault>>,
    /// What is to be logged of the content, once the request is.
    notes: RefCell<Vec<(LogLevel, String)>>,
    /// The head of the last answer, which the answer to the client shares.
    head: RefCell<Rc<Vec<u8>>>,
    /// The field lines of that head.
    fields: RefCell<Vec<Field>>,
    /// The trailer section behind its content.
    trailers: RefCell<Vec<u8>>,
}

/// One try at one server.
#[derive(Clone, Debug)]
pub struct Try {
    server: TriedServer,
    /// Set by an internal redirect between this try and the one before: `:` in place of `,`.
    pub follows_redirect: bool,
    started: Instant,
    /// 0 as long as there is no answer: shown as `-`.
    pub status: u16,
    /// In the queue of the group, if it has one.
    pub queue_time: Option<Duration>,
    pub connect_time: Option<Duration>,
    pub header_time: Option<Duration>,
    pub response_time: Option<Duration>,
    /// Bytes of the answer's content.
    pub response_length: u64,
    /// Bytes of the whole answer, and of the whole request.
    pub received: u64,
    pub sent: u64,
}

/// Memory for the head of an answer.
#[derive(Debug, Default)]
pub(super) struct HeadMemory {
    pub(super) bytes: Vec<u8>,
    /// Its field lines, as spans of `bytes`.
    pub(super) fields: Vec<Field>,
}

/// Which server a try was at.
#[derive(Clone, Debug)]
pub(super) enum TriedServer {
    Peer(Arc<Peer>),
    /// The group has no server to try.
    NoneOf(Arc<Group>),
}

impl Try {
    /// `address:port`, a path behind `unix:`, or the group's name where it has no server to try.
    pub fn server(&self) -> &[u8] {
        self.server.name()
    }
}

impl TriedServer {
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Self::Peer(peer) => peer.name.as_bytes(),
            Self::NoneOf(group) => group.config().name.as_bytes(),
        }
    }
}

impl UpstreamTrace {
    /// Makes it ready for another request, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.count_bytes();
        let Self {
            tries,
            url,
            host,
            cut,
            notes,
            head,
            fields,
            trailers,
        } = self;
        tries.get_mut().clear();
        url.get_mut().clear();
        *host.get_mut() = None;
        cut.set(None);
        notes.get_mut().clear();
        match Rc::get_mut(head.get_mut()) {
            Some(alone) => alone.clear(),
            None => *head = RefCell::default(),
        }
        fields.get_mut().clear();
        trailers.get_mut().clear();
    }

    /// Tells the servers how many bytes they have got and sent: once a try, when the request is over.
    fn count_bytes(&self) {
        for one in self.tries.borrow().iter() {
            if let TriedServer::Peer(peer) = &one.server
                && one.sent + one.received > 0
            {
                peer.load().count_bytes(one.sent, one.received);
            }
        }
    }

    /// Gives up memory that it does not need to be logged.
    pub(crate) fn shrink(&self) {
        self.tries.borrow_mut().shrink_to_fit();
        self.url.borrow_mut().shrink_to_fit();
        self.fields.borrow_mut().shrink_to_fit();
        if let Some(alone) = Rc::get_mut(&mut self.head.borrow_mut()) {
            alone.shrink_to_fit();
        }
    }

    /// Begins a try. The first one of another location follows an internal redirect.
    pub(super) fn begin(&self, server: TriedServer, follows_redirect: bool, now: Instant) {
        self.tries.borrow_mut().push(Try {
            server,
            follows_redirect,
            started: now,
            status: 0,
            queue_time: None,
            connect_time: None,
            header_time: None,
            response_time: None,
            response_length: 0,
            received: 0,
            sent: 0,
        });
    }

    /// The try that begins has waited so long in its group's queue.
    pub(super) fn queued(&self, time: Duration) {
        self.current(|current| current.queue_time = Some(time));
    }

    pub(super) fn set_host(&self, target: &Target) {
        self.host.borrow_mut().clone_from(&target.evaluated);
    }

    /// `$proxy_host` and `$proxy_port`, where variables have made them.
    pub fn host(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.host.borrow().clone()
    }

    /// `emit` appends the URL of the next try to what it is given.
    pub(super) fn set_url(&self, emit: impl FnOnce(&mut Vec<u8>)) {
        let mut url = self.url.borrow_mut();
        url.clear();
        emit(&mut url);
    }

    /// Passes the URL of the current try to `show`; not called while there is none.
    pub fn show_url(&self, show: impl FnOnce(&[u8])) {
        let url = self.url.borrow();
        if !url.is_empty() {
            show(&url);
        }
    }

    pub(super) fn connected(&self, now: Instant) {
        self.current(|current| current.connect_time = Some(now.since(current.started)));
    }

    /// The head of the answer is here.
    pub(super) fn answered(&self, status: u16, now: Instant) {
        self.current(|current| {
            current.status = status;
            current.header_time = Some(now.since(current.started));
        });
    }

    /// The memory for the head of the next answer; the last one's is forgotten.
    pub(super) fn lend_head(&self) -> HeadMemory {
        let mut bytes = match Rc::get_mut(&mut self.head.borrow_mut()) {
            Some(alone) => std::mem::take(alone),
            None => Vec::new(),
        };
        let mut fields = self.fields.take();
        bytes.clear();
        fields.clear();
        self.trailers.borrow_mut().clear();
        HeadMemory { bytes, fields }
    }

    /// Keeps the head of an answer, for variables, and shares it.
    pub(super) fn keep_head(&self, memory: HeadMemory) -> Rc<Vec<u8>> {
        self.fields.replace(memory.fields);
        let mut head = self.head.borrow_mut();
        match Rc::get_mut(&mut head) {
            Some(alone) => *alone = memory.bytes,
            None => *head = Rc::new(memory.bytes),
        }
        Rc::clone(&head)
    }

    /// The field lines of the last answer.
    pub(super) fn fields(&self) -> Ref<'_, [Field]> {
        Ref::map(self.fields.borrow(), Vec::as_slice)
    }

    /// The value of the first field whose name fits.
    pub fn field(&self, fits: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let head = self.head.borrow();
        let fields = self.fields.borrow();
        let field = fields.iter().find(|field| fits(field.name.of(&head)))?;
        Some(field.value.of(&head).to_vec())
    }

    /// Keeps the trailer section of the answer, for variables.
    pub(super) fn keep_trailers(&self, bytes: &[u8]) {
        self.trailers.borrow_mut().extend_from_slice(bytes);
    }

    /// The value of the first trailer whose name fits.
    pub fn trailer(&self, fits: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let trailers = self.trailers.borrow();
        let mut fields = trailers::fields(&trailers);
        let (_, value) = fields.find(|(name, _)| fits(name))?;
        Some(value.to_vec())
    }

    /// The value of a cookie that the last answer sets.
    pub fn cookie(&self, name: &[u8]) -> Option<Vec<u8>> {
        let head = self.head.borrow();
        let fields = self.fields.borrow();
        let cookies = fields
            .iter()
            .filter(|field| field.known == KnownField::SetCookie);
        cookies
            .map(|field| field.value.of(&head))
            .find_map(|value| {
                let pair = value.split(|byte| *byte == b';').next()?;
                let (known, rest) = pair.split_at_checked(name.len())?;
                let value = rest.strip_prefix(b"=")?;
                known.eq_ignore_ascii_case(name).then(|| value.to_vec())
            })
    }

    /// Counts bytes that have arrived, and the content among them.
    pub(super) fn received(&self, bytes: u64, content: u64) {
        self.current(|current| {
            current.received += bytes;
            current.response_length += content;
        });
    }

    /// The answer is not read any further. Of the bytes that lie unread those count that fit into `most` with its head, as
    /// if they had been read together.
    pub(super) fn arrived(&self, unread: usize, most: u64) {
        self.current(|current| {
            let room = most.saturating_sub(current.received);
            current.received += room.min(unread as u64);
        });
    }

    /// The try has ended; `status` where it has failed.
    pub(super) fn ended(&self, status: Option<u16>, sent: u64, now: Instant) {
        self.current(|current| {
            current.status = status.unwrap_or(current.status);
            current.response_time = Some(now.since(current.started));
            current.sent = sent;
        });
    }

    /// Keeps a line for the error log; of many, the first ones.
    pub(super) fn note(&self, line: fmt::Arguments<'_>, level: LogLevel) {
        let mut notes = self.notes.borrow_mut();
        if notes.len() < NOTES_MAX {
            let line = line.to_string().chars().take(NOTE_CHARS_MAX).collect();
            notes.push((level, line));
        }
    }

    /// The lines that were kept.
    pub(super) fn take_notes(&self) -> Vec<(LogLevel, String)> {
        self.notes.take()
    }

    pub(super) fn cut(&self) -> Option<Fault> {
        self.cut.get()
    }

    fn current(&self, change: impl FnOnce(&mut Try)) {
        if let Some(current) = self.tries.borrow_mut().last_mut() {
            change(current);
        }
    }

    /// When its only try began, bytes of the answer's content, and of the whole answer; `None` if there were several.
    pub(super) fn only_try(&self) -> Option<(Instant, u64, u64)> {
        match self.tries.borrow().as_slice() {
            [one] => Some((one.started, one.response_length, one.received)),
            _ => None,
        }
    }

    /// One value of all tries, as nginx joins them: `, ` between two tries, ` : ` behind an internal redirect.
    pub fn join(&self, mut emit: impl FnMut(&Try, &mut Vec<u8>)) -> Option<Vec<u8>> {
        let tries = self.tries.borrow();
        let mut joined = Vec::new();
        for (index, one) in tries.iter().enumerate() {
            let separator: &[u8] = match (index, one.follows_redirect) {
                (0, _) => b"",
                (_, true) => b" : ",
                (_, false) => b", ",
            };
            joined.extend_from_slice(separator);
            emit(one, &mut joined);
        }
        (!tries.is_empty()).then_some(joined)
    }
}

impl Drop for UpstreamTrace {
    fn drop(&mut self) {
        self.count_bytes();
    }
}

/// Logs why the content of an answer has ended early.
pub(crate) fn log_cut<E: Engine>(request: &Request, local: &Local<E>) {
    let cut = request.upstream.as_ref().and_then(|trace| trace.cut());
    if let Some(fault) = cut {
        local.log_error(Some(request), fault.level(), format_args!("{fault}"));
    }
}

/// Logs what was noted while the content was sent.
pub(crate) fn log_notes<E: Engine>(request: &Request, local: &Local<E>) {
    let Some(trace) = &request.upstream else {
        return;
    };
    for (level, note) in trace.take_notes() {
        let message = format_args!("{note} while reading upstream");
        local.log_error(Some(request), level, message);
    }
}

/// Lines that are kept of one request, and characters of each: the bytes of nginx's longest line in the error log.
const NOTES_MAX: usize = 32;
const NOTE_CHARS_MAX: usize = 2048;

/// Seconds with three decimals, or `-`.
pub fn emit_seconds(duration: Option<Duration>, out: &mut Vec<u8>) {
    match duration {
        Some(duration) => {
            let ms = duration.as_millis();
            out.extend_from_slice(format!("{}.{:03}", ms / 1000, ms % 1000).as_bytes());
        }
        None => out.push(b'-'),
    }
}
