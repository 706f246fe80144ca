//! Certificates whose names have variables, kept between handshakes.

use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;
use std::time::Duration;

/// `ssl_certificate_cache`: pairs of a certificate and its key that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateCache {
    /// `max=` pairs; the one that was not used for longest makes room.
    pub max: u64,
    /// `inactive=`: a pair is removed if unused for so long.
    pub inactive: Duration,
    /// `valid=`: after it the files are looked at again, and loaded if they are other ones.
    pub valid: Duration,
}

pub(super) fn certificate_cache(
    resolver: &Resolver<'_>,
    statement: &Statement,
) -> Applied<Option<CertificateCache>> {
    let mut cache = CertificateCache {
        max: 0,
        inactive: Duration::from_secs(10),
        valid: Duration::from_secs(60),
    };
    let mut off = false;
    for word in statement.args() {
        let text = word.bytes.as_slice();
        let read = if let Some(text) = text.strip_prefix(b"max=") {
            let max = value::number(text).filter(|&max| max > 0);
            max.map(|max| cache.max = max)
        } else if let Some(text) = text.strip_prefix(b"inactive=") {
            value::seconds(text).map(|time| cache.inactive = time)
        } else if let Some(text) = text.strip_prefix(b"valid=") {
            value::seconds(text).map(|time| cache.valid = time)
        } else {
            (text == b"off").then(|| off = true)
        };
        read.ok_or_else(|| {
            let message = format!("invalid parameter \"{}\"", word.display());
            resolver.emerg(statement, word, message)
        })?;
    }
    if !off && cache.max == 0 {
        let message = "\"ssl_certificate_cache\" must have the \"max\" parameter";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    Ok((!off).then_some(cache))
}
