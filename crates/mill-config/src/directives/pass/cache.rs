//! `…_cache` and its like: which answers are kept, and when they are taken.

use std::time::Duration;

use super::value::{self, NEXT_OF_CGI, NEXT_OF_HTTP};
use super::{NextUpstream, PassStore, cache_path};
use crate::Text;
use crate::config::settings::group;
use crate::config::{MethodSet, PassProtocol, Template};
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, HTTP, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};

group! {
    /// How answers of one protocol are cached.
    CacheSettings {
        /// `…_cache`.
        cache: PassCache = PassCache::Off,
        /// `…_cache_key`. `None` for `proxy_pass` is the scheme, host and port of the target and the URI that is passed on;
        /// for other protocols it is nothing, and all answers of a cache have one key.
        key: Option<Template> = None,
        /// `…_cache_valid`; see [`CacheSettings::valid_for`].
        valid: Vec<CacheValid> = Vec::new(),
        /// `…_cache_methods` as written; see [`CacheSettings::takes_method`].
        methods: MethodSet = MethodSet(0),
        /// `…_cache_min_uses`: an answer is kept from this request for it on.
        min_uses: u64 = 1,
        /// `…_cache_max_range_offset`: a range that begins at this byte or behind it is passed on and not kept.
        max_range_offset: u64 = i64::MAX as u64,
        /// `…_cache_bypass`: if one of them is neither empty nor `0`, the answer is not taken from the cache.
        bypass: Vec<Template> = Vec::new(),
        /// `…_no_cache`: if one of them is neither empty nor `0`, the answer is not kept.
        no_cache: Vec<Template> = Vec::new(),
        /// `…_cache_purge`: if one of them is neither empty nor `0`, the request purges its key.
        purge: Vec<Template> = Vec::new(),
        /// `…_cache_lock`: of requests for one key that is not there, one at a time goes to a server.
        lock: bool = false,
        /// `…_cache_lock_timeout`: after waiting so long a request goes too, and its answer is not kept.
        lock_timeout: Duration = Duration::from_secs(5),
        /// `…_cache_lock_age`: after so long without an answer one more request goes.
        lock_age: Duration = Duration::from_secs(5),
        /// `…_cache_use_stale`: failures, statuses, or [`NextUpstream::UPDATING`], in which a stale answer serves.
        /// [`NextUpstream::ERROR`] includes that no server is left to try.
        use_stale: NextUpstream = NextUpstream::OFF,
        /// Statuses of it that nginx has no word for.
        stale_statuses: Vec<u16> = Vec::new(),
        /// `…_cache_background_update`: a stale answer is sent, and its successor asked for behind it.
        background_update: bool = false,
        /// `…_cache_revalidate`: a stale answer's successor is asked for with its validators.
        revalidate: bool = false,
        /// `proxy_cache_convert_head`: HEAD asks a server by GET, so that the answer can be kept.
        convert_head: bool = true,
    }
}

impl Draft {
    /// Whether this block itself has a cache.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.cache, None | Some(PassCache::Off))
    }
}

/// `…_cache`: where answers are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassCache {
    /// Nowhere.
    Off,
    /// In this one of [`crate::config::Http::cache_zones`], which is of the same protocol.
    Zone(usize),
    /// Evaluate, then [`crate::config::Http::cache_zone`]; nothing or `off` is nowhere.
    Evaluated(Template),
}

/// A status in `…_cache_valid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheValid {
    /// `None` is `any`.
    pub status: Option<u16>,
    /// How long such an answer is fresh if it does not tell itself; zero is not kept.
    pub time: Duration,
}

impl CacheSettings {
    /// How long an answer of this status is fresh if it does not tell itself; `None` or zero is not kept. The first entry
    /// counts.
    pub fn valid_for(&self, status: u16) -> Option<Duration> {
        let mut entries = self.valid.iter();
        let entry = entries.find(|entry| entry.status.is_none_or(|known| known == status));
        entry.map(|entry| entry.time)
    }

    /// Whether a stale answer serves in the place of one with this status.
    pub fn uses_stale_for(&self, status: u16) -> bool {
        let is_listed = self.stale_statuses.contains(&status);
        is_listed || self.use_stale.contains(NextUpstream::status(status))
    }

    /// Whether a stale answer ever serves.
    pub fn uses_stale(&self) -> bool {
        self.use_stale != NextUpstream::OFF || !self.stale_statuses.is_empty()
    }

    /// Whether answers to a method are cached: GET and HEAD always.
    pub fn takes_method(&self, method: &[u8]) -> bool {
        matches!(method, b"GET" | b"HEAD") || self.methods.contains(method)
    }
}

/// Names of methods in `…_cache_methods`, which are the bits of [`MethodSet`].
const METHODS: &value::Bits = &[
    ("GET", 1),
    ("HEAD", 1 << 1),
    ("POST", 1 << 2),
    // Not in nginx.
    ("COPY", 1 << 6),
    ("OPTIONS", 1 << 8),
    ("PROPFIND", 1 << 9),
];

/// Statuses of `…_cache_valid` with a time alone (nginx).
const STATUSES_OF_TIME: [u16; 3] = [200, 301, 302];

/// A directive of one argument.
macro_rules! one {
    ($name:expr, $default:expr, $apply:expr, $doc:expr) => {
        once($name, ANY_LEVEL, Arity::Exactly(1), $default, $apply, $doc)
    };
}

/// A directive of one argument or more, which may be repeated and goes on with its list then.
macro_rules! list {
    ($name:expr, $group:ident.$field:ident = $function:expr, $doc:expr) => {
        many(
            $name,
            ANY_LEVEL,
            Arity::AtLeast(1),
            Apply::With(|r, s| {
                let before = r.level.settings.$group.$field.take();
                r.level.settings.$group.$field = Some($function(r, s, before)?);
                Ok(())
            }),
            $doc,
        )
    };
}

macro_rules! cache_table {
    ($name:ident, $prefix:literal, $group:ident, $pass:ident, $protocol:ident, $next:ident, $key:literal) => {
        pub(crate) const $name: &[Directive] = &[
            many(
                concat!($prefix, "_cache_path"),
                HTTP,
                Arity::AtLeast(2),
                Apply::With(|r, s| cache_path::cache_path(r, s, PassProtocol::$protocol)),
                "A cache: a directory, keys_zone=NAME:SIZE, levels, inactive, max_size, loader_files, loader_sleep as nginx has \
                 them, and Millstream's own: memory=SIZE, most bytes in memory (256m), and disk=off, which keeps nothing in \
                 the directory.",
            ),
            one!(
                concat!($prefix, "_cache"),
                "off",
                Apply::With(|r, s| {
                    let store = r.level.settings.$pass.store.as_ref();
                    let is_stored = store.is_some_and(|store| *store != PassStore::Off);
                    let cache = cache(r, s, PassProtocol::$protocol, is_stored)?;
                    if cache != PassCache::Off {
                        r.level.settings.$pass.store = Some(PassStore::Off);
                    }
                    r.level.settings.$group.cache = Some(cache);
                    Ok(())
                }),
                "The cache of answers: a zone, perhaps by variables, or off."
            ),
            one!(
                concat!($prefix, "_cache_key"),
                "",
                Apply::With(|r, s| {
                    let key = r.template(&s.arg(1).bytes, s, s.arg(1))?;
                    r.level.settings.$group.key = Some(Some(key));
                    Ok(())
                }),
                $key
            ),
            list!(
                concat!($prefix, "_cache_bypass"),
                $group.bypass = conditions,
                "Conditions on which an answer is not taken from the cache."
            ),
            list!(
                concat!($prefix, "_no_cache"),
                $group.no_cache = conditions,
                "Conditions on which an answer is not kept in the cache."
            ),
            list!(
                concat!($prefix, "_cache_purge"),
                $group.purge = conditions,
                "As in NGINX Plus, conditions on which a request removes the answer under its key, or with * at the key's end \
                 all that begin so, and is answered by 204."
            ),
            list!(
                concat!($prefix, "_cache_valid"),
                $group.valid = valid,
                "How long answers with these statuses, any, or else 200, 301 and 302, are fresh if they do not tell themselves."
            ),
            list!(
                concat!($prefix, "_cache_methods"),
                $group.methods = methods,
                "Methods whose answers are cached: GET and HEAD, which always are, POST, and of Millstream's own COPY, OPTIONS and PROPFIND."
            ),
            one!(
                concat!($prefix, "_cache_min_uses"),
                "1",
                Apply::Number(|s| &mut s.$group.min_uses),
                "After how many requests for it an answer is kept."
            ),
            one!(
                concat!($prefix, "_cache_max_range_offset"),
                "",
                Apply::Offset(|s| &mut s.$group.max_range_offset),
                "First byte of ranges that are passed on and not kept."
            ),
            list!(
                concat!($prefix, "_cache_use_stale"),
                $group.use_stale = |r: &mut Resolver<'_>, s: &Statement, before| {
                    let statuses = &mut r.level.settings.$group.stale_statuses;
                    let mut statuses = statuses.take().unwrap_or_default();
                    let set = value::use_stale(r, s, $next, before, &mut statuses);
                    r.level.settings.$group.stale_statuses = Some(statuses);
                    set
                },
                concat!(
                    "When a stale answer serves: updating, off, as in ",
                    $prefix,
                    "_next_upstream, or any other http_NNN from 400 to 599. Default: off."
                )
            ),
            one!(
                concat!($prefix, "_cache_lock"),
                "off",
                Apply::Flag(|s| &mut s.$group.lock),
                "Let one request at a time ask for an answer that is not there; others wait for it."
            ),
            one!(
                concat!($prefix, "_cache_lock_timeout"),
                "5s",
                Apply::Milliseconds(|s| &mut s.$group.lock_timeout),
                "Longest wait; then a request goes on, and its answer is not kept."
            ),
            one!(
                concat!($prefix, "_cache_lock_age"),
                "5s",
                Apply::Milliseconds(|s| &mut s.$group.lock_age),
                "After so long without an answer one more request may ask for it."
            ),
            one!(
                concat!($prefix, "_cache_revalidate"),
                "off",
                Apply::Flag(|s| &mut s.$group.revalidate),
                "Ask for stale answers with If-Modified-Since and If-None-Match."
            ),
            one!(
                concat!($prefix, "_cache_background_update"),
                "off",
                Apply::Flag(|s| &mut s.$group.background_update),
                "Send a stale answer where updating allows it, and ask for a fresh one behind it."
            ),
        ];
    };
}

cache_table!(
    PROXY,
    "proxy",
    proxy_cache,
    proxy,
    Http,
    NEXT_OF_HTTP,
    "What an answer is kept by. Default: scheme, host and port of proxy_pass, and the URI that is passed on."
);
cache_table!(
    FASTCGI,
    "fastcgi",
    fastcgi_cache,
    fastcgi,
    Fastcgi,
    NEXT_OF_CGI,
    "What an answer is kept by."
);
cache_table!(
    UWSGI,
    "uwsgi",
    uwsgi_cache,
    uwsgi,
    Uwsgi,
    NEXT_OF_CGI,
    "What an answer is kept by."
);
cache_table!(
    SCGI,
    "scgi",
    scgi_cache,
    scgi,
    Scgi,
    NEXT_OF_CGI,
    "What an answer is kept by."
);

/// What only `proxy_pass` has.
pub(crate) const PROXY_HEAD: &[Directive] = &[one!(
    "proxy_cache_convert_head",
    "on",
    Apply::Flag(|s| &mut s.proxy_cache.convert_head),
    "Ask for answers to HEAD by GET, so that they can be kept."
)];

fn cache(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    protocol: PassProtocol,
    is_stored: bool,
) -> Applied<PassCache> {
    let word = statement.arg(1);
    if word.bytes == b"off" {
        return Ok(PassCache::Off);
    }
    if is_stored {
        let what = format!("is incompatible with \"{}_store\"", protocol.prefix());
        return Err(resolver.refused(statement, &what));
    }
    if templates::has_variables(&word.bytes) {
        let zone = resolver.template(&word.bytes, statement, word)?;
        return Ok(PassCache::Evaluated(zone));
    }
    let name = Text::from(word.bytes.as_slice());
    let index = cache_path::named(resolver, statement, protocol, &name)?;
    Ok(PassCache::Zone(index))
}

fn conditions(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    before: Option<Vec<Template>>,
) -> Applied<Vec<Template>> {
    let mut list = before.unwrap_or_default();
    for word in statement.args() {
        list.push(resolver.template(&word.bytes, statement, word)?);
    }
    Ok(list)
}

fn methods(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    before: Option<MethodSet>,
) -> Applied<MethodSet> {
    let known = |set: MethodSet| {
        let bits = METHODS.iter().map(|(_, bit)| *bit);
        bits.filter(|&bit| set.0 & u32::from(bit) != 0).sum()
    };
    let before = before.map_or(0, known);
    let set = value::bits(resolver, statement, METHODS, before)?;
    Ok(MethodSet(set.into()))
}

fn valid(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    before: Option<Vec<CacheValid>>,
) -> Applied<Vec<CacheValid>> {
    let mut list = before.unwrap_or_default();
    let Some((last, statuses)) = statement.args().split_last() else {
        return Ok(list);
    };
    let Some(time) = crate::value::seconds(&last.bytes) else {
        let message = format!("invalid time value \"{}\"", last.display());
        return Err(resolver.emerg(statement, last, message));
    };
    if statuses.is_empty() {
        list.extend(STATUSES_OF_TIME.map(|status| CacheValid {
            status: Some(status),
            time,
        }));
    }
    for word in statuses {
        let status = match word.bytes.as_slice() {
            b"any" => None,
            digits => {
                let status = crate::value::number(digits).and_then(|n| u16::try_from(n).ok());
                let status = status.filter(|status| (100..=599).contains(status));
                Some(status.ok_or_else(|| {
                    let message = format!("invalid status \"{}\"", word.display());
                    resolver.emerg(statement, word, message)
                })?)
            }
        };
        list.push(CacheValid { status, time });
    }
    Ok(list)
}
