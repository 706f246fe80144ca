//! The cache as a whole: `cache`, its size, methods, default lifetime, and purging.

use super::{Checker, first};
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::lexer::Term;
use crate::tempesta::value;

/// Bytes of the cache where `cache_size` is not written, and its unit and bounds (fw/cache.c).
pub(super) const SIZE_BYTES_DEFAULT: u64 = 256 << 20;
const SIZE_UNIT_BYTES: u64 = 2 << 20;
const SIZE_BYTES_MIN: u64 = 16 << 20;
const SIZE_BYTES_MAX: u64 = 128 << 30;

/// Seconds that an answer is fresh which says nothing about it: as good as always (fw/cache.c).
pub(super) const TTL_DEFAULT: u64 = i32::MAX as u64;

/// Methods that Tempesta FW caches if asked to.
const METHODS: [&str; 6] = ["COPY", "GET", "HEAD", "OPTIONS", "POST", "PROPFIND"];

/// Methods that it refuses to.
const METHODS_NEVER: [&str; 9] = [
    "DELETE",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PATCH",
    "PROPPATCH",
    "PUT",
    "TRACE",
    "UNLOCK",
];

impl Checker {
    pub(super) fn store(&mut self, name: &'static str, directive: &Directive) -> Applied {
        match name {
            "cache" => {
                self.site.cache.is_on = value::number(first(directive), 0, 2)? > 0;
                self.site.cache.origin = Some(directive.name.origin.clone());
            }
            "cache_db" => self.path_without_effect(directive)?,
            "cache_size" => {
                let term = first(directive);
                let bytes = value::size(term, SIZE_UNIT_BYTES, SIZE_BYTES_MIN, SIZE_BYTES_MAX)?;
                self.site.cache.size_bytes = bytes;
            }
            "cache_methods" => self.cache_methods(directive)?,
            "cache_ttl" => self.site.cache.ttl = value::number(first(directive), 0, TTL_DEFAULT)?,
            "cache_purge" => {
                for mode in &directive.values {
                    if mode.is("immediate") {
                        let help = "what is purged is fetched again by the next request for it";
                        self.notes.without_effect(mode, help);
                    } else if !mode.is("invalidate") {
                        let message = format!("invalid value \"{}\"", mode.display());
                        return Err(mode.error(message));
                    }
                }
                self.site.cache.purge = Some(directive.name.origin.clone());
            }
            _ => {
                for term in &directive.values {
                    let network = value::network(term)?;
                    let mut known = self.site.cache.purge_acl.iter();
                    if known.any(|(known, _)| *known == network) {
                        let message = format!("duplicate address \"{}\"", term.display());
                        return Err(term.error(message));
                    }
                    self.site.cache.purge_acl.push((network, term.clone()));
                }
            }
        }
        Ok(())
    }

    fn cache_methods(&mut self, directive: &Directive) -> Applied {
        let is = |term: &Term, names: &[&str]| names.iter().any(|name| term.is(name));
        for method in &directive.values {
            if is(method, &METHODS_NEVER) {
                let message = format!("method \"{}\" cannot be cached", method.display());
                return Err(method.error(message));
            }
            if !is(method, &METHODS) {
                let message = format!("unknown method \"{}\"", method.display());
                return Err(method.error(message));
            }
        }
        self.site.cache.methods = directive.values.clone();
        Ok(())
    }

    /// `cache_db` and its like: an absolute path that does not end in a slash.
    pub(super) fn path_without_effect(&mut self, directive: &Directive) -> Applied {
        let path = first(directive);
        if !path.bytes.starts_with(b"/") || path.bytes.ends_with(b"/") {
            let mut error = path.error(format!("invalid path \"{}\"", path.display()));
            error.help = Some(String::from("it is absolute, and does not end in a slash"));
            return Err(error);
        }
        let why = "there is no database file: all of this is kept in memory";
        self.notes.without_effect(&directive.name, why);
        Ok(())
    }

    /// `cache_purge`, its list of addresses, and a cache belong together.
    pub(super) fn finish_store(&mut self) -> Applied {
        let cache = &self.site.cache;
        let has_list = self.used.contains(&"cache_purge_acl");
        match (&cache.purge, has_list) {
            (Some(origin), _) if !cache.is_on => {
                Err(origin.error("\"cache_purge\" requires a cache, and \"cache\" is 0"))
            }
            (Some(origin), false) => {
                Err(origin.error("\"cache_purge\" requires \"cache_purge_acl\""))
            }
            (None, true) => {
                let listed = cache.purge_acl.first();
                let origin = listed.map_or(&self.site.origin, |(_, term)| &term.origin);
                Err(origin.error("\"cache_purge_acl\" requires \"cache_purge\""))
            }
            _ => Ok(()),
        }
    }
}
