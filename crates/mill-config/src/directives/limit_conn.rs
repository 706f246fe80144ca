//! `limit_conn` and its like, in `http` and in `stream`.

use super::limit_zone::{self, LimitZone, LimitZonesDraft};
use crate::Text;
use crate::config::settings::group;
use crate::config::{ConnectionLimit, ConnectionZone, LogLevel};
use crate::directive::{
    ALL_LEVELS, ANY_LEVEL, Apply, Arity, Directive, HTTP_AND_STREAM, many, once,
};
use crate::directives::upstream::zone::{Purpose, declare};
use crate::lexer::Statement;
use crate::resolve::draft::HttpDraft;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// How many requests, or connections of `stream`, there may be at a time.
    LimitConnSettings {
        /// `limit_conn`.
        limits: Vec<ConnectionLimit> = Vec::new(),
        /// `limit_conn_log_level`.
        log_level: LogLevel = LogLevel::Error,
        /// `limit_conn_status`; `stream` has none.
        status: u16 = 503,
        /// `limit_conn_dry_run`: what is beyond a limit is logged and served.
        dry_run: bool = false,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "limit_conn_zone",
        HTTP_AND_STREAM,
        Arity::Exactly(2),
        Apply::With(zone),
        "Counts requests under way, in stream connections, by a key, for all workers together: zone=NAME:SIZE.",
    ),
    many(
        "limit_conn",
        ALL_LEVELS,
        Arity::Exactly(2),
        Apply::With(limit),
        "Most requests under way, in stream connections, at a time of a key of this zone.",
    ),
    once(
        "limit_conn_log_level",
        ALL_LEVELS,
        Arity::Exactly(1),
        "error",
        Apply::With(|r, s| {
            r.level.settings.limit_conn.log_level = Some(limit_zone::log_level(r, s)?);
            Ok(())
        }),
        "Level of the line for what is beyond a limit: info, notice, warn or error.",
    ),
    once(
        "limit_conn_status",
        ANY_LEVEL,
        Arity::Exactly(1),
        "503",
        Apply::With(|r, s| {
            r.level.settings.limit_conn.status = Some(limit_zone::status(r, s)?);
            Ok(())
        }),
        "Status of the answer to a request beyond a limit, from 400 to 599.",
    ),
    once(
        "limit_conn_dry_run",
        ALL_LEVELS,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.limit_conn.dry_run),
        "What is beyond a limit is logged, and served all the same.",
    ),
];

fn zone(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let key = statement.arg(1);
    let key = resolver.template(&key.bytes, statement, key)?;
    let mut zone = None;
    for word in statement.args().iter().skip(1) {
        let Some(text) = word.bytes.strip_prefix(b"zone=") else {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        };
        let parts = limit_zone::name_and_size(resolver, statement, word, text)?;
        zone = Some((word, parts));
    }
    let parts = limit_zone::claim::<ConnectionZone>(resolver, statement, key, zone)?;
    let zone = ConnectionZone {
        name: parts.name.clone(),
        key: parts.key,
        key_text: parts.key_text,
        bytes: parts.bytes,
    };
    limit_zone::define(resolver, &parts.name, zone);
    Ok(())
}

impl LimitZone for ConnectionZone {
    const PURPOSE: Purpose = Purpose::Connections;

    fn zones(open: &mut HttpDraft) -> &mut LimitZonesDraft<Self> {
        &mut open.connection_zones
    }

    fn key_text(&self) -> &Text {
        &self.key_text
    }
}

fn limit(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (zone, number) = (statement.arg(1), statement.arg(2));
    let name = Text::from(zone.bytes.as_slice());
    declare(resolver, statement, zone, &name, None, Purpose::Connections)?;
    let zone = limit_zone::index::<ConnectionZone>(resolver, &name);
    let limits = &resolver.level.settings.limit_conn.limits;
    if limits.iter().flatten().any(|limit| limit.zone == zone) {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    let Some(most) = value::number(&number.bytes).filter(|&most| most > 0) else {
        let message = format!("invalid number of connections \"{}\"", number.display());
        return Err(resolver.emerg(statement, number, message));
    };
    let Some(most) = u32::try_from(most).ok().filter(|&most| most <= MOST) else {
        return Err(resolver.emerg(statement, number, "connection limit must be less 65536"));
    };
    let limits = &mut resolver.level.settings.limit_conn.limits;
    limits
        .get_or_insert_default()
        .push(ConnectionLimit { zone, most });
    Ok(())
}

/// The largest limit (nginx).
const MOST: u32 = 65_535;
