//! `limit_req` and its like: how many requests of a key there may be in a second.

use super::limit_zone::{self, LimitZone, LimitZonesDraft};
use crate::Text;
use crate::config::settings::group;
use crate::config::{LogLevel, RequestLimit, RequestZone};
use crate::diagnostic::Diagnostic;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, HTTP, many, once};
use crate::directives::upstream::zone::{Purpose, declare};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::HttpDraft;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// How many requests of a key there may be in a second.
    LimitReqSettings {
        /// `limit_req`, in the order in which they are examined.
        limits: Vec<RequestLimit> = Vec::new(),
        /// `limit_req_log_level`, of refused requests; delayed ones are one level less severe.
        log_level: LogLevel = LogLevel::Error,
        /// `limit_req_status`.
        status: u16 = 503,
        /// `limit_req_dry_run`: requests beyond a limit are logged, and neither refused nor delayed.
        dry_run: bool = false,
    }
}

impl LimitReqSettings {
    /// The level of the line for a delayed request.
    pub const fn delay_level(&self) -> LogLevel {
        match self.log_level {
            LogLevel::Error => LogLevel::Warn,
            LogLevel::Warn => LogLevel::Notice,
            _ => LogLevel::Info,
        }
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "limit_req_zone",
        HTTP,
        Arity::Exactly(3),
        Apply::With(zone),
        "Counts requests by a key, for all workers together: zone=NAME:SIZE, and the rate=Nr/s or Nr/m that is in order.",
    ),
    many(
        "limit_req",
        ANY_LEVEL,
        Arity::Between(1, 3),
        Apply::With(limit),
        "Requests beyond the rate of this zone=NAME wait; beyond burst=N they are refused. With delay=N the first N do not wait, with \
         nodelay none.",
    ),
    once(
        "limit_req_log_level",
        ANY_LEVEL,
        Arity::Exactly(1),
        "error",
        Apply::With(|r, s| {
            r.level.settings.limit_req.log_level = Some(limit_zone::log_level(r, s)?);
            Ok(())
        }),
        "Level of the line for a refused request, one more than for a delayed one: info, notice, warn or error.",
    ),
    once(
        "limit_req_status",
        ANY_LEVEL,
        Arity::Exactly(1),
        "503",
        Apply::With(|r, s| {
            r.level.settings.limit_req.status = Some(limit_zone::status(r, s)?);
            Ok(())
        }),
        "Status of the answer to a refused request, from 400 to 599.",
    ),
    once(
        "limit_req_dry_run",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.limit_req.dry_run),
        "Requests beyond a limit are counted and logged, and neither refused nor delayed.",
    ),
];

fn zone(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let key = statement.arg(1);
    let key = resolver.template(&key.bytes, statement, key)?;
    let (mut zone, mut rate) = (None, ONE);
    for word in statement.args().iter().skip(1) {
        if let Some(text) = word.bytes.strip_prefix(b"zone=") {
            let parts = limit_zone::name_and_size(resolver, statement, word, text)?;
            zone = Some((word, parts));
        } else if let Some(text) = word.bytes.strip_prefix(b"rate=") {
            rate = rate_of(text).ok_or_else(|| invalid(resolver, statement, word, "rate"))?;
        } else {
            return Err(invalid(resolver, statement, word, "parameter"));
        }
    }
    let parts = limit_zone::claim::<RequestZone>(resolver, statement, key, zone)?;
    let zone = RequestZone {
        name: parts.name.clone(),
        key: parts.key,
        key_text: parts.key_text,
        bytes: parts.bytes,
        rate,
    };
    limit_zone::define(resolver, &parts.name, zone);
    Ok(())
}

/// `10r/s`, `30r/m`, or a number of requests in a second.
fn rate_of(text: &[u8]) -> Option<u64> {
    let (number, seconds) = match (text.strip_suffix(b"r/s"), text.strip_suffix(b"r/m")) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 60),
        _ => (text, 1),
    };
    let number = value::number(number).filter(|&number| number > 0)?;
    Some(number.saturating_mul(ONE) / seconds)
}

impl LimitZone for RequestZone {
    const PURPOSE: Purpose = Purpose::Requests;

    fn zones(open: &mut HttpDraft) -> &mut LimitZonesDraft<Self> {
        &mut open.request_zones
    }

    fn key_text(&self) -> &Text {
        &self.key_text
    }
}

fn limit(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (mut zone, mut burst, mut delay) = (None, 0, 0);
    for word in statement.args() {
        let bytes = word.bytes.as_slice();
        if let Some(text) = bytes.strip_prefix(b"zone=") {
            let name = Text::from(text);
            declare(resolver, statement, word, &name, None, Purpose::Requests)?;
            zone = Some(limit_zone::index::<RequestZone>(resolver, &name));
        } else if let Some(text) = bytes.strip_prefix(b"burst=") {
            let number = thousandths(text);
            burst = number.ok_or_else(|| invalid(resolver, statement, word, "burst value"))?;
        } else if let Some(text) = bytes.strip_prefix(b"delay=") {
            let number = thousandths(text);
            delay = number.ok_or_else(|| invalid(resolver, statement, word, "delay value"))?;
        } else if bytes == b"nodelay" {
            delay = RequestLimit::NO_DELAY;
        } else {
            return Err(invalid(resolver, statement, word, "parameter"));
        }
    }
    let Some(zone) = zone else {
        let message = "\"limit_req\" must have \"zone\" parameter";
        return Err(resolver.emerg(statement, statement.name(), message));
    };
    let limits = &resolver.level.settings.limit_req.limits;
    if limits.iter().flatten().any(|limit| limit.zone == zone) {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    let limits = &mut resolver.level.settings.limit_req.limits;
    limits
        .get_or_insert_default()
        .push(RequestLimit { zone, burst, delay });
    Ok(())
}

/// A number of requests, at least 1.
fn thousandths(text: &[u8]) -> Option<u64> {
    let number = value::number(text).filter(|&number| number > 0)?;
    Some(number.saturating_mul(ONE))
}

fn invalid(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    what: &str,
) -> Box<Diagnostic> {
    let message = format!("invalid {what} \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}

/// One request.
const ONE: u64 = 1000;
