//! Keeping an answer for those who ask the same again.

use super::Connection;
use crate::exchange::h1::HeadPlan;
use crate::hot::{CONTENT_MAX, HotAnswer, HotKey, Specimen};
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::{Content, Response};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::payload::Shared;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// An answer that is to be kept once it was sent and logged.
pub(super) struct Kept {
    key: HotKey,
    answer: HotAnswer,
    variables: Vec<Option<Vec<u8>>>,
}

impl Kept {
    /// Puts it among the hot answers, unless the configuration has changed since. `request` is the one it was made
    /// for.
    pub(super) fn insert<E: Engine>(self, request: Request, local: &Local<E>) {
        let Self {
            key,
            mut answer,
            variables,
        } = self;
        if !Arc::ptr_eq(&request.site, &local.site()) {
            return;
        }
        if !request.location.access_logs.is_empty() {
            answer.specimen = Some(Specimen::new(request, variables));
        }
        local.hot.borrow_mut().insert(key, answer);
    }
}

/// Prepares to keep the answer if nothing but its key and a fresh file went into it. Its content is in memory then,
/// also for this response.
pub(super) async fn prepare<E: Engine>(
    connection: &Connection<E>,
    request: &mut Request,
    response: &mut Response<FileOf<E>>,
) -> Option<Kept> {
    let local = &*connection.local;
    if !is_keepable(request, response) {
        return None;
    }
    let freshness = request.freshness.clone()?;
    if !freshness.is_fresh(local.scheduler.now()) {
        return None;
    }
    let body = content_in_memory(local, request, response).await?;
    let (mut keep_alive_head, mut close_head) = (Vec::new(), Vec::new());
    let plan = HeadPlan::new(request, response, true);
    let date_at = plan.emit(request, response, local, &mut keep_alive_head);
    let closing = HeadPlan {
        keep_alive: false,
        ..plan
    };
    closing.emit(request, response, local, &mut close_head);
    let message = &request.message;
    let text = |span: mill_http::span::Span| Box::from(span.of(&message.bytes));
    let key = HotKey {
        listener: connection.listener.id,
        host: text(message.head.host),
        target: text(message.head.target.whole),
        accept_encoding: message.head.accept_encoding().map(text),
    };
    let answer = HotAnswer {
        keep_alive_head: RefCell::new(keep_alive_head.into()),
        close_head: RefCell::new(close_head.into()),
        date_at,
        date_second: Cell::new(local.scheduler.wall_clock().seconds),
        body,
        status: response.status.0,
        location: Arc::clone(&request.location),
        freshness,
        specimen: None,
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
        && head.version == Version::Http11
        && head.is_plain()
        && response.status == Status::OK
        && !response.close
        && response.trailers.is_empty()
        && !response.streamed
        && !request.location.keepalive_disable.safari
        && !request.site.mentions.sent_connection
        && request.limit_rate.is_none()
        && source_len(&response.content).is_some_and(|len| len <= source_max(&response.content))
}

/// Reads, and if it is to be compressed compresses, the content whole; the response has it in memory from then on,
/// and so its length is known.
async fn content_in_memory<E: Engine>(
    local: &Local<E>,
    request: &mut Request,
    response: &mut Response<FileOf<E>>,
) -> Option<Shared> {
    let shared = match &response.content {
        Content::Bytes(bytes, range) => Shared::from(bytes.get(range.clone())?),
        Content::File { file, offset, len } => {
            Shared::from(read(local, file, *offset, *len).await?)
        }
        Content::Gzip { file, len, level } => {
            let content = read(local, file, 0, *len).await?;
            let mut compressed = Vec::new();
            let mut encoder = local.take_encoder(*level);
            encoder.push(&content, &mut compressed);
            encoder.finish(&mut compressed);
            local.put_encoder(*level, encoder);
            request.sent.uncompressed_bytes = Some(*len);
            Shared::from(compressed)
        }
        Content::Absent | Content::Pieces(_) => return None,
    };
    response.content = Content::Bytes(Shared::clone(&shared), 0..shared.len());
    Some(shared)
}

/// Reads a range of a file; `None` if it is shorter than it was: the ordinary way sees that, too.
async fn read<E: Engine>(
    local: &Local<E>,
    file: &FileOf<E>,
    offset: u64,
    len: u64,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let mut done = 0;
    while done < bytes.len() {
        let rest = bytes.get_mut(done..)?;
        match local
            .engine
            .files()
            .read_at(file, offset + done as u64, rest)
            .await
        {
            Ok(count) if count > 0 => done += count,
            _ => return None,
        }
    }
    Some(bytes)
}

/// What may be read to be kept: what is compressed takes less memory than it is read.
const fn source_max<File>(content: &Content<File>) -> u64 {
    match content {
        Content::Gzip { .. } => COMPRESSED_SOURCE_MAX,
        _ => CONTENT_MAX,
    }
}

/// Bytes that are read to answer with this, if it is known and can be kept.
fn source_len<File>(content: &Content<File>) -> Option<u64> {
    match content {
        Content::Bytes(_, range) => Some(range.len() as u64),
        Content::File { len, .. } | Content::Gzip { len, .. } => Some(*len),
        Content::Absent | Content::Pieces(_) => None,
    }
}

/// The largest file that is compressed at once and kept compressed, in bytes: about 10 ms of work at level 1.
const COMPRESSED_SOURCE_MAX: u64 = 512 * 1024;
