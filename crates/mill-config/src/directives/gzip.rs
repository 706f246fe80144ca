//! Compression.

use std::sync::Arc;

use crate::Text;
use crate::config::Pattern;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, ANY_LEVEL_AND_IF, Apply, Arity, Directive, Value, many, once};
use crate::directives::mime::MimeSet;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// Compression.
    GzipSettings {
        /// `gzip`.
        enabled: bool = false,
        /// `gzip_comp_level`, 1 to 9.
        comp_level: u8 = 1,
        /// `gzip_min_length`, in bytes of the Content-Length.
        min_length: u64 = 20,
        /// `gzip_http_version`: the lowest version that gets compressed answers.
        http_version: HttpVersion = HttpVersion::Http11,
        /// `gzip_types`.
        types: MimeSet = MimeSet::Only(vec![Text::from("text/html")]),
        /// `gzip_proxied`.
        proxied: GzipProxied = GzipProxied::default(),
        /// `gzip_vary`.
        vary: bool = false,
        /// `gzip_disable`: user agents that get no compressed answer.
        disable: Vec<GzipDisable> = Vec::new(),
        /// `gzip_static`.
        precompressed: GzipStatic = GzipStatic::Off,
    }
}

/// A version of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, spoken with servers.
    Http2,
}

/// `gzip_proxied`: which answers to requests with a Via field are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GzipProxied {
    /// All of them (then the other fields are irrelevant).
    pub any: bool,
    /// Those that Expires prevents from being cached.
    pub expired: bool,
    /// With Cache-Control: no-cache.
    pub no_cache: bool,
    /// With Cache-Control: no-store.
    pub no_store: bool,
    /// With Cache-Control: private.
    pub private: bool,
    /// Without Last-Modified.
    pub no_last_modified: bool,
    /// Without ETag.
    pub no_etag: bool,
    /// To requests with Authorization.
    pub auth: bool,
}

/// One word of `gzip_disable`.
#[derive(Debug, Clone)]
pub enum GzipDisable {
    /// `msie6`: MSIE 4 to 6 but not 6 with SV1.
    Msie6,
    /// A regular expression on User-Agent, case-insensitive.
    Pattern(Arc<Pattern>),
}

/// `gzip_static`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GzipStatic {
    /// No.
    Off,
    /// `FILE.gz` for clients that accept it.
    On,
    /// `FILE.gz` for all.
    Always,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "gzip",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.gzip.enabled),
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
        Apply::Size(|s| &mut s.gzip.min_length),
        "Shorter answers are not compressed.",
    ),
    once(
        "gzip_http_version",
        ANY_LEVEL,
        Arity::Exactly(1),
        "1.1",
        Apply::With(|r, s| {
            let choices = [("1.0", HttpVersion::Http10), ("1.1", HttpVersion::Http11)];
            r.level.settings.gzip.http_version = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "The least version of a request whose answer is compressed.",
    ),
    many(
        "gzip_types",
        ANY_LEVEL,
        Arity::AtLeast(1),
        Apply::With(|r, s| {
            let kinds = r.level.settings.gzip.types.take();
            r.level.settings.gzip.types = Some(r.media_types(s, kinds));
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
        Apply::Flag(|s| &mut s.gzip.vary),
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
            r.level.settings.gzip.precompressed = Some(r.choice(s, s.arg(1), &choices)?);
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
    resolver.level.settings.gzip.comp_level = u8::try_from(level).ok();
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
    resolver.level.settings.gzip.proxied = Some(set);
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
    let list = resolver.level.settings.gzip.disable.get_or_insert_default();
    list.extend(agents);
    Ok(())
}
