//! Compression.

use std::sync::Arc;

use crate::config::settings::{GzipDisable, GzipProxied, GzipStatic, HttpVersion};
use crate::directive::{ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, Value, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "gzip",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.gzip),
        "Compress answers.",
    ),
    once(
        "gzip_comp_level",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1",
        Apply::With(comp_level),
        "From 1, fast, to 9, small.",
    ),
    once(
        "gzip_min_length",
        ANY_LEVEL,
        Arity::Exactly(1),
        "20",
        Apply::Size(|s| &mut s.gzip_min_length),
        "Shorter answers are not compressed.",
    ),
    once(
        "gzip_http_version",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1.1",
        Apply::With(|r, s| {
            let choices = [("1.0", HttpVersion::Http10), ("1.1", HttpVersion::Http11)];
            r.level.settings.gzip_http_version = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "The least version of a request whose answer is compressed.",
    ),
    many(
        "gzip_types",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(|r, s| {
            let kinds = r.level.settings.gzip_types.take();
            r.level.settings.gzip_types = Some(r.media_types(s, kinds));
            Ok(())
        }),
        "Media types that are compressed besides text/html, or *.",
    ),
    once(
        "gzip_proxied",
        ANY_LEVEL,
        Arity::AtLeast(1),
        "off",
        Apply::With(proxied),
        "When answers to proxies are compressed.",
    ),
    once(
        "gzip_vary",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.gzip_vary),
        "Send Vary: Accept-Encoding.",
    ),
    many(
        "gzip_disable",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(disable),
        "User agents that get no compressed answers.",
    ),
    once(
        "gzip_static",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::With(|r, s| {
            let choices = [
                ("off", GzipStatic::Off),
                ("on", GzipStatic::On),
                ("always", GzipStatic::Always),
            ];
            r.level.settings.gzip_static = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Send FILE.gz in the place of FILE.",
    ),
    once(
        "gzip_buffers",
        ANY_LEVEL,
        Arity::Exactly(2),
        "32 4k",
        Apply::WithoutEffect(
            Value::Buffers,
            "compressed content goes through pooled buffers",
        ),
        "Buffers for compressed content.",
    ),
    once(
        "gzip_window",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::WithoutEffect(Value::Size, "the compressor always uses its full window"),
        "Window of the compressor.",
    ),
    once(
        "gzip_hash",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::WithoutEffect(
            Value::Size,
            "the compressor chooses its tables by its level",
        ),
        "Memory of the compressor.",
    ),
    once(
        "gzip_no_buffer",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::WithoutEffect(Value::Flag, "it changes when bytes leave, not which"),
        "Flush compressed content at once.",
    ),
    once(
        "postpone_gzipping",
        ANY_LEVEL,
        Arity::Exactly(1),
        "0",
        Apply::WithoutEffect(Value::Size, "it changes when bytes leave, not which"),
        "Collect so much before compressing.",
    ),
];

fn comp_level(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let level = value::number(&word.bytes)
        .ok_or_else(|| resolver.refused_at(statement, word, "invalid number"))?;
    if !(1..=9).contains(&level) {
        return Err(resolver.emerg(statement, word, "value must be between 1 and 9"));
    }
    resolver.level.settings.gzip_comp_level = u8::try_from(level).ok();
    Ok(())
}

fn proxied(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut set = GzipProxied::default();
    for word in statement.args() {
        let field = match word.bytes.to_ascii_lowercase().as_slice() {
            b"off" => continue,
            b"expired" => &mut set.expired,
            b"no-cache" => &mut set.no_cache,
            b"no-store" => &mut set.no_store,
            b"private" => &mut set.private,
            b"no_last_modified" => &mut set.no_last_modified,
            b"no_etag" => &mut set.no_etag,
            b"auth" => &mut set.auth,
            b"any" => &mut set.any,
            _ => {
                let message = format!("invalid value \"{}\"", word.display());
                return Err(resolver.emerg(statement, word, message));
            }
        };
        if std::mem::replace(field, true) {
            let message = format!("duplicate value \"{}\"", word.display());
            resolver.warn(statement, word, message);
        }
    }
    resolver.level.settings.gzip_proxied = Some(set);
    Ok(())
}

fn disable(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut agents = Vec::new();
    for word in statement.args() {
        agents.push(match word.bytes.as_slice() {
            b"msie6" => GzipDisable::Msie6,
            source => GzipDisable::Pattern(resolver.shared_pattern(source, true, statement, word)?),
        });
    }
    let list = resolver.level.settings.gzip_disable.get_or_insert_default();
    Arc::make_mut(list).extend(agents);
    Ok(())
}
