//! `limit_conn` and its like, in `stream`.

use crate::Text;
use crate::config::{ConnectionLimit, ConnectionZone, LogLevel};
use crate::directives::upstream::zone::{Purpose, ZONE_BYTES_MIN, declare};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::value;

/// `limit_conn_zone`.
pub(super) fn zone(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let key = statement.arg(1);
    let mut found = None;
    for word in statement.args().iter().skip(1) {
        let Some(text) = word.bytes.strip_prefix(b"zone=") else {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        };
        found = Some((word, name_and_size(resolver, statement, word, text)?));
    }
    let Some((word, (name, bytes))) = found else {
        let message = "\"limit_conn_zone\" must have \"zone\" parameter";
        return Err(resolver.emerg(statement, statement.name(), message));
    };
    let key_text = Text::from(key.bytes.as_slice());
    let known = resolver.http.iter().flat_map(|open| &open.limit_zones);
    if let Some(known) = known.clone().find(|known| known.name == name) {
        let (shown, bound) = (name.display(), known.key_text.display());
        let message = format!("limit_conn_zone \"{shown}\" is already bound to key \"{bound}\"");
        return Err(resolver.emerg(statement, word, message));
    }
    declare(
        resolver,
        statement,
        word,
        &name,
        Some(bytes),
        Purpose::Connections,
    )?;
    let key = resolver.template(&key.bytes, statement, key)?;
    if let Some(open) = &mut resolver.http {
        open.limit_zones.push(ConnectionZone {
            name,
            key,
            key_text,
            bytes,
        });
    }
    Ok(())
}

fn name_and_size(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    text: &[u8],
) -> Applied<(Text, u64)> {
    let fail = |message: String| Err(resolver.emerg(statement, word, message));
    let Some(colon) = text.iter().position(|&byte| byte == b':') else {
        return fail(format!("invalid zone size \"{}\"", word.display()));
    };
    let (name, size) = text.split_at(colon);
    let Some(bytes) = value::size(size.get(1..).unwrap_or_default()) else {
        return fail(format!("invalid zone size \"{}\"", word.display()));
    };
    if bytes < ZONE_BYTES_MIN {
        return fail(format!("zone \"{}\" is too small", word.display()));
    }
    Ok((Text::from(name), bytes))
}

/// `limit_conn`.
pub(super) fn limit(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (zone, number) = (statement.arg(1), statement.arg(2));
    let name = Text::from(zone.bytes.as_slice());
    declare(resolver, statement, zone, &name, None, Purpose::Connections)?;
    let most = value::number(&number.bytes).filter(|&most| most > 0);
    let Some(most) = most else {
        let message = format!("invalid number of connections \"{}\"", number.display());
        return Err(resolver.emerg(statement, number, message));
    };
    let Some(most) = u32::try_from(most).ok().filter(|&most| most <= MOST) else {
        return Err(resolver.emerg(statement, number, "connection limit must be less 65536"));
    };
    let limits = resolver
        .level
        .settings
        .stream
        .limits
        .get_or_insert_default();
    if limits.iter().any(|limit| limit.zone == name) {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    limits.push(ConnectionLimit { zone: name, most });
    Ok(())
}

/// The largest limit (nginx).
const MOST: u32 = 65_535;

/// `limit_conn_log_level`.
pub(super) fn log_level(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    const LEVELS: [(&str, LogLevel); 4] = [
        ("info", LogLevel::Info),
        ("notice", LogLevel::Notice),
        ("warn", LogLevel::Warn),
        ("error", LogLevel::Error),
    ];
    let level = resolver.choice(statement, statement.arg(1), &LEVELS)?;
    resolver.level.settings.stream.limit_log_level = Some(level);
    Ok(())
}
