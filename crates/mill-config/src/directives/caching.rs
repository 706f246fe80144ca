//! Millstream's own directives about caches of all protocols: which rules hold, what Cache-Status tells, fields with
//! tags, fields of Targeted Cache-Control.

use crate::Text;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, once};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};

group! {
    /// What caches of all protocols have in common.
    CachingSettings {
        /// `cache_rules`.
        rules: CacheRules = CacheRules::Nginx,
        /// `cache_status`: the name of this cache in the field Cache-Status (RFC 9211); printable ASCII, not empty. `None`
        /// sends no such field.
        status: Option<Text> = None,
        /// `cache_tags`: names of fields in answers that hold tags; empty is off.
        tags: Vec<Text> = Vec::new(),
        /// `cache_targeted`: names of fields that stand in for Cache-Control (RFC 9213), the first one that an answer has
        /// before the others; empty is off.
        targeted: Vec<Text> = Vec::new(),
        /// `cache_object_max`: most bytes of content that one kept answer may have.
        object_max_bytes: u64 = 64 << 20,
    }
}

/// `cache_rules`: what decides whether an answer is kept and taken, where the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheRules {
    /// As nginx does.
    Nginx,
    /// As RFC 9111 says.
    Rfc9111,
}

/// Longest name in Cache-Status, in bytes: it is sent with each answer, and hosts' names are not longer (RFC 1035 2.3.4).
const STATUS_NAME_LEN_MAX: usize = 255;

/// Most fields of `cache_tags` or `cache_targeted`: each of them is looked for in each answer.
const FIELDS_MAX: usize = 16;

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "cache_rules",
        ANY_LEVEL,
        Arity::Exactly(1),
        "nginx",
        Apply::With(|r, s| {
            let choices = [
                ("nginx", CacheRules::Nginx),
                ("rfc9111", CacheRules::Rfc9111),
            ];
            r.level.settings.caching.rules = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Millstream's own: whether caches follow nginx or RFC 9111 where these differ.",
    ),
    once(
        "cache_status",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::With(cache_status),
        "Millstream's own: the name of this cache in the field Cache-Status (RFC 9211), which tells hits and reasons of misses. off sends none.",
    ),
    once(
        "cache_tags",
        ANY_LEVEL,
        Arity::AtLeast(1),
        "off",
        Apply::With(|r, s| {
            r.level.settings.caching.tags = Some(field_names(r, s)?);
            Ok(())
        }),
        "Millstream's own: fields of answers whose words are tags that answers can be purged by, as Surrogate-Key or Cache-Tag.",
    ),
    once(
        "cache_targeted",
        ANY_LEVEL,
        Arity::AtLeast(1),
        "off",
        Apply::With(|r, s| {
            r.level.settings.caching.targeted = Some(field_names(r, s)?);
            Ok(())
        }),
        "Millstream's own: fields that stand in for Cache-Control (RFC 9213), as CDN-Cache-Control; the first that an answer has.",
    ),
    once(
        "cache_object_max",
        ANY_LEVEL,
        Arity::Exactly(1),
        "64m",
        Apply::Offset(|s| &mut s.caching.object_max_bytes),
        "Millstream's own: most bytes of content of an answer that is kept.",
    ),
];

fn cache_status(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let name = word.bytes.as_slice();
    // A Token or a String of RFC 8941 3.3; neither has room for other bytes.
    let fits = name.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && (1..=STATUS_NAME_LEN_MAX).contains(&name.len());
    if !fits {
        let message = format!("invalid name of a cache \"{}\"", word.display());
        let mut error = resolver.emerg(statement, word, message);
        error.help = Some(format!(
            "1 to {STATUS_NAME_LEN_MAX} printable characters of ASCII"
        ));
        return Err(error);
    }
    let name = (name != b"off").then(|| Text::from(name));
    resolver.level.settings.caching.status = Some(name);
    Ok(())
}

/// Names of fields, or `off` alone.
fn field_names(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Vec<Text>> {
    let words = statement.args();
    if let [word] = words
        && word.bytes == b"off"
    {
        return Ok(Vec::new());
    }
    let mut names: Vec<Text> = Vec::new();
    for word in words {
        if names.len() == FIELDS_MAX {
            let message = format!("more than {FIELDS_MAX} names of fields");
            return Err(resolver.emerg(statement, word, message));
        }
        let name = field_name(resolver, statement, word)?;
        if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            let message = format!("duplicate value \"{}\"", word.display());
            resolver.warn(statement, word, message);
        } else {
            names.push(name);
        }
    }
    Ok(names)
}

/// A token of RFC 9110 5.6.2. `off` among names is a mistake.
fn field_name(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Applied<Text> {
    let name = word.bytes.as_slice();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || name == b"off" || !name.iter().all(is_token) {
        let message = format!("invalid name of a field \"{}\"", word.display());
        return Err(resolver.emerg(statement, word, message));
    }
    Ok(Text::from(name))
}
