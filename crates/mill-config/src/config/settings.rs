//! The settings that http, server, location and `if` blocks inherit from each other, one group a feature.
//!
//! A block shares a group with the enclosing block (the same `Arc`) unless it contains one of the group's directives;
//! then it has a copy, in which the directive's value replaces the outer one, lists as a whole. So a location costs a
//! pointer for each feature that it does not configure, however many directives the feature has. Directives that are
//! not inherited are fields of [`super::Location`].
//!
//! A group is declared in the file of its feature's directives (`group!`), and listed here.

use std::sync::Arc;

use crate::directives::pass::{cache, tls as pass_tls};
use crate::directives::{
    access, autoindex, caching, challenge, charset, client_body, client_header, connection,
    error_page, fastcgi, file, frang, gzip, header, http2, limit_conn, limit_rate, limit_req, log,
    memcached, mime, open_file, pass, proxy, realip, resolver, rewrite, scgi, slice, stream, tls,
    uwsgi,
};

pub use access::{AccessSettings, Satisfy};
pub use autoindex::{AutoindexFormat, AutoindexSettings};
pub use cache::{CacheSettings, CacheValid, PassCache};
pub use caching::{CacheRules, CachingSettings};
pub use challenge::ChallengeSettings;
pub use charset::{Charset, CharsetSettings};
pub use client_body::{ClientBodyFile, ClientBodySettings};
pub use client_header::ClientHeaderSettings;
pub use connection::{ConnectionSettings, KeepaliveDisable, LingeringClose};
pub use error_page::{ErrorPage, ErrorPageSettings, ErrorPageStatus};
pub use fastcgi::FastcgiSettings;
pub use file::{Document, FileSettings};
pub use frang::FrangSettings;
pub use gzip::{GzipDisable, GzipProxied, GzipSettings, GzipStatic, HttpVersion};
pub use header::{HeaderSettings, IfModifiedSince, ServerTokens};
pub use http2::Http2Settings;
pub use limit_conn::LimitConnSettings;
pub use limit_rate::{Amount, LimitRateSettings};
pub use limit_req::LimitReqSettings;
pub use log::{LogSettings, OpenLogFileCache};
pub use memcached::MemcachedSettings;
pub use mime::{MimeSet, MimeSettings};
pub use open_file::{DisableSymlinks, OpenFileCache, OpenFileSettings};
pub use pass::{BindAddress, IgnoredFields, NextUpstream, PassBind};
pub use pass::{PassBuffers, PassParam, PassSettings, PassStore};
pub use pass_tls::PassTlsSettings;
pub use proxy::{CookieFlags, CookieName, ProxyField, ProxyHttpSettings};
pub use proxy::{ProxyProtocol, ProxyRedirect, ProxyRewrite, RewritePattern};
pub use realip::{RealIpHeader, RealIpSettings};
pub use resolver::ResolverSettings;
pub use rewrite::RewriteSettings;
pub use scgi::ScgiSettings;
pub use slice::SliceSettings;
pub use stream::StreamSettings;
pub use tls::{
    CertificateCache, ClientOcsp, EvaluatedName, SessionZone, TlsBounds, TlsFile, TlsProtocols,
    TlsSettings, VerifyClient,
};
pub use uwsgi::UwsgiSettings;

/// Declares a group of settings: its struct with nginx's defaults, and its `Draft`, in which `None` means "not in this
/// block, inherited".
macro_rules! group {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// The group's values in one block.
        #[derive(Debug, Default)]
        pub(crate) struct Draft {
            $(pub(crate) $field: Option<$kind>,)*
        }

        impl Draft {
            /// The outer block's group itself if this block has none of its directives, else a copy with this block's
            /// values.
            pub(crate) fn inherit(self, outer: &std::sync::Arc<$name>) -> std::sync::Arc<$name> {
                if true $(&& self.$field.is_none())* {
                    return std::sync::Arc::clone(outer);
                }
                std::sync::Arc::new($name {
                    $($field: self.$field.unwrap_or_else(|| Clone::clone(&outer.$field)),)*
                })
            }
        }
    };
}
pub(crate) use group;

/// Declares [`Settings`] and its draft from the features that have a group.
macro_rules! settings {
    ($($(#[$doc:meta])* $group:ident: $feature:ident::$kind:ident,)*) => {
        /// Settings of a location (or of an `if` in it), after inheritance.
        #[derive(Debug, Clone, Default)]
        pub struct Settings {
            $($(#[$doc])* pub $group: Arc<$kind>,)*
        }

        /// The settings in one block.
        #[derive(Debug, Default)]
        pub(crate) struct SettingsDraft {
            $(pub(crate) $group: $feature::Draft,)*
        }

        impl SettingsDraft {
            /// Shares or copies the groups of the outer block.
            pub(crate) fn inherit(self, outer: &Settings) -> Settings {
                Settings { $($group: self.$group.inherit(&outer.$group),)* }
            }
        }
    };
}

settings! {
    /// TLS to clients; only servers have directives for it.
    http2: http2::Http2Settings,
    tls: tls::TlsSettings,
    /// The head of a request; only servers have directives for it.
    client_header: client_header::ClientHeaderSettings,
    /// The content of a request.
    client_body: client_body::ClientBodySettings,
    /// Keep-alive, lingering, sending.
    connection: connection::ConnectionSettings,
    /// How fast an answer is sent.
    limit_rate: limit_rate::LimitRateSettings,
    /// How many requests of a key there may be in a second.
    limit_req: limit_req::LimitReqSettings,
    /// How many there may be at a time.
    limit_conn: limit_conn::LimitConnSettings,
    /// Which clients are admitted.
    access: access::AccessSettings,
    /// What requests may look like.
    frang: frang::FrangSettings,
    /// What clients show before they are served.
    challenge: challenge::ChallengeSettings,
    /// What rewriting logs.
    rewrite: rewrite::RewriteSettings,
    /// Where files are.
    files: file::FileSettings,
    /// How files are opened.
    open_file: open_file::OpenFileSettings,
    /// Listings of directories.
    autoindex: autoindex::AutoindexSettings,
    /// What answers in place of an error.
    error_page: error_page::ErrorPageSettings,
    /// Media types.
    mime: mime::MimeSettings,
    /// Character sets.
    charset: charset::CharsetSettings,
    /// Fields of answers.
    headers: header::HeaderSettings,
    /// Compression.
    gzip: gzip::GzipSettings,
    /// The client's address as a proxy in front tells it.
    real_ip: realip::RealIpSettings,
    /// Looking up names while the server runs.
    resolver: resolver::ResolverSettings,
    /// `proxy_…` that all protocols share.
    proxy: pass::PassSettings,
    /// What only `proxy_pass` has.
    proxy_http: proxy::ProxyHttpSettings,
    proxy_tls: pass_tls::PassTlsSettings,
    /// `proxy_cache` and its like; a location with `grpc_pass` has none.
    proxy_cache: cache::CacheSettings,
    /// `grpc_pass`; what a location with it has is in the place of `proxy`, `proxy_http` and `proxy_tls` there.
    grpc: pass::PassSettings,
    grpc_http: proxy::ProxyHttpSettings,
    grpc_tls: pass_tls::PassTlsSettings,
    /// `fastcgi_…` that all protocols share.
    fastcgi: pass::PassSettings,
    /// What only `fastcgi_pass` has.
    fastcgi_params: fastcgi::FastcgiSettings,
    fastcgi_cache: cache::CacheSettings,
    /// `uwsgi_…` that all protocols share.
    uwsgi: pass::PassSettings,
    /// What only `uwsgi_pass` has.
    uwsgi_params: uwsgi::UwsgiSettings,
    /// A location with `uwsgi_pass` has it in the place of `proxy_tls`.
    uwsgi_tls: pass_tls::PassTlsSettings,
    uwsgi_cache: cache::CacheSettings,
    /// `scgi_…` that all protocols share.
    scgi: pass::PassSettings,
    /// What only `scgi_pass` has.
    scgi_params: scgi::ScgiSettings,
    scgi_cache: cache::CacheSettings,
    /// `memcached_…` that all protocols share.
    memcached: pass::PassSettings,
    /// What only `memcached_pass` has.
    memcached_content: memcached::MemcachedSettings,
    /// What caches of all protocols have in common.
    caching: caching::CachingSettings,
    /// Pieces of answers.
    slice: slice::SliceSettings,
    /// Access and error logs.
    log: log::LogSettings,
    /// What only servers of `stream` have.
    stream: stream::StreamSettings,
}
