//! Keeping an answer for those who ask the same again.

use super::Connection;
use crate::exchange::h1::HeadPlan;
use crate::hot::{CONTENT_MAX, HotAnswer, HotKey};
use crate::local::FileOf;
use crate::request::Request;
use crate::response::{Content, Response};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::payload::Shared;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Keeps the answer among the hot ones if nothing but its key and a fresh file went into it. Its content is in
/// memory then, also for this response.
pub(super) async fn keep<E: Engine>(
    connection: &Connection<E>,
    request: &Request,
    response: &mut Response<FileOf<E>>,
) {
    let local = &*connection.local;
    if !is_keepable(request, response) {
        return;
    }
    let Some(freshness) = &request.freshness else {
        return;
    };
    if !freshness.is_fresh(local.scheduler.now()) {
        return;
    }
    let Some(body) = content_in_memory(connection, response).await else {
        return;
    };
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
        chunked: false,
        status: response.status.0,
        location: Arc::clone(&request.location),
        freshness: freshness.clone(),
    };
    local.hot.borrow_mut().insert(key, answer);
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
        && request.location.access_logs.is_empty()
        && request.limit_rate.is_none()
        && response.content.len().is_some_and(|len| len <= CONTENT_MAX)
}

/// Reads a file's content whole; the response has it in memory from then on.
async fn content_in_memory<E: Engine>(
    connection: &Connection<E>,
    response: &mut Response<FileOf<E>>,
) -> Option<Shared> {
    match &response.content {
        Content::Bytes(bytes, range) => bytes.get(range.clone()).map(Rc::from),
        Content::File { file, offset, len } => {
            let mut bytes = vec![0; usize::try_from(*len).ok()?];
            let mut done = 0;
            while done < bytes.len() {
                let rest = bytes.get_mut(done..)?;
                let at = *offset + done as u64;
                let files = connection.local.engine.files();
                match files.read_at(file, at, rest).await {
                    Ok(count) if count > 0 => done += count,
                    // Shorter than it was: the ordinary way sees that, too.
                    _ => return None,
                }
            }
            let shared = Shared::from(bytes);
            response.content = Content::Bytes(Rc::clone(&shared), 0..shared.len());
            Some(shared)
        }
        _ => None,
    }
}
