//! `rewrite`, `return`, `set`, `if`, `break`: the instructions of a server or a location, run in order.

/// The conditions of `if`.
mod condition;

/// The replacement of `rewrite`: another path, or a redirect.
mod replacement;

/// The answer of `return`.
mod returned;

use self::replacement::Replacement;
use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::log::Text;
use crate::request::{Phase, Request, locate};
use crate::variables;
use mill_config::config::{Instruction, LocationName, LogLevel, RewriteFlag, Template, Variable};
use mill_config::value;
use mill_runtime::engine::Engine;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The rewrites of the server, before a location is looked up.
pub(super) async fn in_server<E: Engine>(
    request: &mut Request,
    local: &Local<E>,
) -> Phase<FileOf<E>> {
    // The location is looked up afterwards in any case.
    run(request, local).await.map_continue(|_| ())
}

/// The rewrites of the location, and those of each location that they lead to.
pub(super) async fn in_location<E: Engine>(
    request: &mut Request,
    local: &Local<E>,
) -> Phase<FileOf<E>> {
    loop {
        // Outside every location the server's rewrites would run a second time.
        if matches!(request.location.name, LocationName::Server) {
            return ControlFlow::Continue(());
        }
        if run(request, local).await? == Path::Kept {
            return ControlFlow::Continue(());
        }
        let uri = request.uri.clone();
        locate::count_redirect("processing", &uri, request, local)?;
        locate::find(request, local)?;
    }
}

/// Whether the location has to be looked up anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Kept,
    Changed,
}

/// One run over a list of instructions.
struct Run {
    path: Path,
    /// Captures of a quoted path are also escaped in `set` and conditions. nginx does so until the first replacement in
    /// the list.
    escape: bool,
    /// `rewrite_log`.
    log: bool,
}

/// Runs the instructions of the request's location; an answer stops it.
async fn run<E: Engine>(
    request: &mut Request,
    local: &Local<E>,
) -> ControlFlow<Answer<FileOf<E>>, Path> {
    if request.location.instructions.is_empty() {
        return ControlFlow::Continue(Path::Kept);
    }
    let location = Arc::clone(&request.location);
    let mut run = Run {
        path: Path::Kept,
        escape: true,
        log: location.rewrite.log,
    };
    // The stack of lists being run, the innermost last: the rest of each.
    let mut lists = vec![&*location.instructions];
    while let Some(list) = lists.last_mut() {
        let Some((instruction, rest)) = list.split_first() else {
            lists.pop();
            continue;
        };
        *list = rest;
        match instruction {
            Instruction::If {
                condition,
                body,
                location,
            } => {
                if !run.holds(condition, request, local).await? {
                    continue;
                }
                if let Some(location) = location {
                    locate::enter(location, request);
                }
                lists.push(body);
            }
            Instruction::Set { variable, value } => run.set(variable, value, request, local),
            Instruction::Rewrite {
                pattern,
                replacement,
                args,
                keep_args,
                flag,
            } => {
                let replacement = Replacement {
                    path: replacement,
                    args: args.as_ref(),
                    keep_args: *keep_args,
                    flag: *flag,
                };
                let flag = run.rewrite(pattern, &replacement, request, local)?;
                if flag != RewriteFlag::Continue {
                    break;
                }
            }
            Instruction::Return { status, text } => {
                let answer = returned::answer(*status, text.as_ref(), request, local);
                return ControlFlow::Break(answer);
            }
            Instruction::Break => {
                if run.path == Path::Changed {
                    request.valid_location = false;
                    run.path = Path::Kept;
                }
                break;
            }
        }
    }
    ControlFlow::Continue(run.path)
}

impl Run {
    fn set<E: Engine>(
        &self,
        variable: &Variable,
        template: &Template,
        request: &mut Request,
        local: &Local<E>,
    ) {
        let text = self.evaluate(template, request, local);
        match variable {
            Variable::User(index) => {
                if let Some(place) = request.variables.get_mut(*index) {
                    *place = Some(text);
                }
            }
            Variable::Args => request.args = text,
            Variable::LimitRate => match value::size(&text) {
                Some(rate) => request.limit_rate = Some(rate),
                None => local.log_error(
                    Some(request),
                    LogLevel::Error,
                    format_args!("invalid $limit_rate \"{}\"", Text(&text)),
                ),
            },
            other => {
                request.overrides.retain(|(assigned, _)| assigned != other);
                request.overrides.push((other.clone(), text));
            }
        }
    }

    /// The text of a value in a list of instructions.
    fn evaluate<E: Engine>(
        &self,
        template: &Template,
        request: &mut Request,
        local: &Local<E>,
    ) -> Vec<u8> {
        if self.escape {
            let mut out = Vec::new();
            replacement::append_escaped(template, request, local, &mut out);
            out
        } else {
            variables::evaluate(template, request, local)
        }
    }
}
