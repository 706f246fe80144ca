//! `ssl_session_…`: how sessions are resumed.

use super::file::TlsFile;
use crate::Text;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, join};
use crate::value;

/// A zone of sessions that servers keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionZone {
    pub name: Text,
    pub bytes: u64,
}

/// `off | none | [builtin[:size]] [shared:name:size]`.
pub(super) fn cache(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<Option<SessionZone>> {
    let mut zone = None;
    for word in statement.args() {
        let invalid = |message: String| resolver.emerg(statement, word, message);
        let text = word.bytes.as_slice();
        if matches!(text, b"off" | b"none" | b"builtin") {
            continue;
        }
        let refused = || invalid(format!("invalid session cache \"{}\"", word.display()));
        if let Some(number) = text.strip_prefix(b"builtin:") {
            value::number(number).ok_or_else(refused)?;
            continue;
        }
        let rest = text.strip_prefix(b"shared:").ok_or_else(refused)?;
        let colon = rest
            .iter()
            .position(|byte| *byte == b':')
            .ok_or_else(refused)?;
        let (name, size) = rest.split_at(colon);
        let bytes = value::size(size.get(1..).unwrap_or_default()).ok_or_else(refused)?;
        if name.is_empty() {
            return Err(refused());
        }
        if bytes < ZONE_BYTES_MIN {
            let message = format!("session cache \"{}\" is too small", word.display());
            return Err(invalid(message));
        }
        zone = Some(SessionZone {
            name: Text::from(name),
            bytes,
        });
    }
    Ok(zone)
}

/// A file of 48 or 80 random bytes.
pub(super) fn ticket_key(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<TlsFile> {
    let word = statement.arg(1);
    let path = join(&resolver.options.conf_prefix(), &word.bytes);
    let failed = |reason: String| {
        let message = format!("\"{}\" {reason}", path.display());
        resolver.emerg(statement, word, message)
    };
    let content = resolver
        .source
        .read_secret(&path)
        .map_err(|error| failed(format!("cannot be opened ({}: {})", error.code, error.text)))?;
    if !matches!(content.len(), 48 | 80) {
        return Err(failed(String::from("must be 48 or 80 bytes")));
    }
    Ok(TlsFile {
        pem: Text::from(content.as_slice()),
        evaluated: None,
        position: resolver.emerg(statement, word, "").place,
        name: path,
    })
}

/// Eight pages, as nginx.
const ZONE_BYTES_MIN: u64 = 8 * 4096;
