//! The conditions of `if`.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::request::Request;
use crate::request::document::examine;
use crate::request::rewrite::Run;
use crate::variables;
use mill_config::config::{Condition, FileTest, LogLevel, Pattern, Variable};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::files::{FileKind, Metadata};
use std::ops::ControlFlow;

impl Run {
    /// Whether the condition holds.
    pub(super) async fn holds<E: Engine>(
        &self,
        condition: &Condition,
        request: &mut Request,
        local: &Local<E>,
    ) -> ControlFlow<Answer<FileOf<E>>, bool> {
        ControlFlow::Continue(match condition {
            Condition::Truthy(variable) => is_true(&value_of(variable, request, local)),
            Condition::Equal {
                variable,
                value,
                negated,
            } => {
                let left = value_of(variable, request, local);
                (left == self.evaluate(value, request, local)) != *negated
            }
            Condition::Matches {
                variable,
                pattern,
                negated,
            } => {
                let subject = value_of(variable, request, local);
                self.matches(pattern, &subject, request, local) != *negated
            }
            Condition::File {
                test,
                path,
                negated,
            } => {
                let path = self.evaluate(path, request, local);
                match passes(*test, path, request, local).await {
                    Ok(passes) => passes != *negated,
                    Err(status) => return ControlFlow::Break(Answer::Status(status)),
                }
            }
        })
    }

    /// Whether a regular expression matches. If so its captures are kept, else there are none any more.
    pub(super) fn matches<E: Engine>(
        &self,
        pattern: &Pattern,
        subject: &[u8],
        request: &mut Request,
        local: &Local<E>,
    ) -> bool {
        let mut captures = Vec::new();
        let matches = pattern.captures(subject, &mut captures);
        if matches {
            request.keep_captures(Some(pattern), subject, captures);
        } else {
            request.captures.ranges.clear();
        }
        let verb = if matches { "matches" } else { "does not match" };
        let (source, subject) = (Text(pattern.source()), Text(subject));
        self.note(
            request,
            local,
            format_args!("\"{source}\" {verb} \"{subject}\""),
        );
        matches
    }

    /// A line for `rewrite_log`.
    pub(super) fn note<E: Engine>(
        &self,
        request: &mut Request,
        local: &Local<E>,
        text: std::fmt::Arguments<'_>,
    ) {
        if self.log {
            request.pure = false;
            local.log_error(Some(request), LogLevel::Notice, text);
        }
    }
}

fn value_of<E: Engine>(variable: &Variable, request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let value = variables::value(variable, request, local);
    value.unwrap_or_default().into_owned()
}

/// nginx's truth: any value except the empty one and "0".
fn is_true(value: &[u8]) -> bool {
    !matches!(value, b"" | b"0")
}

/// Whether a file passes the test. A relative path is below the prefix. `Err` is the status of the answer when the file
/// cannot be examined now.
async fn passes<E: Engine>(
    test: FileTest,
    mut path: Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) -> Result<bool, Status> {
    request.pure = false;
    if !path.starts_with(b"/") {
        path = [&*request.site.config.main.prefix, &path].concat();
    }
    let found = examine(&path, request, local).await?;
    Ok(found.is_some_and(|found| is(test, &found)))
}

fn is(test: FileTest, metadata: &Metadata) -> bool {
    match test {
        FileTest::File => metadata.kind == FileKind::Regular,
        FileTest::Directory => metadata.kind == FileKind::Directory,
        FileTest::Exists => metadata.kind != FileKind::Other,
        FileTest::Executable => metadata.executable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_zero_are_false() {
        let check = |value: &str, expected: bool| {
            assert_eq!(is_true(value.as_bytes()), expected, "{value:?}");
        };
        check("", false);
        check("0", false);
        check("00", true);
        check("1", true);
        check(" ", true);
    }
}
