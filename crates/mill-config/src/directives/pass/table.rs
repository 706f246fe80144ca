//! The tables: one text, expanded for each prefix.

use super::PassStore;
use super::cache::PassCache;
use super::value::{self, NEXT_OF_CGI, NEXT_OF_HTTP, NEXT_OF_MEMCACHED};
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, Notice, many, once};

/// A directive of one argument.
macro_rules! one {
    ($name:expr, $default:expr, $apply:expr, $doc:expr) => {
        once($name, ANY_LEVEL, Arity::Exactly(1), $default, $apply, $doc)
    };
}

/// A value that a function of `value` reads into a field of the group.
macro_rules! read {
    ($group:ident.$field:ident = $function:ident) => {
        Apply::With(|r, s| {
            r.level.settings.$group.$field = Some(value::$function(r, s)?);
            Ok(())
        })
    };
}

/// Directives of all protocols.
macro_rules! connection_table {
    ($name:ident, $prefix:literal, $group:ident, $next:ident, $failures:literal) => {
        pub(crate) const $name: &[Directive] = &[
            one!(
                concat!($prefix, "_connect_timeout"),
                "60s",
                Apply::Milliseconds(|s| &mut s.$group.connect_timeout),
                "Longest time until a server accepts a connection."
            ),
            one!(
                concat!($prefix, "_send_timeout"),
                "60s",
                Apply::Milliseconds(|s| &mut s.$group.send_timeout),
                "Longest time between two writes of a request."
            ),
            one!(
                concat!($prefix, "_read_timeout"),
                "60s",
                Apply::Milliseconds(|s| &mut s.$group.read_timeout),
                "Longest time between two reads of an answer."
            ),
            one!(
                concat!($prefix, "_buffer_size"),
                "4k",
                Apply::Size(|s| &mut s.$group.buffer_size),
                "Longest head of an answer."
            ),
            many(
                concat!($prefix, "_next_upstream"),
                ANY_LEVEL,
                Arity::AtLeast(1),
                Apply::With(|r, s| {
                    let before = r.level.settings.$group.next_upstream;
                    r.level.settings.$group.next_upstream =
                        value::next_upstream(r, s, $next, before)?;
                    Ok(())
                }),
                concat!("When another server is tried: ", $failures, ", off. Default: error timeout."),
            ),
            one!(
                concat!($prefix, "_next_upstream_tries"),
                "0",
                Apply::Number(|s| &mut s.$group.next_upstream_tries),
                "Most servers that are tried. 0 is no limit."
            ),
            one!(
                concat!($prefix, "_next_upstream_timeout"),
                "0",
                Apply::Milliseconds(|s| &mut s.$group.next_upstream_timeout),
                "Longest time in which other servers are tried. 0 is no limit."
            ),
            once(
                concat!($prefix, "_bind"),
                ANY_LEVEL,
                Arity::Between(1, 2),
                "off",
                read!($group.bind = bind),
                "Local address of connections to servers, with transparent even that of the client.",
            ),
            one!(
                concat!($prefix, "_socket_keepalive"),
                "off",
                Apply::Flag(|s| &mut s.$group.socket_keepalive),
                "SO_KEEPALIVE on connections to servers."
            ),
        ];
    };
}

/// Directives of all protocols but memcached's and gRPC's.
macro_rules! content_table {
    ($name:ident, $prefix:literal, $group:ident, $cache:ident) => {
        pub(crate) const $name: &[Directive] = &[
            one!(
                concat!($prefix, "_buffering"),
                "on",
                Apply::Flag(|s| &mut s.$group.buffering),
                "Read answers ahead of the client."
            ),
            one!(
                concat!($prefix, "_request_buffering"),
                "on",
                Apply::Flag(|s| &mut s.$group.request_buffering),
                "Read the whole content of a request before a server gets it."
            ),
            one!(
                concat!($prefix, "_ignore_client_abort"),
                "off",
                Apply::Flag(|s| &mut s.$group.ignore_client_abort),
                "Go on with a request whose client has gone."
            ),
            once(
                concat!($prefix, "_buffers"),
                ANY_LEVEL,
                Arity::Exactly(2),
                "8 4k",
                read!($group.buffers = buffers),
                "Number and size of the buffers for an answer.",
            ),
            one!(
                concat!($prefix, "_busy_buffers_size"),
                "8k",
                Apply::With(|r, s| {
                    let size = r.read(s, crate::value::size)?;
                    r.level.settings.$group.busy_buffers = Some(Some(size));
                    Ok(())
                }),
                "Most bytes that go to the client while more is read."
            )
            .unread(
                "what is read ahead and what is sent share no buffers",
                Notice::Spared,
            ),
            one!(
                concat!($prefix, "_max_temp_file_size"),
                "1024m",
                Apply::Size(|s| &mut s.$group.max_temp_file_size),
                "Longest temporary file of an answer. 0 writes none."
            ),
            one!(
                concat!($prefix, "_temp_file_write_size"),
                "8k",
                Apply::With(|r, s| {
                    let size = r.read(s, crate::value::size)?;
                    r.level.settings.$group.temp_file_write = Some(Some(size));
                    Ok(())
                }),
                "Most bytes of one write to a temporary file."
            ),
            once(
                concat!($prefix, "_temp_path"),
                ANY_LEVEL,
                Arity::Between(1, 4),
                concat!($prefix, "_temp 1 2"),
                read!($group.temp_path = temp_path),
                "Directory for answers, and digits of its subdirectories.",
            ),
            one!(
                concat!($prefix, "_limit_rate"),
                "0",
                read!($group.limit_rate = amount),
                "Bytes per second of one answer that are read ahead of the client. 0 is no limit."
            ),
            one!(
                concat!($prefix, "_force_ranges"),
                "off",
                Apply::Flag(|s| &mut s.$group.force_ranges),
                "Answer ranges also where a server does not say Accept-Ranges."
            ),
            one!(
                concat!($prefix, "_store"),
                "off",
                Apply::With(|r, s| {
                    let is_cached = r.level.settings.$cache.is_on();
                    let store = value::store(r, s, is_cached.then_some($prefix))?;
                    if store != PassStore::Off {
                        r.level.settings.$cache.cache = Some(PassCache::Off);
                    }
                    r.level.settings.$group.store = Some(store);
                    Ok(())
                }),
                "Keep answers as files: on, or a path."
            ),
            once(
                concat!($prefix, "_store_access"),
                ANY_LEVEL,
                Arity::Between(1, 3),
                "user:rw",
                read!($group.store_access = store_access),
                "Permissions of stored answers.",
            ),
            one!(
                concat!($prefix, "_pass_request_headers"),
                "on",
                Apply::Flag(|s| &mut s.$group.pass_request_headers),
                "Pass on the fields of requests."
            ),
            one!(
                concat!($prefix, "_pass_request_body"),
                "on",
                Apply::Flag(|s| &mut s.$group.pass_request_body),
                "Pass on the content of requests."
            ),
        ];
    };
}

/// Directives of all protocols but memcached's, gRPC's too.
macro_rules! field_table {
    ($name:ident, $prefix:literal, $group:ident) => {
        pub(crate) const $name: &[Directive] = &[
            one!(
                concat!($prefix, "_intercept_errors"),
                "off",
                Apply::Flag(|s| &mut s.$group.intercept_errors),
                "Let error_page replace answers of servers."
            ),
            one!(
                concat!($prefix, "_socket_rcvbuf"),
                "",
                Apply::With(|r, s| {
                    let size = r.read(s, crate::value::size)?;
                    r.level.settings.$group.socket_rcvbuf = Some(Some(size));
                    Ok(())
                }),
                "SO_RCVBUF of connections to servers."
            ),
            one!(
                concat!($prefix, "_socket_sndbuf"),
                "",
                Apply::With(|r, s| {
                    let size = r.read(s, crate::value::size)?;
                    r.level.settings.$group.socket_sndbuf = Some(Some(size));
                    Ok(())
                }),
                "SO_SNDBUF of connections to servers."
            ),
            many(
                concat!($prefix, "_hide_header"),
                ANY_LEVEL,
                Arity::Exactly(1),
                Apply::With(|r, s| {
                    value::add_text(&mut r.level.settings.$group.hide_header, s);
                    Ok(())
                }),
                "A field of answers that is not passed on.",
            ),
            many(
                concat!($prefix, "_pass_header"),
                ANY_LEVEL,
                Arity::Exactly(1),
                Apply::With(|r, s| {
                    value::add_text(&mut r.level.settings.$group.pass_header, s);
                    Ok(())
                }),
                "A field of answers that is passed on although it is hidden by default.",
            ),
            many(
                concat!($prefix, "_ignore_headers"),
                ANY_LEVEL,
                Arity::AtLeast(1),
                Apply::With(|r, s| {
                    let before = r.level.settings.$group.ignore_headers;
                    r.level.settings.$group.ignore_headers = value::ignore_headers(r, s, before)?;
                    Ok(())
                }),
                "Fields of answers without their effect here.",
            ),
        ];
    };
}

connection_table!(
    PROXY_CONNECTION,
    "proxy",
    proxy,
    NEXT_OF_HTTP,
    "error, timeout, invalid_header, non_idempotent, http_ and 500, 502, 503, 504, 403, 404 or 429"
);
connection_table!(
    FASTCGI_CONNECTION,
    "fastcgi",
    fastcgi,
    NEXT_OF_CGI,
    "error, timeout, invalid_header, non_idempotent, http_ and 500, 503, 403, 404 or 429"
);
connection_table!(
    UWSGI_CONNECTION,
    "uwsgi",
    uwsgi,
    NEXT_OF_CGI,
    "error, timeout, invalid_header, non_idempotent, http_ and 500, 503, 403, 404 or 429"
);
connection_table!(
    SCGI_CONNECTION,
    "scgi",
    scgi,
    NEXT_OF_CGI,
    "error, timeout, invalid_header, non_idempotent, http_ and 500, 503, 403, 404 or 429"
);
connection_table!(
    MEMCACHED_CONNECTION,
    "memcached",
    memcached,
    NEXT_OF_MEMCACHED,
    "error, timeout, invalid_response, not_found"
);
connection_table!(
    GRPC_CONNECTION,
    "grpc",
    grpc,
    NEXT_OF_HTTP,
    "error, timeout, invalid_header, non_idempotent, http_ and 500, 502, 503, 504, 403, 404 or 429"
);
content_table!(PROXY_CONTENT, "proxy", proxy, proxy_cache);
content_table!(FASTCGI_CONTENT, "fastcgi", fastcgi, fastcgi_cache);
content_table!(UWSGI_CONTENT, "uwsgi", uwsgi, uwsgi_cache);
content_table!(SCGI_CONTENT, "scgi", scgi, scgi_cache);
field_table!(PROXY_FIELDS, "proxy", proxy);
field_table!(FASTCGI_FIELDS, "fastcgi", fastcgi);
field_table!(UWSGI_FIELDS, "uwsgi", uwsgi);
field_table!(SCGI_FIELDS, "scgi", scgi);
field_table!(GRPC_FIELDS, "grpc", grpc);
