//! `try_files`: the first file that exists, or a fallback.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::request::document::{DocumentPath, document_path, examine, has_document};
use crate::request::{Phase, Request};
use crate::variables;
use mill_config::config::settings::Document;
use mill_config::config::{Template, TryFallback};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileKind, Metadata};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Sets the path to the first existing candidate; if there is none, applies the last parameter.
pub(super) async fn choose<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    let location = Arc::clone(&request.location);
    let Some(try_files) = &location.try_files else {
        return ControlFlow::Continue(());
    };
    if !has_document(request, local) {
        return ControlFlow::Break(Answer::Status(Status::INTERNAL_SERVER_ERROR));
    }
    let DocumentPath { path, root_len } = document_path(request, local);
    let root = path.get(..root_len).unwrap_or_default();
    for candidate in &try_files.candidates {
        let name = below_root(&candidate.path, request, local);
        let path = [root, &name].concat();
        let found = match examine(&path, request, local).await {
            Ok(found) => found,
            Err(status) => return ControlFlow::Break(Answer::Status(status)),
        };
        let is_wanted =
            |found: Metadata| (found.kind == FileKind::Directory) == candidate.directory;
        if found.is_some_and(is_wanted) {
            accept(name, candidate.directory, request);
            return ControlFlow::Continue(());
        }
        // The file may be created later: an answer made without it cannot be kept.
        request.pure = false;
    }
    ControlFlow::Break(match &try_files.fallback {
        TryFallback::Status(status) => Answer::Status(Status(*status)),
        TryFallback::Redirect(template) => {
            let target = below_root(template, request, local);
            if target.starts_with(b"@") {
                Answer::Named(target)
            } else {
                let (uri, args) = split_args(target);
                Answer::Redirect { uri, args }
            }
        }
    })
}

/// The candidate's path below `root` or `alias`. If the path begins with the location's name and was made from
/// variables, nginx cuts the name off, because `alias` replaces it.
fn below_root<E: Engine>(template: &Template, request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let path = variables::evaluate(template, request, local);
    if template.as_literal().is_some() {
        return path;
    }
    match request.location.files.document {
        Document::Alias { location_len, .. } => {
            let name = request.uri.get(..location_len).unwrap_or_default();
            path.strip_prefix(name).map_or(path.clone(), <[u8]>::to_vec)
        }
        Document::Root(_) | Document::AliasWhole(_) => path,
    }
}

/// Sets the path to that of the file that was found.
fn accept(name: Vec<u8>, directory: bool, request: &mut Request) {
    match request.location.files.document {
        Document::Root(_) => request.uri = name,
        Document::Alias { location_len, .. } => {
            request.uri.truncate(location_len);
            request.uri.extend_from_slice(&name);
        }
        Document::AliasWhole(_) if directory => {}
        Document::AliasWhole(_) => {
            request.uri = name;
            request.alias_takes_uri = true;
        }
    }
}

/// A path, and the part after its first `?`.
pub(crate) fn split_args(mut target: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mark = target.iter().position(|byte| *byte == b'?');
    let args = mark.map(|mark| target.split_off(mark));
    let args = args.and_then(|args| args.get(1..).map(<[u8]>::to_vec));
    (target, args.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_split_at_its_first_question_mark() {
        let check = |target: &str, uri: &str, args: &str| {
            let expected = (uri.as_bytes().to_vec(), args.as_bytes().to_vec());
            assert_eq!(split_args(target.as_bytes().to_vec()), expected);
        };
        check("/a", "/a", "");
        check("/a?", "/a", "");
        check("/a?b=c?d", "/a", "b=c?d");
        check("?b", "", "b");
    }
}
