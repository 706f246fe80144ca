//! `gzip_static`: `FILE.gz` sent as the compressed `FILE`.

use super::{content, refuse_kind, refuse_path, stays_in_root};
use crate::answer::Answer;
use crate::gzip::acceptable::{Answered, is_acceptable};
use crate::local::{FileOf, Local};
use crate::open_files::failure;
use crate::request::Request;
use crate::request::document::document_path;
use crate::response::Response;
use mill_config::config::LogLevel;
use mill_config::config::settings::GzipStatic;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, FileErrorKind, FileKind};

/// Answers with the compressed file if there is one and the client accepts it; declines otherwise, also after an error.
pub(super) async fn respond<E: Engine>(
    request: &mut Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    let wanted = request.location.gzip.precompressed;
    if wanted == GzipStatic::Off || !matches!(request.method, Method::Get | Method::Head) {
        return Answer::Declined;
    }
    let accepted = wanted == GzipStatic::Always
        || is_acceptable(request, &Answered::default(), local.scheduler.wall_clock());
    // With gzip_vary the answer has `Vary` for all clients if there is a compressed file.
    if !accepted && !request.location.gzip.vary {
        return Answer::Declined;
    }
    let mut document = document_path(request, local);
    document.path.extend_from_slice(b".gz");
    if !stays_in_root(&document) {
        return refuse_path(&document, request, local);
    }
    let path = document.path;
    let found = match super::open(&path, request, local).await {
        Ok(found) => found,
        Err(error) => {
            log_failure(&error, &path, request, local);
            return Answer::Declined;
        }
    };
    request.varies_by_encoding |= wanted == GzipStatic::On;
    if !accepted || found.metadata.kind == FileKind::Directory {
        return Answer::Declined;
    }
    if found.metadata.kind == FileKind::Other {
        return refuse_kind(&path, request, local);
    }
    match content(&found, request, local) {
        Answer::Response(mut response) => {
            encoded(&mut response);
            Answer::Response(response)
        }
        answer => answer,
    }
}

/// The answer names its coding; ranges of it would be ranges of the compressed file.
fn encoded<File>(response: &mut Response<File>) {
    response.ranges = false;
    response.push_field("Content-Encoding", *b"gzip");
}

/// A missing file is expected and not logged.
fn log_failure<E: Engine>(error: &FileError, path: &[u8], request: &Request, local: &Local<E>) {
    let level = match error.kind {
        FileErrorKind::NotFound | FileErrorKind::NotDirectory | FileErrorKind::NameTooLong => {
            return;
        }
        FileErrorKind::PermissionDenied | FileErrorKind::Symlink | FileErrorKind::Overloaded => {
            LogLevel::Error
        }
        FileErrorKind::Exhausted | FileErrorKind::Other => LogLevel::Crit,
    };
    let message = failure(error, path);
    local.log_error(Some(request), level, format_args!("{message}"));
}
