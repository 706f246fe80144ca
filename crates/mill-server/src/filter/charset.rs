//! `charset`: the character set in `Content-Type`. The content is not converted.

use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use crate::response::{FieldLine, FieldText, Response};
use crate::variables;
use mill_config::config::LogLevel;
use mill_config::config::settings::Charset;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// The character set of an answer.
enum Verdict {
    /// As the handler has set it, mostly none.
    Kept,
    Named(Vec<u8>),
    /// The content would have to be converted from the first to the second.
    Unmapped(Vec<u8>, Vec<u8>),
}

pub(super) fn apply<E: Engine, File>(
    request: &mut Request,
    response: &mut Response<File>,
    local: &Local<E>,
) {
    // `X-Accel-Charset`. Of other handlers it is the content's own.
    let is_told = response.proxied || request.upstream.is_some();
    let told = response.charset.take_if(|_| is_told);
    if told.is_none() && request.location.charset.name == Charset::Off {
        return;
    }
    let is_coding = |line: &FieldLine| line.name.eq_ignore_ascii_case(b"Content-Encoding");
    let is_encoded = response.proxied && response.fields.iter().any(is_coding);
    let kind = response.content_type.clone();
    let Some(kind) = kind.filter(|kind| !kind.is_empty() && !is_encoded) else {
        return;
    };
    let known = response.charset.clone();
    let (media_type, own) = if response.proxied || told.is_some() {
        divide(&kind)
    } else {
        (&*kind, known.as_deref())
    };
    let verdict = match told {
        Some(to) => compare(own, to, request, local),
        None => judge(&kind, own, request, local),
    };
    match verdict {
        Verdict::Kept => {}
        Verdict::Named(charset) => {
            if own.is_some() {
                response.content_type = Some(FieldText::copy(media_type));
            }
            // As in nginx: some old browsers took it for the character set of the redirect's target.
            let is_redirect = matches!(response.status, Status::MOVED_PERMANENTLY | Status::FOUND);
            response.charset = Some(charset).filter(|_| !is_redirect);
        }
        Verdict::Unmapped(from, to) => {
            // It is logged each time.
            request.pure = false;
            let doing = match response.last_modified {
                _ if response.proxied => " while reading response header from upstream",
                // nginx logs it for files only.
                Some(_) => " while sending response to client",
                // The last step that nginx has named is the one of the server which told the character set.
                None if is_told => " while reading response header from upstream",
                None => "",
            };
            let (from, to) = (Text(&from), Text(&to));
            let message = format_args!(
                "no \"charset_map\" between the charsets \"{from}\" and \"{to}\"{doing}"
            );
            local.log_error(Some(request), LogLevel::Error, message);
        }
    }
}

/// A media type without its character set, and that.
pub(super) fn divide(content_type: &[u8]) -> (&[u8], Option<&[u8]>) {
    const NAME: &[u8] = b"charset=";
    let ends = content_type.iter().enumerate();
    let ends = ends.filter(|(_, byte)| **byte == b';').map(|(at, _)| at);
    for end in ends {
        let (media_type, rest) = content_type.split_at(end);
        let parameter = rest.get(1..).unwrap_or_default().trim_ascii_start();
        if let Some((name, value)) = parameter.split_at_checked(NAME.len())
            && name.eq_ignore_ascii_case(NAME)
        {
            let value = value.strip_prefix(b"\"").unwrap_or(value);
            return (media_type, Some(value.strip_suffix(b"\"").unwrap_or(value)));
        }
    }
    (content_type, None)
}

/// The character set that `charset` will name for a content of that type which has none of its own.
pub(crate) fn of_type<E: Engine>(
    content_type: &[u8],
    request: &mut Request,
    local: &Local<E>,
) -> Option<Vec<u8>> {
    match judge(content_type, None, request, local) {
        Verdict::Named(charset) => Some(charset),
        Verdict::Kept | Verdict::Unmapped(..) => None,
    }
}

/// The type is looked up as it is, with its parameters: one with a character set only matches `*`.
fn judge<E: Engine>(
    content_type: &[u8],
    own: Option<&[u8]>,
    request: &mut Request,
    local: &Local<E>,
) -> Verdict {
    if request.location.charset.name == Charset::Off {
        return Verdict::Kept;
    }
    let location = Arc::clone(&request.location);
    let concerns = match own {
        Some(_) => location.charset.overrides,
        None => location.charset.types.contains(content_type),
    };
    if !concerns || content_type.is_empty() {
        return Verdict::Kept;
    }
    let Some(to) = name(&location.charset.name, request, local) else {
        return Verdict::Kept;
    };
    compare(own, to, request, local)
}

/// Whether content in its own character set, or that of `source_charset`, may be called content in `to`.
fn compare<E: Engine>(
    own: Option<&[u8]>,
    to: Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) -> Verdict {
    let location = Arc::clone(&request.location);
    let from = match own {
        Some(own) => Some(own.to_vec()),
        None => name(&location.charset.source, request, local),
    };
    match from {
        Some(from) if !from.eq_ignore_ascii_case(&to) => Verdict::Unmapped(from, to),
        _ => Verdict::Named(to),
    }
}

/// nginx closes the connection when a variable has no value; here no character set is named then.
fn name<E: Engine>(charset: &Charset, request: &mut Request, local: &Local<E>) -> Option<Vec<u8>> {
    match charset {
        Charset::Off => None,
        Charset::Named(name) => Some(name.to_vec()),
        Charset::Evaluated(variable) => {
            variables::value(variable, request, local).map(std::borrow::Cow::into_owned)
        }
    }
}
