//! `index`: the file that answers for a directory, by an internal redirect to it.
//!
//! The index file is looked up before its directory is: in a correct request both exist.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::log::{Errno, Text};
use crate::open_files::{Lookup, failure};
use crate::request::Request;
use crate::request::document::document_path;
use crate::static_file::{overloaded, refuse_path, stays_in_root};
use crate::variables;
use mill_config::config::LogLevel;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileError, FileErrorKind, FileKind};
use std::sync::Arc;

/// Redirects to the first index file that exists. Declines a path without a slash at its end, and a directory without
/// an index file.
pub async fn respond<E: Engine>(request: &mut Request, local: &Local<E>) -> Answer<FileOf<E>> {
    let is_read = matches!(request.method, Method::Get | Method::Head | Method::Post);
    if !request.uri.ends_with(b"/") || !is_read {
        return Answer::Declined;
    }
    let files = Arc::clone(&request.location.files);
    let mut directory_tested = false;
    for template in &files.index {
        let name = match template.as_literal() {
            Some(name) => name.to_vec(),
            None => variables::evaluate(template, request, local),
        };
        if name.starts_with(b"/") {
            return redirect(name, request);
        }
        let mut document = document_path(request, local);
        document.path.extend_from_slice(&name);
        if !stays_in_root(&document) {
            return refuse_path(&document, request, local);
        }
        let path = document.path;
        let lookup = Lookup::of(&path, request, local);
        let found = local
            .open_files
            .test(local.engine.files(), &path, &lookup)
            .await;
        request.depend_on(
            found
                .as_ref()
                .ok()
                .and_then(|found| found.freshness.as_ref()),
        );
        let Err(error) = found else {
            let uri = [request.uri.as_slice(), &name].concat();
            return redirect(uri, request);
        };
        match error.kind {
            FileErrorKind::Symlink => return Answer::Status(Status::FORBIDDEN),
            FileErrorKind::Overloaded => {
                return Answer::Status(overloaded(&error, &path, request, local));
            }
            FileErrorKind::NotDirectory
            | FileErrorKind::NameTooLong
            | FileErrorKind::PermissionDenied => return missing(&error, &path, request, local),
            FileErrorKind::NotFound | FileErrorKind::Exhausted | FileErrorKind::Other => {}
        }
        if !directory_tested {
            let directory_len = path.len().saturating_sub(name.len());
            if let Some(answer) = test_directory(&path, directory_len, request, local).await {
                return answer;
            }
            directory_tested = true;
        }
        if error.kind != FileErrorKind::NotFound {
            let message = failure(&error, &path);
            local.log_error(Some(request), LogLevel::Crit, format_args!("{message}"));
            return Answer::Status(Status::INTERNAL_SERVER_ERROR);
        }
    }
    Answer::Declined
}

fn redirect<File>(uri: Vec<u8>, request: &Request) -> Answer<File> {
    let args = request.args.clone();
    Answer::Redirect { uri, args }
}

/// Whether the directory of a missing index file (`path`) exists; an answer if it does not.
async fn test_directory<E: Engine>(
    path: &[u8],
    directory_len: usize,
    request: &mut Request,
    local: &Local<E>,
) -> Option<Answer<FileOf<E>>> {
    let directory = path.get(..directory_len).unwrap_or(path);
    // The root keeps its slash, and an `alias` may have none.
    let directory = match directory {
        [rest @ .., b'/'] if !rest.is_empty() => rest,
        whole => whole,
    };
    let lookup = Lookup::of(directory, request, local);
    let files = local.engine.files();
    let error = match local
        .open_files
        .test_directory(files, directory, &lookup)
        .await
    {
        Ok(found) if found.metadata.kind == FileKind::Directory => return None,
        Ok(_) => {
            let message = format_args!("\"{}\" is not a directory", Text(directory));
            local.log_error(Some(request), LogLevel::Alert, message);
            return Some(Answer::Status(Status::INTERNAL_SERVER_ERROR));
        }
        Err(error) => error,
    };
    match error.kind {
        FileErrorKind::Symlink => Some(Answer::Status(Status::FORBIDDEN)),
        FileErrorKind::Overloaded => {
            let status = overloaded(&error, directory, request, local);
            Some(Answer::Status(status))
        }
        FileErrorKind::NotFound => Some(missing(&error, path, request, local)),
        // The look-up in it was permitted, so it exists.
        FileErrorKind::PermissionDenied => None,
        _ => {
            let message = failure(&error, directory);
            local.log_error(Some(request), LogLevel::Crit, format_args!("{message}"));
            Some(Answer::Status(Status::INTERNAL_SERVER_ERROR))
        }
    }
}

/// The status for an index file that cannot exist, and its log line.
fn missing<E: Engine>(
    error: &FileError,
    path: &[u8],
    request: &Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    let (path, errno) = (Text(path), Errno(error.code));
    if error.kind == FileErrorKind::PermissionDenied {
        let message = format_args!("\"{path}\" is forbidden ({errno})");
        local.log_error(Some(request), LogLevel::Error, message);
        return Answer::Status(Status::FORBIDDEN);
    }
    if request.location.log.not_found {
        let message = format_args!("\"{path}\" is not found ({errno})");
        local.log_error(Some(request), LogLevel::Error, message);
    }
    Answer::Status(Status::NOT_FOUND)
}
