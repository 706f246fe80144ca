//! The rewrite module's directives, compiled to a list of instructions.
//!
//! A server's list runs once before the location is looked up; a location's list runs when it is entered, and again for
//! each new location that a rewrite leads to (at most 10 times). Instructions run in the order of the directives.

use std::sync::Arc;

use super::{Location, Pattern, Template, Variable};

/// One step.
#[derive(Debug, Clone)]
pub enum Instruction {
    /// `set $variable value`. The target is [`Variable::User`] or an assignable built-in variable (`$args`,
    /// `$limit_rate`).
    Set {
        /// The target.
        variable: Variable,
        /// The value.
        value: Template,
    },
    /// `rewrite`.
    Rewrite {
        /// Matched against the decoded, normalised path.
        pattern: Arc<Pattern>,
        /// The new path, or the target of the redirect up to its `?`. Captures are decoded
        /// text; in a redirect and in arguments they are escaped again.
        replacement: Template,
        /// Arguments written in the replacement after its first literal `?`.
        args: Option<Template>,
        /// Whether the request's own arguments are appended, after `args` and `&` or after `?`
        /// (false when the replacement ended in `?`: then the request's own are dropped).
        keep_args: bool,
        /// What follows.
        flag: RewriteFlag,
    },
    /// `return STATUS [TEXT]`, `return STATUS URL`, `return URL` (302).
    Return {
        /// The status; 444 closes the connection without an answer.
        status: u16,
        /// Target of a redirect for 301, 302, 303, 307 and 308; else the content of the answer.
        text: Option<Template>,
    },
    /// `if`: when the condition holds, the body runs and, in a location, the request's settings
    /// become those of `location` (and stay so after the body).
    If {
        /// The condition.
        condition: Condition,
        /// The rewrite directives inside.
        body: Vec<Self>,
        /// The settings inside, fully merged; `None` for an `if` on the server level, which
        /// changes none.
        location: Option<Arc<Location>>,
    },
    /// `break`: ends the list; the location is not looked up again.
    Break,
}

/// The flag of `rewrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteFlag {
    /// No flag: go on with the next instruction; look up the location at the end.
    Continue,
    /// `last`: stop and look up the location.
    Last,
    /// `break`: stop and stay in this location.
    Break,
    /// `redirect`, or a replacement that begins with `http://`, `https://` or `$scheme`: 302.
    Redirect,
    /// `permanent`: 301.
    Permanent,
}

/// The condition of an `if`.
#[derive(Debug, Clone)]
pub enum Condition {
    /// True unless the variable is empty or "0".
    Truthy(Variable),
    /// `=` (or `!=` when negated): byte by byte.
    Equal {
        /// Left side.
        variable: Variable,
        /// Right side.
        value: Template,
        /// `!=`.
        negated: bool,
    },
    /// `~`, `~*`, `!~`, `!~*`. A match sets `$1` to `$9`.
    Matches {
        /// The subject.
        variable: Variable,
        /// The expression, including its case-insensitivity.
        pattern: Arc<Pattern>,
        /// `!~` or `!~*`.
        negated: bool,
    },
    /// `-f`, `-d`, `-e`, `-x` and their negations.
    File {
        /// Which test.
        test: FileTest,
        /// The tested path.
        path: Template,
        /// Preceded by `!`.
        negated: bool,
    },
}

/// The test of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTest {
    /// `-f`: a regular file.
    File,
    /// `-d`: a directory.
    Directory,
    /// `-e`: anything.
    Exists,
    /// `-x`: its owner may execute it.
    Executable,
}
