//! Tables of directives, one file per feature, and the look-up over all of them.
//!
//! A directive that nginx has is in exactly one table: with its implementation in the feature's, or in `known` if
//! Millstream does not have it yet.

pub(crate) mod access;
pub(crate) mod autoindex;
pub(crate) mod block;
pub(crate) mod charset;
pub(crate) mod client_body;
pub(crate) mod client_header;
pub(crate) mod connection;
pub(crate) mod error_page;
pub(crate) mod event;
pub(crate) mod file;
pub(crate) mod gzip;
pub(crate) mod header;
pub(crate) mod known;
pub(crate) mod limit_rate;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod main_context;
pub(crate) mod map;
pub(crate) mod millstream;
pub(crate) mod mime;
pub(crate) mod open_file;
pub(crate) mod rewrite;
pub(crate) mod tls;

use std::sync::OnceLock;

use crate::directive::Directive;

/// All tables, in the order in which documentation lists them.
const TABLES: &[&[Directive]] = &[
    main_context::DIRECTIVES,
    event::DIRECTIVES,
    block::DIRECTIVES,
    client_header::DIRECTIVES,
    listen::DIRECTIVES,
    file::DIRECTIVES,
    error_page::DIRECTIVES,
    autoindex::DIRECTIVES,
    open_file::DIRECTIVES,
    mime::DIRECTIVES,
    charset::DIRECTIVES,
    header::DIRECTIVES,
    gzip::DIRECTIVES,
    connection::DIRECTIVES,
    client_body::DIRECTIVES,
    limit_rate::DIRECTIVES,
    log::DIRECTIVES,
    access::DIRECTIVES,
    rewrite::DIRECTIVES,
    map::DIRECTIVES,
    tls::DIRECTIVES,
    millstream::DIRECTIVES,
    known::DIRECTIVES,
];

/// Every known directive.
pub fn all() -> impl Iterator<Item = &'static Directive> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The directive of that name.
pub(crate) fn find(name: &[u8]) -> Option<&'static Directive> {
    static SORTED: OnceLock<Vec<&'static Directive>> = OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let mut sorted: Vec<&'static Directive> = all().collect();
        sorted.sort_by_key(|directive| directive.name);
        sorted
    });
    let found = sorted.binary_search_by(|directive| directive.name.as_bytes().cmp(name));
    found.ok().and_then(|index| sorted.get(index)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directive::Status;

    #[test]
    fn every_name_is_in_one_table_only() {
        let mut names: Vec<&str> = all().map(|directive| directive.name).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn every_directive_has_a_context_and_a_sentence() {
        for directive in all() {
            assert!(
                directive.contexts.names().next().is_some(),
                "{}",
                directive.name
            );
            if !matches!(directive.status(), Status::NotYet(_)) {
                assert!(directive.doc.ends_with('.'), "{}", directive.name);
            }
        }
    }
}
