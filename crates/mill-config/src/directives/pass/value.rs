//! Values of the directives that all protocols share.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::{
    BindAddress, IgnoredFields, NextUpstream, PassBind, PassBuffers, PassParam, PassStore,
};
use crate::config::TempPath;
use crate::config::settings::Amount;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver, templates};
use crate::{Text, value};

/// Names of the bits of a set.
pub(super) type Bits = [(&'static str, u16)];

const ERROR: (&str, u16) = ("error", NextUpstream::ERROR.0);
const TIMEOUT: (&str, u16) = ("timeout", NextUpstream::TIMEOUT.0);
const INVALID_HEADER: (&str, u16) = ("invalid_header", NextUpstream::INVALID_HEADER.0);
const NON_IDEMPOTENT: (&str, u16) = ("non_idempotent", NextUpstream::NON_IDEMPOTENT.0);
const UPDATING: (&str, u16) = ("updating", NextUpstream::UPDATING.0);
const OFF: (&str, u16) = ("off", NextUpstream::OFF.0);

pub(super) const NEXT_OF_HTTP: &Bits = &[
    ERROR,
    TIMEOUT,
    INVALID_HEADER,
    NON_IDEMPOTENT,
    ("http_500", NextUpstream::status(500).0),
    ("http_502", NextUpstream::status(502).0),
    ("http_503", NextUpstream::status(503).0),
    ("http_504", NextUpstream::status(504).0),
    ("http_403", NextUpstream::status(403).0),
    ("http_404", NextUpstream::status(404).0),
    ("http_429", NextUpstream::status(429).0),
    UPDATING,
    OFF,
];
pub(super) const NEXT_OF_CGI: &Bits = &[
    ERROR,
    TIMEOUT,
    INVALID_HEADER,
    NON_IDEMPOTENT,
    ("http_500", NextUpstream::status(500).0),
    ("http_503", NextUpstream::status(503).0),
    ("http_403", NextUpstream::status(403).0),
    ("http_404", NextUpstream::status(404).0),
    ("http_429", NextUpstream::status(429).0),
    UPDATING,
    OFF,
];
pub(super) const NEXT_OF_MEMCACHED: &Bits = &[
    ERROR,
    TIMEOUT,
    ("invalid_response", NextUpstream::INVALID_HEADER.0),
    ("not_found", NextUpstream::status(404).0),
    OFF,
];
const IGNORED: &Bits = &[
    ("X-Accel-Redirect", IgnoredFields::ACCEL_REDIRECT.0),
    ("X-Accel-Expires", IgnoredFields::ACCEL_EXPIRES.0),
    ("X-Accel-Limit-Rate", IgnoredFields::ACCEL_LIMIT_RATE.0),
    ("X-Accel-Buffering", IgnoredFields::ACCEL_BUFFERING.0),
    ("X-Accel-Charset", IgnoredFields::ACCEL_CHARSET.0),
    ("Expires", IgnoredFields::EXPIRES.0),
    ("Cache-Control", IgnoredFields::CACHE_CONTROL.0),
    ("Set-Cookie", IgnoredFields::SET_COOKIE.0),
    ("Vary", IgnoredFields::VARY.0),
    // Not in nginx.
    ("Cache-Control=no-cache", IgnoredFields::NO_CACHE.0),
    ("Cache-Control=no-store", IgnoredFields::NO_STORE.0),
    ("Cache-Control=private", IgnoredFields::PRIVATE.0),
    ("Cache-Control=max-age", IgnoredFields::MAX_AGE.0),
    ("Cache-Control=s-maxage", IgnoredFields::S_MAXAGE.0),
];

/// Adds the words of a statement to a set; a directive that is repeated in a block goes on with its set.
pub(super) fn bits(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    names: &Bits,
    set: u16,
) -> Applied<u16> {
    let mut set = set;
    for word in statement.args() {
        let bit = resolver.choice(statement, word, names)?;
        if set & bit != 0 {
            let message = format!("duplicate value \"{}\"", word.display());
            resolver.warn(statement, word, message);
        }
        set |= bit;
    }
    Ok(set)
}

pub(super) fn next_upstream(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    names: &Bits,
    before: Option<NextUpstream>,
) -> Applied<Option<NextUpstream>> {
    let set = bits(resolver, statement, names, before.map_or(0, |set| set.0))?;
    Ok(Some(NextUpstream(set)))
}

/// The same for stale answers, which any status of an error may have in their place.
pub(super) fn use_stale(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    names: &Bits,
    before: Option<NextUpstream>,
    statuses: &mut Vec<u16>,
) -> Applied<NextUpstream> {
    // What nginx has a word for, but not with this protocol, is refused as there.
    let is_known = |word: &Word| {
        let mut names = names.iter().chain(NEXT_OF_HTTP);
        names.any(|(name, _)| word.bytes.eq_ignore_ascii_case(name.as_bytes()))
    };
    let (others, words): (Vec<Word>, Vec<Word>) = (statement.args().iter().cloned())
        .partition(|word| !is_known(word) && status_of(&word.bytes).is_some());
    statuses.extend(others.iter().filter_map(|word| status_of(&word.bytes)));
    let known = Statement {
        words: [statement.name().clone()]
            .into_iter()
            .chain(words)
            .collect(),
        opens_block: false,
        line: statement.line,
        text: Arc::clone(&statement.text),
    };
    let set = next_upstream(resolver, &known, names, before)?;
    Ok(set.unwrap_or(NextUpstream::OFF))
}

/// `http_410`.
fn status_of(word: &[u8]) -> Option<u16> {
    let (prefix, digits) = word.split_at_checked(5)?;
    let status = value::number(digits).filter(|status| (400..=599).contains(status))?;
    let is_it = prefix.eq_ignore_ascii_case(b"http_") && digits.len() == 3;
    is_it.then(|| u16::try_from(status).ok())?
}

pub(super) fn ignore_headers(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    before: Option<IgnoredFields>,
) -> Applied<Option<IgnoredFields>> {
    let set = bits(resolver, statement, IGNORED, before.map_or(0, |set| set.0))?;
    Ok(Some(IgnoredFields(set)))
}

pub(super) fn buffers(resolver: &Resolver<'_>, statement: &Statement) -> Applied<PassBuffers> {
    let count = value::number(&statement.arg(1).bytes).filter(|&count| count > 0);
    let size = value::size(&statement.arg(2).bytes).filter(|&size| size > 0);
    match (count, size) {
        (Some(count), Some(size)) => Ok(PassBuffers { count, size }),
        _ => Err(resolver.refused(statement, "invalid value")),
    }
}

/// A size, or text that is evaluated for each request.
pub(crate) fn amount(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Amount> {
    let word = statement.arg(1);
    if templates::has_variables(&word.bytes) {
        let rate = resolver.template(&word.bytes, statement, word)?;
        return Ok(Amount::Evaluated(rate));
    }
    Ok(Amount::Fixed(resolver.read(statement, value::size)?))
}

/// The maximum of all digits in the names of subdirectories: those of a file's number.
const LEVEL_DIGITS_MAX: u8 = 10;

/// A directory, and the digits of its subdirectories.
pub(crate) fn temp_path(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<TempPath> {
    let word = statement.arg(1);
    let path = &word.bytes;
    let path = resolver.full_name(path.strip_suffix(b"/").unwrap_or(path));
    let mut levels = [0_u8; 3];
    let mut left = LEVEL_DIGITS_MAX;
    for (word, place) in statement.args().iter().skip(1).zip(&mut levels) {
        let digits = value::number(&word.bytes)
            .and_then(|digits| u8::try_from(digits).ok())
            .filter(|digits| (1..=left).contains(digits))
            .ok_or_else(|| resolver.refused_at(statement, word, "invalid value"))?;
        left -= digits;
        *place = digits;
    }
    resolver.claim_path(statement, word, &path, false)?;
    Ok(TempPath { path, levels })
}

pub(crate) fn bind(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<Option<PassBind>> {
    let word = statement.arg(1);
    if word.bytes == b"off" && statement.args().len() == 1 {
        return Ok(None);
    }
    let address = if templates::has_variables(&word.bytes) {
        BindAddress::Evaluated(resolver.template(&word.bytes, statement, word)?)
    } else {
        let address = address_and_port(&word.bytes).ok_or_else(|| {
            let message = format!("invalid address \"{}\"", word.display());
            resolver.emerg(statement, word, message)
        })?;
        BindAddress::Fixed(address)
    };
    let transparent = match statement.args().get(1) {
        None => false,
        Some(word) if word.bytes == b"transparent" => true,
        Some(word) => {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
    };
    Ok(Some(PassBind {
        address,
        transparent,
    }))
}

pub(super) fn address_and_port(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let without_port = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = without_port.unwrap_or(text).parse::<IpAddr>();
    address
        .map(|address| SocketAddr::new(address, 0))
        .or_else(|_| text.parse())
        .ok()
}

/// `cached` is the prefix of a protocol whose answers this block caches.
pub(super) fn store(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    cached: Option<&str>,
) -> Applied<PassStore> {
    let word = statement.arg(1);
    if let Some(prefix) = cached
        && word.bytes != b"off"
    {
        let what = format!("is incompatible with \"{prefix}_cache\"");
        return Err(resolver.refused(statement, &what));
    }
    Ok(match word.bytes.as_slice() {
        b"off" => PassStore::Off,
        b"on" => PassStore::On,
        path => PassStore::Path(resolver.template(path, statement, word)?),
    })
}

/// `user:rw group:r all:r`: permissions of a file.
pub(super) fn store_access(resolver: &Resolver<'_>, statement: &Statement) -> Applied<u32> {
    let mut access = 0;
    let mut user = 0o600;
    for word in statement.args() {
        let (class, rights) = match word.bytes.iter().position(|&byte| byte == b':') {
            Some(at) => word.bytes.split_at(at),
            None => (&[][..], &[][..]),
        };
        let shift = match class {
            b"user" => {
                user = 0;
                Some(6)
            }
            b"group" => Some(3),
            b"all" => Some(0),
            _ => None,
        };
        let rights = match rights {
            b":rw" => Some(6),
            b":r" => Some(4),
            _ => None,
        };
        let (Some(shift), Some(rights)) = (shift, rights) else {
            let message = format!("invalid value \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        };
        access |= rights << shift;
    }
    Ok(access | user)
}

/// A name, a value, and perhaps `if_not_empty`.
pub(crate) fn param(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<PassParam> {
    let (name, value) = (statement.arg(1), statement.arg(2));
    let if_not_empty = match statement.args().get(2) {
        None => false,
        Some(word) if word.bytes == b"if_not_empty" => true,
        Some(word) => {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
    };
    Ok(PassParam {
        name: Text::from(name.bytes.as_slice()),
        value: resolver.template(&value.bytes, statement, value)?,
        if_not_empty,
    })
}

/// One more text in a list.
pub(crate) fn add_text(list: &mut Option<Vec<Text>>, statement: &Statement) {
    let text = Text::from(statement.arg(1).bytes.as_slice());
    list.get_or_insert_default().push(text);
}
