//! What a response asks of caches: its `Cache-Control`, RFC 9111 5.2.2, RFC 5861 and RFC 8246.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::directive::{Argument, Directive, Directives};
use crate::field::{is_token_byte, trim_blanks};

/// The most field names that `no-cache` and `private` may each have; with more, the directive counts as if it had none,
/// which asks more of a cache.
pub const FIELD_NAMES_MAX: usize = 32;

/// The cache directives of a response.
///
/// Of a repeated `max-age` or `s-maxage` the first counts, as RFC 9111 4.2.1 allows; if one of them is invalid, the
/// response is stale from the beginning: 0. Of repeated leaves to be stale the smallest counts, and an invalid one is
/// 0. Other directives are there whatever their argument. Unknown ones are ignored (5.2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// RFC 9111 5.2.2.5
    pub no_store: bool,
    /// RFC 9111 5.2.2.4, without field names.
    pub no_cache: bool,
    /// RFC 9111 5.2.2.7, without field names.
    pub private: bool,
    /// RFC 9111 5.2.2.9
    pub public: bool,
    /// RFC 9111 5.2.2.2
    pub must_revalidate: bool,
    /// RFC 9111 5.2.2.8
    pub proxy_revalidate: bool,
    /// RFC 9111 5.2.2.3
    pub must_understand: bool,
    /// RFC 9111 5.2.2.6
    pub no_transform: bool,
    /// RFC 8246 2
    pub immutable: bool,
    /// Seconds, RFC 9111 5.2.2.1.
    pub max_age: Option<u32>,
    /// Seconds, RFC 9111 5.2.2.10.
    pub s_maxage: Option<u32>,
    /// Seconds, RFC 5861 3.
    pub stale_while_revalidate: Option<u32>,
    /// Seconds, RFC 5861 4.
    pub stale_if_error: Option<u32>,
    /// The names of `no-cache="…"`, in lower case, at most [`FIELD_NAMES_MAX`].
    pub no_cache_fields: Vec<Box<[u8]>>,
    /// The names of `private="…"`, likewise.
    pub private_fields: Vec<Box<[u8]>>,
    /// They come from a targeted field, beside which `Expires` is ignored (RFC 9213 2.2).
    pub is_targeted: bool,
}

impl ResponseDirectives {
    /// Gathers the directives of a response's field lines.
    pub fn of_fields<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut found = Self::default();
        let is_it = |name: &[u8]| name.eq_ignore_ascii_case(b"cache-control");
        for (_, value) in fields.into_iter().filter(|(name, _)| is_it(name)) {
            Directives::of(value).for_each(|directive| found.apply(directive));
        }
        found
    }

    /// Applies one more directive.
    pub(crate) fn apply(&mut self, directive: Directive<'_>) {
        let seconds = directive.argument.seconds().unwrap_or(0);
        if let Some(flag) = self.flag(directive) {
            *flag = true;
        } else if directive.is("no-cache") {
            self.no_cache |= !add_names(&mut self.no_cache_fields, directive.argument);
        } else if directive.is("private") {
            self.private |= !add_names(&mut self.private_fields, directive.argument);
        } else if directive.is("max-age") {
            self.max_age = lifetime(self.max_age, directive.argument);
        } else if directive.is("s-maxage") {
            self.s_maxage = lifetime(self.s_maxage, directive.argument);
        } else if directive.is("stale-while-revalidate") {
            self.stale_while_revalidate = smallest(self.stale_while_revalidate, seconds);
        } else if directive.is("stale-if-error") {
            self.stale_if_error = smallest(self.stale_if_error, seconds);
        }
    }

    /// The directive's place, if it is one that takes no argument.
    fn flag(&mut self, directive: Directive<'_>) -> Option<&mut bool> {
        let flags = [
            ("no-store", &mut self.no_store),
            ("public", &mut self.public),
            ("must-revalidate", &mut self.must_revalidate),
            ("proxy-revalidate", &mut self.proxy_revalidate),
            ("must-understand", &mut self.must_understand),
            ("no-transform", &mut self.no_transform),
            ("immutable", &mut self.immutable),
        ];
        flags
            .into_iter()
            .find(|(name, _)| directive.is(name))
            .map(|(_, flag)| flag)
    }
}

fn lifetime(known: Option<u32>, argument: Argument<'_>) -> Option<u32> {
    match argument.seconds() {
        Some(seconds) => known.or(Some(seconds)),
        None => Some(0),
    }
}

fn smallest(known: Option<u32>, seconds: u32) -> Option<u32> {
    Some(known.map_or(seconds, |known| known.min(seconds)))
}

/// Adds the field names of an argument; false if it has none, or others than tokens, or too many: then the directive
/// concerns the whole response.
fn add_names(names: &mut Vec<Box<[u8]>>, argument: Argument<'_>) -> bool {
    let mut is_qualified = false;
    for name in argument
        .text()
        .unwrap_or_default()
        .split(|byte| *byte == b',')
    {
        let name = trim_blanks(name);
        if name.is_empty() {
            continue;
        }
        if !name.iter().all(|byte| is_token_byte(*byte)) || names.len() >= FIELD_NAMES_MAX {
            return false;
        }
        names.push(name.to_ascii_lowercase().into_boxed_slice());
        is_qualified = true;
    }
    is_qualified
}

#[cfg(test)]
mod tests;
