//! Directives are data: name, contexts, arity, default, a line of documentation, and how the directive is applied.
//! Parsing, checking, documentation and "did you mean" all use the same tables ([`crate::directives`]).

use std::time::Duration;

use crate::config::settings::SettingsDraft;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

/// One directive, as documentation lists it.
#[derive(Debug)]
pub struct Directive {
    /// Its name.
    pub name: &'static str,
    /// Where it is allowed.
    pub contexts: Contexts,
    /// How many arguments it takes.
    pub arity: Arity,
    /// Its default, in the language itself; `None` if there is no such value.
    pub default: Option<&'static str>,
    /// Its description.
    pub doc: &'static str,
    /// It may occur several times in one block.
    pub(crate) repeats: bool,
    pub(crate) apply: Apply,
    /// Why its value is not read, and whether a notice says so.
    pub(crate) unread: Option<(&'static str, Notice)>,
}

/// Whether a directive without effect is logged at every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A configuration may rely on its effect.
    Given,
    /// Its effect is always in force, or is not visible from outside.
    Spared,
}

/// How Millstream treats a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// As nginx.
    Supported,
    /// Parsed and checked, but without effect, for this reason. A notice says so unless the effect is always in force.
    AcceptedWithoutEffect(&'static str),
    /// Known to nginx, from the module of this name; refused.
    NotYet(&'static str),
}

impl Directive {
    /// How Millstream treats it.
    pub fn status(&self) -> Status {
        match (self.apply, self.unread) {
            (Apply::WithoutEffect(_, reason), _) | (_, Some((reason, _))) => {
                Status::AcceptedWithoutEffect(reason)
            }
            (Apply::NotYet(module), _) => Status::NotYet(module),
            _ => Status::Supported,
        }
    }

    /// The same directive, whose value is stored but never read, for this reason.
    pub(crate) const fn unread(mut self, reason: &'static str, notice: Notice) -> Self {
        self.unread = Some((reason, notice));
        self
    }

    /// Whether it opens a block.
    pub fn is_block(&self) -> bool {
        matches!(self.apply, Apply::Block(_))
    }
}

/// How a directive takes effect.
#[derive(Clone, Copy)]
pub(crate) enum Apply {
    /// `on` or `off`.
    Flag(fn(&mut SettingsDraft) -> &mut Option<bool>),
    /// A size (no `g`).
    Size(fn(&mut SettingsDraft) -> &mut Option<u64>),
    /// A size with `g`.
    Offset(fn(&mut SettingsDraft) -> &mut Option<u64>),
    /// A plain number.
    Number(fn(&mut SettingsDraft) -> &mut Option<u64>),
    /// A time in milliseconds.
    Milliseconds(fn(&mut SettingsDraft) -> &mut Option<Duration>),
    /// A time in seconds.
    Seconds(fn(&mut SettingsDraft) -> &mut Option<Duration>),
    /// By a function of its own.
    With(fn(&mut Resolver<'_>, &Statement) -> Applied),
    /// Opens a block; the function parses it.
    Block(fn(&mut Resolver<'_>, &Statement) -> Applied),
    /// Checked, then reported: why ignoring it cannot change an answer.
    WithoutEffect(Value, &'static str),
    /// nginx has it in this module.
    NotYet(&'static str),
}

impl std::fmt::Debug for Apply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flag(_) => "flag",
            Self::Size(_) => "size",
            Self::Offset(_) => "offset",
            Self::Number(_) => "number",
            Self::Milliseconds(_) => "milliseconds",
            Self::Seconds(_) => "seconds",
            Self::With(_) => "with",
            Self::Block(_) => "block",
            Self::WithoutEffect(..) => "without effect",
            Self::NotYet(_) => "not yet",
        })
    }
}

/// The syntax of the value of a directive without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Flag,
    Size,
    Number,
    /// A number and a size, as `16 8k`.
    Buffers,
    /// Any text.
    Text,
}

/// How many arguments a directive takes, its name not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this number.
    Exactly(usize),
    /// From the first to the second, both included.
    Between(usize, usize),
    /// This number or more.
    AtLeast(usize),
}

impl Arity {
    /// Whether the number of arguments fits.
    pub fn accepts(self, count: usize) -> bool {
        match self {
            Self::Exactly(wanted) => count == wanted,
            Self::Between(least, most) => (least..=most).contains(&count),
            Self::AtLeast(least) => count >= least,
        }
    }
}

/// A set of contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contexts(pub(crate) u16);

impl Contexts {
    /// Outside all blocks.
    pub const MAIN: Self = Self(1);
    /// `events`.
    pub const EVENTS: Self = Self(1 << 1);
    /// `http`.
    pub const HTTP: Self = Self(1 << 2);
    /// `server`.
    pub const SERVER: Self = Self(1 << 3);
    /// `location`.
    pub const LOCATION: Self = Self(1 << 4);
    /// `if` in a server.
    pub const IF_IN_SERVER: Self = Self(1 << 5);
    /// `if` in a location.
    pub const IF_IN_LOCATION: Self = Self(1 << 6);
    /// `limit_except`.
    pub const LIMIT_EXCEPT: Self = Self(1 << 7);
    /// `upstream`.
    pub const UPSTREAM: Self = Self(1 << 8);
    /// `mail` and what is in it.
    pub const MAIL: Self = Self(1 << 9);
    /// `stream`.
    pub const STREAM: Self = Self(1 << 10);
    /// `server` in a stream.
    pub const STREAM_SERVER: Self = Self(1 << 11);
    /// `upstream` in a stream.
    pub const STREAM_UPSTREAM: Self = Self(1 << 12);

    const NAMES: [(Self, &'static str); 13] = [
        (Self::MAIN, "main"),
        (Self::EVENTS, "events"),
        (Self::HTTP, "http"),
        (Self::SERVER, "server"),
        (Self::LOCATION, "location"),
        (Self::IF_IN_SERVER, "if in server"),
        (Self::IF_IN_LOCATION, "if in location"),
        (Self::LIMIT_EXCEPT, "limit_except"),
        (Self::UPSTREAM, "upstream"),
        (Self::MAIL, "mail"),
        (Self::STREAM, "stream"),
        (Self::STREAM_SERVER, "server in stream"),
        (Self::STREAM_UPSTREAM, "upstream in stream"),
    ];

    /// Both sets together.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets share a context.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Names of the contexts, outermost first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let known = Self::NAMES
            .iter()
            .filter(move |(context, _)| self.meets(*context));
        known.map(|(_, name)| *name)
    }
}

/// Sets that most directives use.
pub(crate) const MAIN: Contexts = Contexts::MAIN;
pub(crate) const EVENTS: Contexts = Contexts::EVENTS;
pub(crate) const HTTP: Contexts = Contexts::HTTP;
pub(crate) const SERVER: Contexts = Contexts::SERVER;
pub(crate) const LOCATION: Contexts = Contexts::LOCATION;
pub(crate) const HTTP_SERVER: Contexts = HTTP.and(SERVER);
pub(crate) const ANY_LEVEL: Contexts = HTTP_SERVER.and(LOCATION);
pub(crate) const ANY_LEVEL_AND_IF: Contexts = ANY_LEVEL.and(Contexts::IF_IN_LOCATION);
pub(crate) const STREAM: Contexts = Contexts::STREAM;
pub(crate) const STREAM_SERVER: Contexts = Contexts::STREAM_SERVER;
pub(crate) const STREAM_LEVELS: Contexts = STREAM.and(STREAM_SERVER);
pub(crate) const HTTP_AND_STREAM: Contexts = HTTP.and(STREAM);
/// Any level of http and of stream.
pub(crate) const ALL_LEVELS: Contexts = ANY_LEVEL.and(STREAM_LEVELS);
pub(crate) const SERVER_LOCATION: Contexts = SERVER.and(LOCATION);
pub(crate) const REWRITING: Contexts = SERVER_LOCATION
    .and(Contexts::IF_IN_SERVER)
    .and(Contexts::IF_IN_LOCATION);

/// A directive that may occur once in a block.
pub(crate) const fn once(
    name: &'static str,
    contexts: Contexts,
    arity: Arity,
    default: &'static str,
    apply: Apply,
    doc: &'static str,
) -> Directive {
    let default = if default.is_empty() {
        None
    } else {
        Some(default)
    };
    Directive {
        name,
        contexts,
        arity,
        default,
        doc,
        repeats: false,
        apply,
        unread: None,
    }
}

/// A directive that may occur several times in a block.
pub(crate) const fn many(
    name: &'static str,
    contexts: Contexts,
    arity: Arity,
    apply: Apply,
    doc: &'static str,
) -> Directive {
    Directive {
        name,
        contexts,
        arity,
        default: None,
        doc,
        repeats: true,
        apply,
        unread: None,
    }
}
