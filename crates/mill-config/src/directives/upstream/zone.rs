//! Zones of shared memory: names and sizes are checked as in nginx, memory is taken as needed.

use crate::Text;
use crate::config::{PassProtocol, UpstreamZone};
use crate::lexer::{Statement, Word};
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver};
use crate::value;

/// The least size: eight pages.
pub(crate) const ZONE_BYTES_MIN: u64 = 8 * 4096;

/// A zone that some directive names.
pub(crate) struct ZoneDraft {
    name: Text,
    purpose: Purpose,
    /// 0 if no directive tells it yet.
    size_bytes: u64,
    origin: Origin,
}

/// What a zone is for: one name has one purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `zone` of a group.
    Group,
    /// `sticky learn`.
    Sessions,
    /// `limit_conn_zone`.
    Connections,
    /// `limit_req_zone`.
    Requests,
    /// `…_cache_path`.
    Cache(PassProtocol),
}

pub(super) fn zone(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.arg(1);
    if name.bytes.is_empty() {
        let message = format!("invalid zone name \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    let size = statement.args().get(1).map(|word| {
        let size = value::size(&word.bytes).ok_or_else(|| {
            let message = format!("invalid zone size \"{}\"", word.display());
            resolver.emerg(statement, word, message)
        })?;
        if size < ZONE_BYTES_MIN {
            let message = format!("zone \"{}\" is too small", name.display());
            return Err(resolver.emerg(statement, word, message));
        }
        Ok(size)
    });
    let size_bytes = size.transpose()?;
    let text = Text::from(name.bytes.as_slice());
    declare(resolver, statement, name, &text, size_bytes, Purpose::Group)?;
    resolver.upstream.zone = Some(UpstreamZone {
        name: text,
        size_bytes,
    });
    Ok(())
}

/// Notes a zone; false if it is known.
pub(crate) fn declare(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    name: &Text,
    size_bytes: Option<u64>,
    purpose: Purpose,
) -> Applied<bool> {
    let shown = name.display();
    let Some(http) = &mut resolver.http else {
        return Ok(true);
    };
    let Some(known) = http.zones.iter_mut().find(|zone| zone.name == *name) else {
        http.zones.push(ZoneDraft {
            name: name.clone(),
            purpose,
            size_bytes: size_bytes.unwrap_or(0),
            origin: Origin::of(statement, word),
        });
        return Ok(true);
    };
    let size = size_bytes.unwrap_or(known.size_bytes);
    let message = if known.purpose != purpose {
        format!("the shared memory zone \"{shown}\" is already declared for a different use")
    } else if known.size_bytes == 0 || known.size_bytes == size {
        known.size_bytes = size;
        return Ok(false);
    } else {
        let before = known.size_bytes;
        format!(
            "the size {size} of shared memory zone \"{shown}\" conflicts with already declared size {before}"
        )
    };
    Err(resolver.emerg(statement, word, message))
}

/// Refuses a zone whose size no directive tells.
pub(crate) fn check(zones: &[ZoneDraft]) -> Applied {
    match zones.iter().find(|zone| zone.size_bytes == 0) {
        Some(zone) => {
            let shown = zone.name.display();
            let message = format!("zero size shared memory zone \"{shown}\"");
            Err(zone.origin.error(message))
        }
        None => Ok(()),
    }
}
