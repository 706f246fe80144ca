//! Tables of directives, one file per feature, and the look-up over all of them.
//!
//! A directive that nginx has is in exactly one table: with its implementation in the feature's, or in `known.txt` if
//! Millstream does not have it yet.

pub(crate) mod access;
pub(crate) mod acme;
pub(crate) mod autoindex;
pub(crate) mod block;
pub(crate) mod caching;
pub(crate) mod challenge;
pub(crate) mod charset;
pub(crate) mod client_body;
pub(crate) mod client_header;
pub(crate) mod connection;
pub(crate) mod error_page;
pub(crate) mod event;
pub(crate) mod fastcgi;
pub(crate) mod file;
pub(crate) mod frang;
pub(crate) mod geo;
pub(crate) mod grpc;
pub(crate) mod gzip;
pub(crate) mod header;
pub(crate) mod health_check;
pub(crate) mod http2;
pub(crate) mod known;
pub(crate) mod limit_conn;
pub(crate) mod limit_rate;
pub(crate) mod limit_req;
pub(crate) mod limit_zone;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod main_context;
pub(crate) mod map;
pub(crate) mod memcached;
pub(crate) mod millstream;
pub(crate) mod mime;
pub(crate) mod open_file;
pub(crate) mod pass;
pub(crate) mod proxy;
pub(crate) mod realip;
pub(crate) mod resolver;
pub(crate) mod rewrite;
pub(crate) mod scgi;
pub(crate) mod slice;
pub(crate) mod split_clients;
pub(crate) mod status_api;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod upstream;
pub(crate) mod uwsgi;

use std::sync::OnceLock;

use crate::directive::{Contexts, Directive};

/// The tables of implemented directives, in the order in which documentation lists them.
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
    limit_req::DIRECTIVES,
    limit_conn::DIRECTIVES,
    log::DIRECTIVES,
    access::DIRECTIVES,
    frang::DIRECTIVES,
    challenge::DIRECTIVES,
    rewrite::DIRECTIVES,
    map::DIRECTIVES,
    geo::DIRECTIVES,
    split_clients::DIRECTIVES,
    realip::DIRECTIVES,
    resolver::DIRECTIVES,
    upstream::DIRECTIVES,
    health_check::DIRECTIVES,
    status_api::DIRECTIVES,
    proxy::DIRECTIVES,
    pass::table::PROXY_CONNECTION,
    pass::table::PROXY_CONTENT,
    pass::table::PROXY_FIELDS,
    pass::cache::PROXY,
    pass::cache::PROXY_HEAD,
    fastcgi::DIRECTIVES,
    pass::table::FASTCGI_CONNECTION,
    pass::table::FASTCGI_CONTENT,
    pass::table::FASTCGI_FIELDS,
    pass::cache::FASTCGI,
    uwsgi::DIRECTIVES,
    pass::table::UWSGI_CONNECTION,
    pass::table::UWSGI_CONTENT,
    pass::table::UWSGI_FIELDS,
    pass::cache::UWSGI,
    scgi::DIRECTIVES,
    pass::table::SCGI_CONNECTION,
    pass::table::SCGI_CONTENT,
    pass::table::SCGI_FIELDS,
    pass::cache::SCGI,
    memcached::DIRECTIVES,
    pass::table::MEMCACHED_CONNECTION,
    slice::DIRECTIVES,
    caching::DIRECTIVES,
    http2::DIRECTIVES,
    tls::DIRECTIVES,
    acme::DIRECTIVES,
    pass::tls::PROXY,
    grpc::DIRECTIVES,
    pass::table::GRPC_CONNECTION,
    pass::table::GRPC_FIELDS,
    pass::tls::GRPC,
    pass::tls::UWSGI,
    stream::BLOCKS,
    stream::PASSING,
    stream::BEGINNING,
    millstream::DIRECTIVES,
];

/// Every known directive.
pub fn all() -> impl Iterator<Item = &'static Directive> {
    let implemented = TABLES.iter().flat_map(|table| table.iter());
    implemented.chain(known::directives())
}

/// The directive of that name in a context; where it is not allowed there, the one of another context.
pub(crate) fn find(name: &[u8], context: Contexts) -> Option<&'static Directive> {
    static SORTED: OnceLock<Vec<&'static Directive>> = OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let mut sorted: Vec<&'static Directive> = all().collect();
        sorted.sort_by_key(|directive| directive.name);
        sorted
    });
    let first = sorted.partition_point(|directive| directive.name.as_bytes() < name);
    let mut same = sorted
        .iter()
        .skip(first)
        .take_while(|directive| directive.name.as_bytes() == name);
    let any = same.clone().next();
    same.find(|directive| directive.contexts.meets(context))
        .or(any)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directive::Status;

    #[test]
    fn a_name_has_one_meaning_in_each_context() {
        for (index, one) in all().enumerate() {
            let clash =
                |other: &&Directive| other.name == one.name && other.contexts.meets(one.contexts);
            assert!(
                !all().skip(index + 1).any(|other| clash(&other)),
                "{}",
                one.name
            );
        }
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
