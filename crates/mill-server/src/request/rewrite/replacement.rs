//! The replacement of `rewrite`: another path, or a redirect.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::request::Request;
use crate::request::rewrite::{Path, Run};
use crate::variables;
use mill_config::config::template::Part;
use mill_config::config::{LogLevel, Pattern, RewriteFlag, Template};
use mill_http::escape::{EscapeSet, escape_uri, unescape_redirect};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::ops::ControlFlow;

/// The words of a `rewrite` after its expression.
pub(super) struct Replacement<'a> {
    pub(super) path: &'a Template,
    pub(super) args: Option<&'a Template>,
    /// The request's own arguments are appended.
    pub(super) keep_args: bool,
    pub(super) flag: RewriteFlag,
}

impl Run {
    /// Runs one `rewrite`: the flag says whether the list goes on. A redirect stops it.
    pub(super) fn rewrite<E: Engine>(
        &mut self,
        pattern: &Pattern,
        replacement: &Replacement<'_>,
        request: &mut Request,
        local: &Local<E>,
    ) -> ControlFlow<Answer<FileOf<E>>, RewriteFlag> {
        let subject = request.uri.clone();
        if !self.matches(pattern, &subject, request, local) {
            return ControlFlow::Continue(RewriteFlag::Continue);
        }
        request.internal = true;
        request.uri_is_as_sent = false;
        self.escape = false;
        let status = match replacement.flag {
            RewriteFlag::Redirect => Status::FOUND,
            RewriteFlag::Permanent => Status::MOVED_PERMANENTLY,
            RewriteFlag::Continue | RewriteFlag::Last => {
                self.path = Path::Changed;
                return self.replace(replacement, request, local);
            }
            RewriteFlag::Break => {
                request.valid_location = false;
                self.path = Path::Kept;
                return self.replace(replacement, request, local);
            }
        };
        let target = redirect_target(replacement, request, local);
        self.note(
            request,
            local,
            format_args!("rewritten redirect: \"{}\"", Text(&target)),
        );
        request.redirect_target = Some(target.into());
        ControlFlow::Break(Answer::Status(status))
    }

    fn replace<E: Engine>(
        &self,
        replacement: &Replacement<'_>,
        request: &mut Request,
        local: &Local<E>,
    ) -> ControlFlow<Answer<FileOf<E>>, RewriteFlag> {
        let uri = variables::evaluate(replacement.path, request, local);
        if let Some(args) = replacement.args {
            let mut text = Vec::new();
            append_escaped(args, request, local, &mut text);
            if replacement.keep_args && !request.args.is_empty() {
                text.push(b'&');
                text.extend_from_slice(&request.args);
            }
            request.args = text;
        } else if !replacement.keep_args {
            request.args.clear();
        }
        let args = request.args.clone();
        let (shown, args) = (Text(&uri), Text(&args));
        self.note(
            request,
            local,
            format_args!("rewritten data: \"{shown}\", args: \"{args}\""),
        );
        if uri.is_empty() {
            local.log_error(
                Some(request),
                LogLevel::Error,
                format_args!("the rewritten URI has a zero length"),
            );
            return ControlFlow::Break(Answer::Status(Status::INTERNAL_SERVER_ERROR));
        }
        request.uri = uri;
        ControlFlow::Continue(replacement.flag)
    }
}

/// The target of a redirect. Captures are escaped; needless escapes in its path are undone, as in nginx.
fn redirect_target<E: Engine>(
    replacement: &Replacement<'_>,
    request: &mut Request,
    local: &Local<E>,
) -> Vec<u8> {
    let mut text = Vec::new();
    append_escaped(replacement.path, request, local, &mut text);
    if let Some(args) = replacement.args {
        text.push(b'?');
        append_escaped(args, request, local, &mut text);
    }
    let mut target = Vec::with_capacity(text.len());
    unescape_redirect(&text, &mut target);
    if replacement.keep_args && !request.args.is_empty() {
        target.push(if replacement.args.is_some() {
            b'&'
        } else {
            b'?'
        });
        target.extend_from_slice(&request.args);
    }
    target
}

/// Appends a template. If the path was escaped, its captures are escaped again: they were cut out of the decoded path.
pub(super) fn append_escaped<E: Engine>(
    template: &Template,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) {
    let target = &request.message.head.target;
    let escape = target.quoted || target.plus;
    for part in template.parts() {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Capture(number) => {
                let capture = request.captures.capture(usize::from(*number));
                if escape {
                    escape_uri(EscapeSet::Args, capture, out);
                } else {
                    out.extend_from_slice(capture);
                }
            }
            Part::Variable(variable) => {
                let value = variables::value(variable, request, local);
                out.extend_from_slice(&value.unwrap_or_default());
            }
        }
    }
}
