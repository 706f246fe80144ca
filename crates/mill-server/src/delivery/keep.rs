//! Keeping an answer for equal requests.

use super::compressed::SOURCE_MAX;
use crate::content::{Content, Part};
use crate::exchange::h1::{Framing, HeadPlan};
use crate::exchange::pace::Pace;
use crate::hot::limits::HotLimits;
use crate::hot::{CONTENT_MAX, HotAnswer, HotKey, LogTemplate};
use crate::limits::status::RequestStatus;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::Response;
use crate::whole_file;
use crate::zones::HotZones;
use mill_http::h1::emit::{CHUNK_END, LAST_CHUNK, emit_chunk_head};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Shared;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

/// An answer that is kept after it was sent and logged.
pub(super) struct Kept {
    key: HotKey,
    answer: HotAnswer,
    variables: Vec<Option<Vec<u8>>>,
}

impl Kept {
    /// Adds it to the hot answers, unless the configuration has changed since. `request` is the one it was made for.
    pub(super) fn insert<E: Engine>(self, mut request: Box<Request>, local: &Local<E>) {
        let Self {
            key,
            mut answer,
            variables,
        } = self;
        if !Arc::ptr_eq(&request.site, &local.site()) {
            return;
        }
        // The hot answer is for requests that pass at once.
        if let Some(note) = &mut request.limited {
            note.requests = note.requests.map(|_| RequestStatus::Passed);
        }
        if !request.location.log.access_logs.is_empty() {
            answer.log_template = Some(LogTemplate::new(request, variables));
        }
        local.hot.borrow_mut().insert(key, answer);
    }
}

/// Prepares to keep the answer if it was made only from its key and a fresh file. Its content is in memory then, also
/// for this response.
pub(super) async fn prepare<E: Engine>(
    response: &mut Response<FileOf<E>>,
    request: &mut Request,
    local: &Local<E>,
) -> Option<Kept> {
    if !is_keepable(request, response) {
        return None;
    }
    let freshness = request.freshness.clone()?;
    if !freshness.is_fresh(local.scheduler.now()) {
        return None;
    }
    let content = content_in_memory(&mut response.content, local).await?;
    let (mut keep_alive_head, mut close_head) = (Vec::new(), Vec::new());
    let plan = HeadPlan::new(request, response, true);
    let date_at = plan.emit(request, response, local, &mut keep_alive_head);
    let (body, range) = match plan.framing {
        Framing::Chunked => in_one_chunk(&content),
        // It ends with the connection: it cannot be sent twice.
        Framing::Close => return None,
        Framing::None | Framing::Length(_) => {
            let range = 0..content.len();
            (content, range)
        }
    };
    let closing = HeadPlan {
        keep_alive: false,
        ..plan
    };
    closing.emit(request, response, local, &mut close_head);
    let limits = HotLimits::of(request, local);
    let message = &request.message;
    let text = |span: mill_http::span::Span| Box::from(span.of(&message.bytes));
    let key = HotKey {
        listener: request.connection.listener,
        host: text(message.head.host),
        target: text(message.head.target.whole),
        accept_encoding: message.head.accept_encoding().map(text),
    };
    let answer = HotAnswer {
        keep_alive_head: RefCell::new(keep_alive_head.into()),
        close_head: RefCell::new(close_head.into()),
        date_at,
        whole: RefCell::new(None),
        date_second: Cell::new(local.scheduler.wall_clock().seconds),
        body,
        content: range,
        h2_block: RefCell::new(None),
        status: response.status.0,
        location: Arc::clone(&request.location),
        zones: HotZones::of(request, local),
        limits,
        freshness,
        log_template: None,
    };
    Some(Kept {
        key,
        answer,
        variables: request.variables.clone(),
    })
}

fn is_keepable<File>(request: &Request, response: &Response<File>) -> bool {
    let head = &request.message.head;
    request.pure
        && request.method == Method::Get
        && head.version != Version::Http10
        && head.is_plain()
        && response.status == Status::OK
        && !response.close
        && response.trailers.is_empty()
        // A generated content is kept only if it depends on a file, or what a cache has, alone: a listing is not.
        && (!response.streamed || response.identity.is_some() || request.is_cache_hit())
        && !request.location.connection.keepalive_disable.safari
        && !request.site.mentions.sent_connection
        && request.limit_rate.is_none()
        && response.content.len().is_some_and(|len| !Pace::of(request).limits(len))
        && is_small(&response.content)
}

/// Reads the whole content into memory.
async fn content_in_memory<E: Engine>(
    content: &mut Content<FileOf<E>>,
    local: &Local<E>,
) -> Option<Shared> {
    let shared = match content.only_part()? {
        Part::Bytes(bytes, range) if *range == (0..bytes.len()) => Shared::clone(bytes),
        Part::Bytes(bytes, range) => Shared::from(bytes.get(range.clone())?),
        Part::File { file, offset, len } => {
            Shared::from(whole_file::read(local, file, *offset, *len).await?)
        }
    };
    content.set_bytes(Shared::clone(&shared));
    Some(shared)
}

/// The content framed as one chunk, and the last chunk; and where it is in that.
fn in_one_chunk(content: &[u8]) -> (Shared, Range<usize>) {
    let mut start = 0;
    let mut framed = Vec::with_capacity(content.len() + 32);
    if !content.is_empty() {
        emit_chunk_head(content.len() as u64, &mut framed);
        start = framed.len();
        framed.extend_from_slice(content);
        framed.extend_from_slice(CHUNK_END);
    }
    framed.extend_from_slice(LAST_CHUNK);
    (Shared::from(framed), start..start + content.len())
}

/// Whether the content is small enough to be kept: what is in memory already may be larger.
fn is_small<File>(content: &Content<File>) -> bool {
    content.compression().is_none()
        && content.only_part().is_some_and(|part| match part {
            Part::Bytes(_, range) => range.len() as u64 <= SOURCE_MAX,
            Part::File { len, .. } => *len <= CONTENT_MAX,
        })
}
