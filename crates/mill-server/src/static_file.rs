//! Files: the answer to GET and HEAD for a path that does not end in a slash.

/// The type of a file.
pub(crate) mod media_type;
/// The compressed file beside the file (`gzip_static`).
mod precompressed;

use crate::answer::Answer;
use crate::content::Content;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::open_files::{Lookup, OpenFile, failure};
use crate::request::Request;
use crate::request::document::{DocumentPath, document_path};
use crate::response::{FieldText, FileIdentity};
use mill_config::config::LogLevel;
use mill_http::escape::{EscapeSet, escape_uri};
use mill_http::etag::emit_etag;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, FileErrorKind, FileKind};
use std::rc::Rc;

/// Answers with the file of the path, or with its error.
pub async fn respond<E: Engine>(request: &mut Request, local: &Local<E>) -> Answer<FileOf<E>> {
    // A POST is refused below, only if the file exists.
    if !matches!(request.method, Method::Get | Method::Head | Method::Post) {
        return Answer::method_not_allowed(local);
    }
    if request.uri.ends_with(b"/") {
        return Answer::Declined;
    }
    match precompressed::respond(request, local).await {
        Answer::Declined => {}
        answer => return answer,
    }
    let document = document_path(request, local);
    if !stays_in_root(&document) {
        return refuse_path(&document, request, local);
    }
    let path = document.path;
    match open(&path, request, local).await {
        Err(error) => failed(&error, &path, request, local),
        Ok(found) => match found.metadata.kind {
            FileKind::Directory => redirect_to_directory(request),
            FileKind::Other => refuse_kind(&path, request, local),
            FileKind::Regular if request.method == Method::Post => {
                Answer::method_not_allowed(local)
            }
            FileKind::Regular => content(&found, request, local),
        },
    }
}

/// Opens what is at `path`, through the cache, and has the answer depend on it.
async fn open<E: Engine>(
    path: &[u8],
    request: &mut Request,
    local: &Local<E>,
) -> Result<Rc<OpenFile<FileOf<E>>>, FileError> {
    let lookup = Lookup::of(path, request, local);
    let found = local
        .open_files
        .open(local.engine.files(), path, &lookup)
        .await;
    let freshness = found
        .as_ref()
        .ok()
        .and_then(|found| found.freshness.as_ref());
    request.depend_on(freshness);
    found
}

/// Whether the path below `root` or `alias` stays there. The request's path is normalised, but an `alias` that ends in
/// a slash, in a location that does not, turns `/location../file` into `alias/../file`: nginx serves that.
pub(crate) fn stays_in_root(document: &DocumentPath) -> bool {
    let rest = document.path.get(document.root_len..).unwrap_or_default();
    !document.path.contains(&0) && rest.split(|byte| *byte == b'/').all(|name| name != b"..")
}

/// Answers for a path that leaves its root.
pub(crate) fn refuse_path<E: Engine>(
    document: &DocumentPath,
    request: &mut Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    let path = Text(&document.path);
    let message = format_args!("\"{path}\" leads out of its root");
    local.log_error(Some(request), LogLevel::Error, message);
    Answer::Status(Status::NOT_FOUND)
}

/// The status for a file that cannot be opened, and its log line.
fn failed<E: Engine>(
    error: &FileError,
    path: &[u8],
    request: &Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    let (level, status) = match error.kind {
        FileErrorKind::Overloaded => {
            return Answer::Status(overloaded(error, path, request, local));
        }
        FileErrorKind::NotFound | FileErrorKind::NotDirectory | FileErrorKind::NameTooLong => {
            (LogLevel::Error, Status::NOT_FOUND)
        }
        FileErrorKind::PermissionDenied | FileErrorKind::Symlink => {
            (LogLevel::Error, Status::FORBIDDEN)
        }
        FileErrorKind::Exhausted | FileErrorKind::Other => {
            (LogLevel::Crit, Status::INTERNAL_SERVER_ERROR)
        }
    };
    if status != Status::NOT_FOUND || request.location.log.not_found {
        let message = failure(error, path);
        local.log_error(Some(request), level, format_args!("{message}"));
    }
    Answer::Status(status)
}

/// The status for a file for which too many requests wait already (`max_queue` of `thread_pool`), and its log line.
pub(crate) fn overloaded<E: Engine>(
    error: &FileError,
    path: &[u8],
    request: &Request,
    local: &Local<E>,
) -> Status {
    local.counters.borrow_mut().files_refused += 1;
    let message = failure(error, path);
    local.log_error(Some(request), LogLevel::Error, format_args!("{message}"));
    Status::SERVICE_UNAVAILABLE
}

/// Answers for a FIFO, a socket, or a device.
fn refuse_kind<E: Engine>(path: &[u8], request: &Request, local: &Local<E>) -> Answer<FileOf<E>> {
    let message = format_args!("\"{}\" is not a regular file", Text(path));
    local.log_error(Some(request), LogLevel::Crit, message);
    Answer::Status(Status::NOT_FOUND)
}

/// Redirects to the same path with a slash, so that relative links in the directory's page work.
pub(crate) fn redirect_to_directory<File>(request: &mut Request) -> Answer<File> {
    let mut location = Vec::with_capacity(request.uri.len() + request.args.len() + 2);
    escape_uri(EscapeSet::Uri, &request.uri, &mut location);
    location.push(b'/');
    if !request.args.is_empty() {
        location.push(b'?');
        location.extend_from_slice(&request.args);
    }
    request.redirect_target = Some(location.into());
    Answer::Status(Status::MOVED_PERMANENTLY)
}

/// The answer with a regular file.
fn content<E: Engine>(
    found: &OpenFile<FileOf<E>>,
    request: &Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    // An opened regular file has one.
    let Some(file) = &found.file else {
        return Answer::Status(Status::INTERNAL_SERVER_ERROR);
    };
    let len = found.metadata.len;
    let modified = found.metadata.modified.seconds;
    let etag = request.location.headers.etag.then(|| {
        let mut etag = local.take_buffer();
        emit_etag(modified, len, &mut etag);
        let text = FieldText::copy(&etag);
        local.put_buffer(etag);
        text
    });
    let content = match len {
        0 => Content::bytes([]),
        len => Content::file(file.clone(), 0, len),
    };
    let mut response = local.take_response(Status::OK);
    response.content_type = media_type::of(&request.uri, &request.location.mime);
    response.last_modified = Some(modified);
    response.etag = etag;
    response.ranges = true;
    response.content = content;
    response.identity = Some(FileIdentity {
        device: found.metadata.device,
        inode: found.metadata.inode,
        modified: found.metadata.modified,
        len,
    });
    Answer::Response(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_dot_segments_below_its_root_is_refused() {
        let check = |path: &str, root_len: usize, expected: bool| {
            let path = path.as_bytes().to_vec();
            let document = DocumentPath { path, root_len };
            assert_eq!(stays_in_root(&document), expected, "{document:?}");
        };
        check("/srv/www/a", 8, true);
        check("/srv/www/a..b/..c", 8, true);
        check("/srv/../www/a", 11, true);
        check("/srv/www/../secret", 9, false);
        check("/srv/www/a/..", 8, false);
        check("/srv/www/a\0b", 8, false);
        check("/srv", 8, true);
    }
}
