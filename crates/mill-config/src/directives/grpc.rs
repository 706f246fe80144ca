//! `grpc_pass`: HTTP/2 to servers, in both directions at once.
//!
//! What a location with it has is `proxy_pass` over HTTP/2 without buffers: its groups of settings take the place of that one's
//! when the location is complete.

use std::sync::Arc;

use crate::config::settings::{HttpVersion, ProxyRedirect, Settings, SettingsDraft};
use crate::directive::{ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, many, once};
use crate::directives::pass::target;
use crate::directives::proxy;

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "grpc_pass",
        LOCATION.and(Contexts::IF_IN_LOCATION),
        Arity::Exactly(1),
        "",
        Apply::With(target::grpc_pass),
        "Passes requests to a gRPC server or a group of them: host[:port], grpc:// or grpcs:// (TLS) and that, or unix:path.",
    ),
    many(
        "grpc_set_header",
        ANY_LEVEL,
        Arity::Exactly(2),
        Apply::With(|r, s| {
            let field = proxy::set_header_field(r, s)?;
            let list = &mut r.level.settings.grpc_http.set_header;
            list.get_or_insert_default().push(field);
            Ok(())
        }),
        "A field of requests to gRPC servers. Default: Host $proxy_host.",
    ),
];

/// The settings of a location with `grpc_pass`, as those of one with `proxy_pass`.
pub(crate) fn apply(settings: &mut Settings) {
    let mut own = SettingsDraft::default();
    own.proxy.buffering = Some(false);
    own.proxy.request_buffering = Some(false);
    own.proxy.pass_trailers = Some(true);
    own.proxy_http.http_version = Some(HttpVersion::Http2);
    own.proxy_http.redirect = Some(ProxyRedirect::Off);
    settings.proxy = own.proxy.inherit(&settings.grpc);
    settings.proxy_http = own.proxy_http.inherit(&settings.grpc_http);
    settings.proxy_tls = settings.grpc_tls.clone();
    settings.proxy_cache = Arc::default();
}
