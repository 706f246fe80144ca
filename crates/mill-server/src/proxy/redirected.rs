//! `X-Accel-Redirect`: another path, or a named location, answers in place of the server.

use crate::answer::Answer;
use crate::request::Request;
use crate::request::try_files::split_args;
use crate::response::{FieldLine, Response};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_http::target::normalize_path;

/// Field lines of the server's answer that the other one has as well.
const KEPT: [&str; 5] = [
    "Set-Cookie",
    "Content-Disposition",
    "Cache-Control",
    "Expires",
    "Accept-Ranges",
];

/// Goes where the server says. `response` is its answer without content, `charset` its `X-Accel-Charset`.
pub(super) fn follow<File>(
    target: Vec<u8>,
    charset: Option<Vec<u8>>,
    response: Response<File>,
    request: &mut Request,
) -> Answer<File> {
    let kept = response.fields.into_iter().filter(is_kept);
    request.carried_fields.extend(kept);
    request
        .carried_fields
        .extend(charset.map(|charset| FieldLine {
            name: "X-Accel-Charset".into(),
            value: charset.into(),
        }));
    if let Some(value) = response.content_type {
        let name = "Content-Type".into();
        request.carried_fields.push(FieldLine { name, value });
    }
    if target.starts_with(b"@") {
        return Answer::Named(target);
    }
    let (path, args) = split_args(target);
    let mut uri = Vec::new();
    if !path.starts_with(b"/") || normalize_path(&path, false, &mut uri).is_err() {
        return Answer::Status(Status::NOT_FOUND);
    }
    if leaves_its_directory(&path) || leaves_its_directory(&uri) {
        return Answer::Status(Status::NOT_FOUND);
    }
    if request.method != Method::Head {
        request.method = Method::Get;
    }
    Answer::Redirect { uri, args }
}

fn is_kept(line: &FieldLine) -> bool {
    let mut names = KEPT.iter();
    names.any(|name| line.name.eq_ignore_ascii_case(name.as_bytes()))
}

fn leaves_its_directory(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .any(|segment| segment == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_two_dots_leaves_its_directory() {
        assert!(leaves_its_directory(b"/a/../b"));
        assert!(leaves_its_directory(b"/a/.."));
        assert!(!leaves_its_directory(b"/a/..b/c.."));
    }
}
