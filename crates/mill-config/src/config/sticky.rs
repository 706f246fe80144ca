//! Requests of a session go to the same server.

use std::time::Duration;

use super::{Template, Variable};
use crate::Text;

/// `sticky` of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sticky {
    /// `sticky cookie`: a cookie of our own names the server.
    Cookie(StickyCookie),
    /// `sticky route`: the first of these variables that has a value is the server's `route=`.
    Route(Vec<Variable>),
    /// `sticky learn`: sessions that servers begin are remembered.
    Learn(StickyLearn),
}

/// `sticky cookie NAME …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickyCookie {
    /// Its name.
    pub name: Text,
    /// `domain=`.
    pub domain: Option<Template>,
    /// `path=`.
    pub path: Option<Text>,
    /// `expires=`; without it the cookie lives as long as the browser.
    pub expires: Option<StickyExpires>,
    /// `httponly`.
    pub httponly: bool,
    /// `secure`.
    pub secure: bool,
    /// `samesite=`: `strict`, `lax`, `none`, or what evaluates to one of them; nothing else is sent.
    pub samesite: Option<Template>,
    /// `attribute=`, each behind `; `.
    pub attributes: Text,
}

/// `expires=` of `sticky cookie`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StickyExpires {
    /// `max`: 31 Dec 2037 23:55:55 GMT.
    Max,
    /// After this time.
    After(Duration),
}

/// `sticky learn …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickyLearn {
    /// `create=`: the first that has a value in an answer names a new session.
    pub create: Vec<Variable>,
    /// `lookup=`: the first that has a value in a request names its session.
    pub lookup: Vec<Variable>,
    /// Name in `zone=`.
    pub zone: Text,
    /// Size in `zone=`: bounds the sessions.
    pub zone_bytes: u64,
    /// `timeout=`: a session that is not used so long is forgotten.
    pub timeout: Duration,
    /// `header`: a session begins with the answer's head, not with its end.
    pub after_head: bool,
}
