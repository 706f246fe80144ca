//! Listings of directories: `autoindex`.

use crate::config::settings::group;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, once};

group! {
    /// Listings of directories.
    AutoindexSettings {
        /// `autoindex`.
        enabled: bool = false,
        /// `autoindex_format`.
        format: AutoindexFormat = AutoindexFormat::Html,
        /// `autoindex_exact_size`.
        exact_size: bool = true,
        /// `autoindex_localtime`.
        localtime: bool = false,
    }
}

/// `autoindex_format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoindexFormat {
    /// A page.
    Html,
    /// XML.
    Xml,
    /// JSON.
    Json,
    /// JSON in the call named by the argument `callback`.
    Jsonp,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "autoindex",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.autoindex.enabled),
        "List directories.",
    ),
    once(
        "autoindex_format",
        ANY_LEVEL,
        Arity::Exactly(1),
        "html",
        Apply::With(|r, s| {
            let choices = [
                ("html", AutoindexFormat::Html),
                ("json", AutoindexFormat::Json),
                ("jsonp", AutoindexFormat::Jsonp),
                ("xml", AutoindexFormat::Xml),
            ];
            r.level.settings.autoindex.format = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Format of lists of directories.",
    ),
    once(
        "autoindex_exact_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.autoindex.exact_size),
        "Sizes in bytes.",
    ),
    once(
        "autoindex_localtime",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.autoindex.localtime),
        "Times in the local zone.",
    ),
];
