//! `charset`: the character set in `Content-Type`. The content is not converted.

use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use crate::response::Response;
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
    let content_type = response.content_type.as_deref().unwrap_or_default();
    let own = response.charset.as_deref();
    match judge(content_type, own, request, local) {
        Verdict::Kept => {}
        // As in nginx: some old browsers took it for the character set of the redirect's target.
        Verdict::Named(_)
            if matches!(response.status, Status::MOVED_PERMANENTLY | Status::FOUND) =>
        {
            response.charset = None;
        }
        Verdict::Named(charset) => response.charset = Some(charset),
        Verdict::Unmapped(from, to) => {
            // It is logged each time.
            request.pure = false;
            // nginx logs it for files only.
            let doing = match response.last_modified {
                Some(_) => " while sending response to client",
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
