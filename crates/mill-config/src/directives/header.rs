//! `add_header`, `add_trailer`, `expires`, and other fields of answers.

use std::time::Duration;

use crate::Text;
use crate::config::settings::group;
use crate::config::{AddedHeader, Expires, Template};
use crate::directive::{ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};
use crate::value;

group! {
    /// Fields of answers.
    HeaderSettings {
        /// `add_header`.
        added: Vec<AddedHeader> = Vec::new(),
        /// `add_trailer`.
        trailers: Vec<AddedHeader> = Vec::new(),
        /// `early_hints`: 103 of a server is passed on if one of these is neither empty nor `0`.
        early_hints: Vec<Template> = Vec::new(),
        /// `expires`.
        expires: Expires = Expires::Off,
        /// `etag`.
        etag: bool = true,
        /// `if_modified_since`.
        if_modified_since: IfModifiedSince = IfModifiedSince::Exact,
        /// `max_ranges`; 0 turns ranges off, `None` is no limit.
        max_ranges: Option<u64> = None,
        /// `server_tokens`.
        server_tokens: ServerTokens = ServerTokens::On,
        /// `absolute_redirect`.
        absolute_redirect: bool = true,
        /// `port_in_redirect`.
        port_in_redirect: bool = true,
        /// `server_name_in_redirect`.
        server_name_in_redirect: bool = false,
        /// `chunked_transfer_encoding`.
        chunked_transfer_encoding: bool = true,
    }
}

/// `if_modified_since`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfModifiedSince {
    /// Ignore the field.
    Off,
    /// The dates must be equal.
    Exact,
    /// The file must not be newer.
    Before,
}

/// `server_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTokens {
    /// Name without version.
    Off,
    /// Name and version.
    On,
    /// Name, version and build.
    Build,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "add_header",
        ANY_LEVEL_AND_IF,
        Arity::Between(2, 3),
        Apply::With(|r, s| {
            let header = added(r, s)?;
            let list = r.level.settings.headers.added.get_or_insert_default();
            list.push(header);
            Ok(())
        }),
        "Adds a field to answers, with always to those of any status.",
    ),
    many(
        "add_trailer",
        ANY_LEVEL_AND_IF,
        Arity::Between(2, 3),
        Apply::With(|r, s| {
            let header = added(r, s)?;
            let list = r.level.settings.headers.trailers.get_or_insert_default();
            list.push(header);
            Ok(())
        }),
        "Adds a field behind the content of answers.",
    ),
    many(
        "early_hints",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(|r, s| {
            for word in s.args() {
                let condition = r.template(&word.bytes, s, word)?;
                let list = r.level.settings.headers.early_hints.get_or_insert_default();
                list.push(condition);
            }
            Ok(())
        }),
        "Pass on 103 (Early Hints) of a server if one of these texts is neither empty nor 0.",
    ),
    once(
        "expires",
        ANY_LEVEL_AND_IF,
        Arity::Between(1, 2),
        "off",
        Apply::With(expires),
        "Expires and Cache-Control: a time, modified and a time, @time of day, epoch, max or off.",
    ),
    once(
        "etag",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.headers.etag),
        "Send ETag with files.",
    ),
    once(
        "if_modified_since",
        ANY_LEVEL,
        Arity::Exactly(1),
        "exact",
        Apply::With(|r, s| {
            let choices = [
                ("off", IfModifiedSince::Off),
                ("exact", IfModifiedSince::Exact),
                ("before", IfModifiedSince::Before),
            ];
            r.level.settings.headers.if_modified_since = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "How If-Modified-Since is compared.",
    ),
    once(
        "max_ranges",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::With(|r, s| {
            r.level.settings.headers.max_ranges = Some(Some(r.number(s)?));
            Ok(())
        }),
        "Most ranges in a request; 0 answers none.",
    ),
    once(
        "server_tokens",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::With(|r, s| {
            let choices = [
                ("off", ServerTokens::Off),
                ("on", ServerTokens::On),
                ("build", ServerTokens::Build),
            ];
            r.level.settings.headers.server_tokens = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Show the version in Server and on error pages.",
    ),
    once(
        "absolute_redirect",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.headers.absolute_redirect),
        "Redirects name scheme and host.",
    ),
    once(
        "port_in_redirect",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.headers.port_in_redirect),
        "Absolute redirects name the port.",
    ),
    once(
        "server_name_in_redirect",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.headers.server_name_in_redirect),
        "Absolute redirects name the server, not the request's host.",
    ),
    once(
        "chunked_transfer_encoding",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.headers.chunked_transfer_encoding),
        "Allow chunked answers.",
    ),
];

fn added(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<AddedHeader> {
    let (name, value) = (statement.arg(1), statement.arg(2));
    let always = match statement.args().get(2) {
        None => false,
        Some(word) if word.bytes == b"always" => true,
        Some(word) => {
            let message = format!("invalid parameter \"{}\"", word.display());
            let mut error = resolver.emerg(statement, word, message);
            error.help = Some(String::from("a value with spaces needs quotes"));
            return Err(error);
        }
    };
    let value = resolver.template(&value.bytes, statement, value)?;
    Ok(AddedHeader {
        name: Text::from(name.bytes.as_slice()),
        value,
        always,
    })
}

fn expires(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let first = statement.arg(1);
    let (modified, word) = match statement.args() {
        [_, time] if first.bytes == b"modified" => (true, time),
        [_, _, ..] => return Err(resolver.refused_at(statement, first, "invalid value")),
        _ => (false, first),
    };
    let expires = if templates::has_variables(&word.bytes) {
        let value = resolver.template(&word.bytes, statement, word)?;
        Expires::Evaluated { value, modified }
    } else {
        let is_daily = word.bytes.first() == Some(&b'@');
        let parsed = Expires::parse(&word.bytes, modified);
        parsed.ok_or_else(|| {
            let what = match is_daily {
                true if modified => "daily time cannot be used with \"modified\" parameter",
                true if value::seconds(word.bytes.get(1..).unwrap_or_default()).is_some() => {
                    "daily time value must be less than 24 hours"
                }
                _ => "invalid value",
            };
            resolver.refused_at(statement, word, what)
        })?
    };
    resolver.level.settings.headers.expires = Some(expires);
    Ok(())
}

impl Expires {
    /// The time of an `expires` without variables; `modified` if that word preceded it.
    pub fn parse(text: &[u8], modified: bool) -> Option<Self> {
        if !modified {
            match text {
                b"epoch" => return Some(Self::Epoch),
                b"max" => return Some(Self::Max),
                b"off" => return Some(Self::Off),
                _ => {}
            }
        }
        let whole = |time: Duration| i64::try_from(time.as_secs()).ok();
        match text {
            [b'@', time @ ..] if !modified => {
                let time = u32::try_from(value::seconds(time)?.as_secs()).ok();
                time.filter(|&time| time <= DAY_SECONDS).map(Self::Daily)
            }
            time => {
                let (sign, time) = match time {
                    [b'-', time @ ..] => (-1, time),
                    [b'+', time @ ..] => (1, time),
                    time => (1, time),
                };
                let seconds = sign * whole(value::seconds(time)?)?;
                Some(if modified {
                    Self::Modified(seconds)
                } else {
                    Self::Access(seconds)
                })
            }
        }
    }
}

/// Seconds of a day: the limit of a time of day.
const DAY_SECONDS: u32 = 24 * 60 * 60;
