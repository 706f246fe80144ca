//! A location: its name, its merged settings, and what it does not inherit.

use std::ops::Deref;
use std::sync::Arc;

use super::{HealthCheck, Instruction, LocationTree, Pass, Pattern, Settings, Template};
use crate::Text;

/// One location, an `if` in one, or the settings of a whole server. It dereferences to its [`Settings`].
#[derive(Debug)]
pub struct Location {
    /// How it is found.
    pub name: LocationName,
    /// All inherited settings.
    pub settings: Settings,
    /// `rewrite`, `return`, `set`, `if`, `break`; empty for an `if` (its body is in the instruction that led there).
    pub instructions: Arc<[Instruction]>,
    /// `try_files`.
    pub try_files: Option<TryFiles>,
    /// `limit_except`.
    pub limit_except: Option<LimitExcept>,
    /// `stub_status`: this location answers with counters.
    pub stub_status: bool,
    /// `millstream_metrics`: this location answers with all counters, for Prometheus.
    pub metrics: bool,
    /// `millstream_api`: this location answers with the state of the server.
    pub api: Option<Api>,
    /// `status_zone`: where requests are counted, as an index into [`Http::status_zones`](super::Http::status_zones).
    /// Locations inside this one have it too. That of a server is in its own location, and in no other one.
    pub status_zone: Option<usize>,
    /// `health_check`: probes of the servers of `pass`.
    pub health_checks: Vec<HealthCheck>,
    /// `proxy_pass` and its like: this location passes requests on. An `if` and a `limit_except` without their own have
    /// that of the enclosing location.
    pub pass: Option<Arc<Pass>>,
    /// Locations inside this one.
    pub locations: LocationTree,
}

impl Location {
    /// Whether a path that this location was found for lacks the slash at the end of its name: the answer is a redirect
    /// (301) to the name, arguments kept. As in nginx, only locations that pass requests on do that.
    pub fn wants_slash(&self, path: &[u8]) -> bool {
        self.redirects() && self.name.text().strip_suffix(b"/") == Some(path)
    }

    pub(crate) fn redirects(&self) -> bool {
        let is_named = matches!(
            self.name,
            LocationName::Exact(_) | LocationName::Prefix { .. }
        );
        self.pass.is_some() && is_named && self.name.text().ends_with(b"/")
    }
}

impl Deref for Location {
    type Target = Settings;
    fn deref(&self) -> &Settings {
        &self.settings
    }
}

/// `millstream_api`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api {
    /// `write=on`: groups of servers may be changed.
    pub write: bool,
}

/// The head of a `location` block.
#[derive(Debug, Clone)]
pub enum LocationName {
    /// No location: the server's own settings.
    Server,
    /// `location = /path`.
    Exact(Text),
    /// `location /path` and `location ^~ /path`.
    Prefix {
        /// The path it begins with.
        path: Text,
        /// `^~`: no regular expression is tried.
        final_match: bool,
    },
    /// `location ~ …` and `~*`.
    Pattern(Arc<Pattern>),
    /// `location @name`, with the `@`.
    Named(Text),
    /// An `if` block, or a `limit_except` block.
    Condition,
}

impl LocationName {
    /// The text that nginx shows: path, expression or name.
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Server | Self::Condition => &[],
            Self::Exact(path) | Self::Prefix { path, .. } | Self::Named(path) => path,
            Self::Pattern(pattern) => pattern.source(),
        }
    }
}

/// `try_files`.
#[derive(Debug, Clone)]
pub struct TryFiles {
    /// Tested in order.
    pub candidates: Vec<TryCandidate>,
    /// What happens when none exists.
    pub fallback: TryFallback,
}

/// One of the files to test.
#[derive(Debug, Clone)]
pub struct TryCandidate {
    /// Its request path, without the slash that asks for a directory.
    pub path: Template,
    /// It ended in a slash: it must be a directory.
    pub directory: bool,
}

/// The last parameter of `try_files`.
#[derive(Debug, Clone)]
pub enum TryFallback {
    /// `=STATUS`.
    Status(u16),
    /// An internal redirect; to a named location when it evaluates to `@name`, else with
    /// arguments after a `?`.
    Redirect(Template),
}

/// `limit_except METHOD… { … }`.
#[derive(Debug, Clone)]
pub struct LimitExcept {
    /// Requests with these methods go on as if the block were not there.
    pub methods: MethodSet,
    /// The settings for all others.
    pub location: Arc<Location>,
}

/// A set of methods, of those that nginx knows in `limit_except`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodSet(pub(crate) u32);

impl MethodSet {
    /// Names in nginx's order; `GET` includes `HEAD`.
    pub(crate) const NAMES: [&'static str; 14] = [
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "DELETE",
        "MKCOL",
        "COPY",
        "MOVE",
        "OPTIONS",
        "PROPFIND",
        "PROPPATCH",
        "LOCK",
        "UNLOCK",
        "PATCH",
    ];

    /// Whether the method belongs to the set; methods are case-sensitive.
    pub fn contains(self, method: &[u8]) -> bool {
        Self::bit(method).is_some_and(|bit| self.0 & bit != 0)
    }

    pub(crate) fn bit(method: &[u8]) -> Option<u32> {
        Self::NAMES
            .iter()
            .position(|name| name.as_bytes() == method)
            .map(|index| 1 << index)
    }
}
