//! Where the file of a request is: `root` or `alias`, and the path.

use crate::local::Local;
use crate::log::Text;
use crate::open_files::{Lookup, failure};
use crate::request::Request;
use crate::static_file::overloaded;
use crate::variables;
use mill_config::config::settings::Document;
use mill_config::config::{LogLevel, Template};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileErrorKind, Files, Metadata};
use std::sync::Arc;

/// The path of a file, absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPath {
    pub path: Vec<u8>,
    /// How many bytes of it come from `root` or `alias`.
    pub root_len: usize,
}

/// The file of the request's path in its location.
pub fn document_path<E: Engine>(request: &mut Request, local: &Local<E>) -> DocumentPath {
    let mut path = document_root(request, local);
    let root_len = path.len();
    let location = Arc::clone(&request.location);
    let rest = match &location.files.document {
        Document::Root(_) => request.uri.as_slice(),
        Document::Alias { location_len, .. } => {
            request.uri.get(*location_len..).unwrap_or_default()
        }
        Document::AliasWhole(_) if request.alias_takes_uri => request.uri.as_slice(),
        Document::AliasWhole(_) => &[],
    };
    path.extend_from_slice(rest);
    DocumentPath { path, root_len }
}

/// `root` or `alias`, evaluated, and joined to the prefix if it is relative: `$document_root`.
pub fn document_root<E: Engine>(request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let location = Arc::clone(&request.location);
    let (Document::Root(template)
    | Document::Alias { path: template, .. }
    | Document::AliasWhole(template)) = &location.files.document;
    absolute_path(template, request, local)
}

/// A path of the configuration, evaluated, and joined to the prefix if it has variables and is relative.
pub fn absolute_path<E: Engine>(
    template: &Template,
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    if let Some(literal) = template.as_literal() {
        return literal.to_vec();
    }
    let path = variables::evaluate(template, request, local);
    if path.starts_with(b"/") {
        return path;
    }
    let mut joined = request.site.config.main.prefix.to_vec();
    joined.extend_from_slice(&path);
    joined
}

/// Whether the path still begins with the location's name, so that `alias` can replace that; logs it if not.
pub fn has_document<E: Engine>(request: &Request, local: &Local<E>) -> bool {
    let aliased = !matches!(request.location.files.document, Document::Root(_));
    if !aliased || request.valid_location {
        return true;
    }
    let name = Text(request.location.name.text());
    local.log_error(
        Some(request),
        LogLevel::Alert,
        format_args!("\"alias\" cannot be used in location \"{name}\" where URI was rewritten"),
    );
    false
}

/// Examines a path through the open-file cache. Unexpected errors are logged. `Err` is the status of the answer
/// when the path cannot be examined now.
pub(super) async fn examine<E: Engine>(
    path: &[u8],
    request: &mut Request,
    local: &Local<E>,
) -> Result<Option<Metadata>, Status> {
    let lookup = Lookup::of(path, request, local);
    let error = match local
        .open_files
        .test(local.engine.files(), path, &lookup)
        .await
    {
        Ok(found) => return Ok(Some(found.metadata)),
        Err(error) => error,
    };
    if error.kind == FileErrorKind::Overloaded {
        return Err(overloaded(&error, path, request, local));
    }
    let expected = matches!(
        error.kind,
        FileErrorKind::NotFound | FileErrorKind::NotDirectory | FileErrorKind::NameTooLong
    );
    if !expected {
        let failure = failure(&error, path);
        local.log_error(Some(request), LogLevel::Crit, format_args!("{failure}"));
    }
    Ok(None)
}

/// The evaluated `$realpath_root`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealRoot {
    /// The document root that it was made from.
    root: Vec<u8>,
    /// `None` if it does not exist.
    path: Option<Vec<u8>>,
}

/// The document root with its links resolved: `$realpath_root`. It is resolved at its first use, once for a request as
/// long as its document root stays, so that a missing root is logged once.
pub fn real_root<'a, E: Engine>(request: &'a mut Request, local: &Local<E>) -> Option<&'a [u8]> {
    let root = document_root(request, local);
    let known = request
        .real_root
        .as_ref()
        .is_some_and(|known| known.root == root);
    if !known {
        let path = match local.engine.files().real_path(&root) {
            Ok(path) => Some(path),
            Err(error) => {
                let failure = failure(&error, &root);
                local.log_error(Some(request), LogLevel::Crit, format_args!("{failure}"));
                None
            }
        };
        request.real_root = Some(RealRoot { root, path });
    }
    request.real_root.as_ref()?.path.as_deref()
}
