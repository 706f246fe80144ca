//! `autoindex`: a directory's entries as a page, or as JSON or XML.

/// The page.
mod html;
/// JSON, and JSONP.
mod json;
/// XML.
mod xml;

use crate::answer::Answer;
use crate::filter::charset;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::open_files::failure;
use crate::request::Request;
use crate::request::document::document_path;
use crate::response::Response;
use crate::static_file::{overloaded, refuse_path, stays_in_root};
use crate::variables;
use mill_config::config::settings::AutoindexFormat;
use mill_config::config::{LogLevel, Variable};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{DirectoryEntry, FileError, FileErrorKind, FileKind, Files};

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: Vec<u8>,
    kind: FileKind,
    /// Bytes.
    len: u64,
    /// Unix seconds.
    modified: i64,
}

/// Lists the directory of the request's path. Declines unless `autoindex` is on and the path ends in a slash.
pub async fn respond<E: Engine>(request: &mut Request, local: &Local<E>) -> Answer<FileOf<E>> {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    if !request.location.autoindex.enabled || !request.uri.ends_with(b"/") || !is_read {
        return Answer::Declined;
    }
    request.pure = false;
    let document = document_path(request, local);
    if !stays_in_root(&document) {
        return refuse_path(&document, request, local);
    }
    let callback = match callback(request, local) {
        Ok(callback) => callback,
        Err(status) => return Answer::Status(status),
    };
    let path = match document.path.as_slice() {
        [rest @ .., _] if !rest.is_empty() => rest,
        whole => whole,
    };
    let entries = match local.engine.files().list(path).await {
        Ok(listed) => limited(sorted(listed), path, request, local),
        Err(error) => return failed(&error, path, request, local),
    };
    let format = request.location.autoindex.format;
    let (content_type, content) = match (format, callback) {
        (AutoindexFormat::Html, _) => (HTML, page(&entries, request, local)),
        (AutoindexFormat::Xml, _) => (&b"text/xml"[..], xml::emit(&entries)),
        (AutoindexFormat::Jsonp, Some(callback)) => {
            let call = json::emit_call(&callback, &entries);
            (&b"application/javascript"[..], call)
        }
        (AutoindexFormat::Json | AutoindexFormat::Jsonp, _) => {
            (&b"application/json"[..], json::emit(&entries))
        }
    };
    let mut response = Response::with_bytes(Status::OK, content_type, content);
    response.streamed = true;
    if format == AutoindexFormat::Xml {
        // XML without an encoding declaration is in UTF-8.
        response.charset = Some(b"utf-8".to_vec());
    }
    Answer::Response(Box::new(response))
}

/// The type of a page; also the type by which `charset` decides whether names are in UTF-8.
const HTML: &[u8] = b"text/html";

/// Directories first, then by name, byte by byte. Names that begin with a dot are hidden, and entries that could not be
/// examined are left out.
fn sorted(listed: Vec<DirectoryEntry>) -> Vec<Entry> {
    let visible = listed
        .into_iter()
        .filter(|entry| !entry.name.starts_with(b"."));
    let mut entries: Vec<Entry> = visible
        .filter_map(|entry| {
            let metadata = entry.metadata?;
            Some(Entry {
                name: entry.name,
                kind: metadata.kind,
                len: metadata.len,
                modified: metadata.modified.seconds,
            })
        })
        .collect();
    entries.sort_unstable_by(|one, other| {
        let is_file = |entry: &Entry| entry.kind != FileKind::Directory;
        (is_file(one), &one.name).cmp(&(is_file(other), &other.name))
    });
    entries
}

/// At most [`ENTRIES_MAX`] entries; a log line says that there are more.
fn limited<E: Engine>(
    mut entries: Vec<Entry>,
    path: &[u8],
    request: &Request,
    local: &Local<E>,
) -> Vec<Entry> {
    if entries.len() > ENTRIES_MAX {
        let (path, count) = (Text(path), entries.len());
        let message = format_args!(
            "directory \"{path}\" has {count} entries, only the first {ENTRIES_MAX} are listed"
        );
        local.log_error(Some(request), LogLevel::Warn, message);
        entries.truncate(ENTRIES_MAX);
    }
    entries
}

/// Entries of one listing: with more, one request would delay its worker for long and take much memory. Our own limit;
/// nginx has none.
const ENTRIES_MAX: usize = 100_000;

fn page<E: Engine>(entries: &[Entry], request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let charset = charset::of_type(HTML, request, local);
    let utf8 = charset.is_some_and(|charset| charset.eq_ignore_ascii_case(b"utf-8"));
    let settings = &request.location.autoindex;
    // nginx shifts all times by the present offset of the local clock, not by the one at that time.
    let now = local.scheduler.wall_clock().seconds;
    let utc_offset_minutes = match settings.localtime {
        true => (local.environment.utc_offset)(now) / 60,
        false => 0,
    };
    let style = html::Style {
        utc_offset_minutes,
        exact_size: settings.exact_size,
        utf8,
    };
    html::emit(&request.uri, entries, style)
}

/// The function that a `jsonp` listing calls: the argument `callback`. Without one it is a `json` listing.
fn callback<E: Engine>(request: &mut Request, local: &Local<E>) -> Result<Option<Vec<u8>>, Status> {
    if request.location.autoindex.format != AutoindexFormat::Jsonp {
        return Ok(None);
    }
    let variable = Variable::Arg("callback".into());
    let name = variables::value(&variable, request, local).map(std::borrow::Cow::into_owned);
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let fault = if name.len() > CALLBACK_LEN_MAX {
        "too long"
    } else if !name.iter().all(is_plain) {
        "invalid"
    } else {
        return Ok(Some(name));
    };
    let message = format_args!("client sent {fault} callback name: \"{}\"", Text(&name));
    local.log_error(Some(request), LogLevel::Info, message);
    Err(Status::BAD_REQUEST)
}

/// Bytes of a callback's name; nginx's limit.
const CALLBACK_LEN_MAX: usize = 128;

/// The status for a directory that cannot be listed, and its log line.
fn failed<E: Engine>(
    error: &FileError,
    path: &[u8],
    request: &Request,
    local: &Local<E>,
) -> Answer<FileOf<E>> {
    let (level, status) = match error.kind {
        FileErrorKind::NotFound | FileErrorKind::NotDirectory | FileErrorKind::NameTooLong => {
            (LogLevel::Error, Status::NOT_FOUND)
        }
        FileErrorKind::PermissionDenied => (LogLevel::Error, Status::FORBIDDEN),
        FileErrorKind::Overloaded => {
            return Answer::Status(overloaded(error, path, request, local));
        }
        _ => (LogLevel::Crit, Status::INTERNAL_SERVER_ERROR),
    };
    let message = failure(error, path);
    local.log_error(Some(request), level, format_args!("{message}"));
    Answer::Status(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::files::Metadata;
    use mill_runtime::time::UnixTime;

    #[test]
    fn directories_come_first_and_names_are_compared_as_bytes() {
        let metadata = |kind| Metadata {
            kind,
            len: 1,
            modified: UnixTime::from_seconds(1),
            inode: 1,
            device: 1,
            executable: false,
        };
        let entry = |name: &str, metadata| DirectoryEntry {
            name: name.as_bytes().to_vec(),
            metadata,
        };
        let file = Some(metadata(FileKind::Regular));
        let directory = Some(metadata(FileKind::Directory));
        let other = Some(metadata(FileKind::Other));
        let listed = vec![
            entry("b", file),
            entry("B", other),
            entry("ä", file),
            entry("z", directory),
            entry("a", directory),
            entry(".hidden", file),
            entry("vanished", None),
        ];
        let names: Vec<_> = sorted(listed).into_iter().map(|entry| entry.name).collect();
        assert_eq!(
            names,
            ["a", "z", "B", "b", "ä"].map(|name| name.as_bytes().to_vec())
        );
    }
}
