//! Responders of OCSP.

use super::SessionZone;
use crate::Text;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::url::Url;
use crate::value;

/// The URL of a responder: in clear, for its answers are signed.
pub(super) fn responder(resolver: &Resolver<'_>, statement: &Statement) -> Applied<String> {
    let word = statement.arg(1);
    let text = String::from_utf8_lossy(&word.bytes).into_owned();
    let Some(rest) = text.strip_prefix("http://") else {
        let message = format!("invalid URL prefix in OCSP responder \"{text}\"");
        return Err(resolver.emerg(statement, word, message));
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let is_url = word.bytes.iter().all(u8::is_ascii_graphic);
    match Url::parse(authority.as_bytes(), 80, false) {
        Ok(url) if is_url && !url.is_unix() && !url.host.is_empty() => Ok(text),
        _ => {
            let message = format!("invalid host in OCSP responder \"{text}\"");
            Err(resolver.emerg(statement, word, message))
        }
    }
}

/// About which certificates of a client its issuers are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientOcsp {
    Off,
    /// Its own one.
    Leaf,
    /// All that lead to a trusted one.
    On,
}

pub(super) fn client(resolver: &Resolver<'_>, statement: &Statement) -> Applied<ClientOcsp> {
    let word = statement.arg(1);
    match word.bytes.as_slice() {
        b"off" => Ok(ClientOcsp::Off),
        b"leaf" => Ok(ClientOcsp::Leaf),
        b"on" => Ok(ClientOcsp::On),
        _ => {
            let message = format!("invalid value \"{}\"", word.display());
            let mut refused = resolver.emerg(statement, word, message);
            refused.help = Some(String::from("one of: on, off, leaf"));
            Err(refused)
        }
    }
}

/// `off | shared:name:size`.
pub(super) fn cache(
    resolver: &Resolver<'_>,
    statement: &Statement,
) -> Applied<Option<SessionZone>> {
    let word = statement.arg(1);
    if word.bytes == b"off" {
        return Ok(None);
    }
    let zone = word.bytes.strip_prefix(b"shared:").and_then(|rest| {
        let colon = rest.iter().position(|byte| *byte == b':')?;
        let (name, size) = rest.split_at(colon);
        let bytes = value::size(size.get(1..)?)?;
        (!name.is_empty()).then(|| SessionZone {
            name: Text::from(name),
            bytes,
        })
    });
    let refused = |fault: &str| {
        let message = format!("{fault} \"{}\"", word.display());
        resolver.emerg(statement, word, message)
    };
    let zone = zone.ok_or_else(|| refused("invalid OCSP cache"))?;
    match zone.bytes < ZONE_BYTES_MIN {
        true => Err(refused("too small OCSP cache")),
        false => Ok(Some(zone)),
    }
}

/// Eight pages, as for all zones.
const ZONE_BYTES_MIN: u64 = 8 * 4096;
