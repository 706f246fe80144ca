//! What `limit_req` and `limit_conn` have in common: zones with a key, levels of lines, statuses.

use crate::Text;
use crate::config::{LogLevel, Template};
use crate::directives::upstream::zone::{Purpose, ZONE_BYTES_MIN, declare};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::HttpDraft;
use crate::resolve::{Applied, Resolver};
use crate::value;

/// Zones in the order in which they are first named: by a limit, or by the directive that defines them.
#[derive(Debug)]
pub(crate) struct LimitZonesDraft<Z>(Vec<(Text, Option<Z>)>);

impl<Z> Default for LimitZonesDraft<Z> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<Z> LimitZonesDraft<Z> {
    fn index(&mut self, name: &Text) -> usize {
        let known = self.0.iter().position(|(known, _)| known == name);
        known.unwrap_or_else(|| {
            self.0.push((name.clone(), None));
            self.0.len() - 1
        })
    }

    fn defined(&self, name: &Text) -> Option<&Z> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.and_then(|(_, zone)| zone.as_ref())
    }

    /// All zones by their index. One that is named only was refused before: it has no size.
    pub(crate) fn finish(self) -> Vec<Z> {
        self.0.into_iter().filter_map(|(_, zone)| zone).collect()
    }
}

/// A zone of one of the two kinds.
pub(super) trait LimitZone: Sized {
    const PURPOSE: Purpose;

    /// Those of the block that is open.
    fn zones(open: &mut HttpDraft) -> &mut LimitZonesDraft<Self>;

    fn key_text(&self) -> &Text;
}

/// What a `zone=NAME:SIZE` and the key before it say.
pub(super) struct ZoneParts {
    pub(super) name: Text,
    pub(super) key: Template,
    pub(super) key_text: Text,
    pub(super) bytes: u64,
}

/// The value of `zone=NAME:SIZE`, of which `text` is what stands behind `=`.
pub(super) fn name_and_size(
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

/// Claims the name of the zone that a directive defines, whose parameters have been read.
pub(super) fn claim<Z: LimitZone>(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    key: Template,
    zone: Option<(&Word, (Text, u64))>,
) -> Applied<ZoneParts> {
    let directive = statement.name().display();
    let Some((word, (name, bytes))) = zone.filter(|(_, (name, _))| !name.is_empty()) else {
        let message = format!("\"{directive}\" must have \"zone\" parameter");
        return Err(resolver.emerg(statement, statement.name(), message));
    };
    declare(resolver, statement, word, &name, Some(bytes), Z::PURPOSE)?;
    let open = resolver.http.as_mut();
    if let Some(known) = open.and_then(|open| Z::zones(open).defined(&name)) {
        let (shown, bound) = (name.display(), known.key_text().display());
        let message = format!("{directive} \"{shown}\" is already bound to key \"{bound}\"");
        return Err(resolver.emerg(statement, word, message));
    }
    Ok(ZoneParts {
        name,
        key,
        key_text: Text::from(statement.arg(1).bytes.as_slice()),
        bytes,
    })
}

/// Defines a zone whose name was claimed.
pub(super) fn define<Z: LimitZone>(resolver: &mut Resolver<'_>, name: &Text, zone: Z) {
    let index = index::<Z>(resolver, name);
    let open = resolver.http.as_mut();
    if let Some((_, place)) = open.and_then(|open| Z::zones(open).0.get_mut(index)) {
        *place = Some(zone);
    }
}

/// The index that the zone of this name has, or will have.
pub(super) fn index<Z: LimitZone>(resolver: &mut Resolver<'_>, name: &Text) -> usize {
    let open = resolver.http.as_mut();
    open.map_or(0, |open| Z::zones(open).index(name))
}

/// `limit_…_log_level`.
pub(super) fn log_level(resolver: &Resolver<'_>, statement: &Statement) -> Applied<LogLevel> {
    const LEVELS: [(&str, LogLevel); 4] = [
        ("info", LogLevel::Info),
        ("notice", LogLevel::Notice),
        ("warn", LogLevel::Warn),
        ("error", LogLevel::Error),
    ];
    resolver.choice(statement, statement.arg(1), &LEVELS)
}

/// `limit_…_status`.
pub(super) fn status(resolver: &Resolver<'_>, statement: &Statement) -> Applied<u16> {
    let status = resolver.number(statement)?;
    let status = u16::try_from(status).ok();
    let known = status.filter(|status| (400..=599).contains(status));
    known.ok_or_else(|| {
        let message = "value must be between 400 and 599";
        resolver.emerg(statement, statement.arg(1), message)
    })
}
