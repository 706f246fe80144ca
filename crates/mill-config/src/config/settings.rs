//! The settings that http, server, location and `if` blocks inherit from each other.
//!
//! One flat struct, fully merged: an inner block's directive replaces the outer one's, lists as
//! a whole. Directives that are not inherited stand in [`super::Location`], those of servers
//! only in [`super::server::ServerSettings`].

use std::sync::Arc;
use std::time::Duration;

use super::location::{Amount, ClientBodyFile, ClientBodyTemp, Document, ErrorPage};
use super::{
    AccessLog, AccessRule, AddedHeader, ErrorLog, Expires, MimeTypes, Pattern, Template, Variable,
};
use crate::Text;

/// Declares a struct of merged settings and its draft, in which `None` means "not written in
/// this block, ask the outer one".
macro_rules! settings {
    ($(#[$doc:meta])* $name:ident, $draft:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        /// The same before inheritance.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $draft {
            $(pub(crate) $field: Option<$kind>,)*
        }

        impl $draft {
            /// Takes from the outer block what this one does not say.
            pub(crate) fn inherit(&mut self, outer: &Self) {
                $(if self.$field.is_none() {
                    self.$field.clone_from(&outer.$field);
                })*
            }

            /// Fills what no block said with nginx's defaults.
            pub(crate) fn finish(self) -> $name {
                $name { $($field: self.$field.unwrap_or_else(|| $default),)* }
            }
        }
    };
}
pub(crate) use settings;

settings! {
    /// Settings of a location (or of an `if` in it), after inheritance.
    Settings, SettingsDraft {
        /// `root` or `alias`.
        document: Document = Document::Root(Template::literal("html")),
        /// `index`: tried in order; names beginning with `/` are redirected to.
        index: Arc<Vec<Template>> = Arc::new(vec![Template::literal("index.html")]),
        /// `types`.
        types: Arc<MimeTypes> = Arc::new(MimeTypes::default()),
        /// `default_type`; empty sends no Content-Type.
        default_type: Text = Text::from("text/plain"),
        /// `charset`: what Content-Type names.
        charset: Charset = Charset::Off,
        /// `source_charset`: what the content is in.
        source_charset: Charset = Charset::Off,
        /// `override_charset`: also where the content itself is known to have one.
        override_charset: bool = false,
        /// `charset_types`.
        charset_types: Arc<MimeSet> = Arc::new(MimeSet::with_charset()),
        /// `autoindex`.
        autoindex: bool = false,
        /// `autoindex_format`.
        autoindex_format: AutoindexFormat = AutoindexFormat::Html,
        /// `autoindex_exact_size`.
        autoindex_exact_size: bool = true,
        /// `autoindex_localtime`.
        autoindex_localtime: bool = false,
        /// `internal`: only internal redirects get in, all others get 404.
        internal: bool = false,

        /// `error_page`, the first entry that has the status counts.
        error_pages: Arc<Vec<ErrorPage>> = Arc::default(),
        /// `recursive_error_pages`.
        recursive_error_pages: bool = false,
        /// `msie_padding`: error pages that Internet Explorer and Chrome show.
        msie_padding: bool = true,
        /// `msie_refresh`: pages in the place of redirects for Internet Explorer.
        msie_refresh: bool = false,
        /// `add_header`.
        add_headers: Arc<Vec<AddedHeader>> = Arc::default(),
        /// `add_trailer`.
        add_trailers: Arc<Vec<AddedHeader>> = Arc::default(),
        /// `expires`.
        expires: Expires = Expires::Off,
        /// `etag`.
        etag: bool = true,
        /// `if_modified_since`.
        if_modified_since: IfModifiedSince = IfModifiedSince::Exact,
        /// `max_ranges`; 0 turns ranges off, `None` is no limit.
        max_ranges: Option<u64> = None,
        /// `server_tokens`.
        server_tokens: ServerTokens = ServerTokens::On,
        /// `absolute_redirect`.
        absolute_redirect: bool = true,
        /// `port_in_redirect`.
        port_in_redirect: bool = true,
        /// `server_name_in_redirect`.
        server_name_in_redirect: bool = false,
        /// `chunked_transfer_encoding`.
        chunked_transfer_encoding: bool = true,

        /// `gzip`.
        gzip: bool = false,
        /// `gzip_comp_level`, 1 to 9.
        gzip_comp_level: u8 = 1,
        /// `gzip_min_length`, in bytes of the Content-Length.
        gzip_min_length: u64 = 20,
        /// `gzip_http_version`: the least version that is compressed for.
        gzip_http_version: HttpVersion = HttpVersion::Http11,
        /// `gzip_types`.
        gzip_types: MimeSet = MimeSet::Only(vec![Text::from("text/html")]),
        /// `gzip_proxied`.
        gzip_proxied: GzipProxied = GzipProxied::default(),
        /// `gzip_vary`.
        gzip_vary: bool = false,
        /// `gzip_disable`: user agents that get no compressed answer.
        gzip_disable: Arc<Vec<GzipDisable>> = Arc::default(),
        /// `gzip_static`.
        gzip_static: GzipStatic = GzipStatic::Off,

        /// `access_log`; empty is off.
        access_logs: Arc<Vec<AccessLog>> = Arc::default(),
        /// `open_log_file_cache`, for access logs with variables in their path.
        open_log_file_cache: Option<OpenLogFileCache> = None,
        /// `error_log`; never empty.
        error_logs: Arc<Vec<ErrorLog>> = Arc::default(),
        /// `log_not_found`: say in the error log that a file is missing.
        log_not_found: bool = true,
        /// `log_subrequest`.
        log_subrequest: bool = false,
        /// `rewrite_log`: notices about rewrites in the error log.
        rewrite_log: bool = false,
        /// `uninitialized_variable_warn`.
        uninitialized_variable_warn: bool = true,

        /// `allow` and `deny`, the first that fits decides.
        access_rules: Arc<Vec<AccessRule>> = Arc::default(),
        /// `satisfy`.
        satisfy: Satisfy = Satisfy::All,

        /// `client_max_body_size` in bytes; 0 is no limit.
        client_max_body_size: u64 = 1 << 20,
        /// `client_body_buffer_size` in bytes.
        client_body_buffer_size: u64 = 16 << 10,
        /// `client_body_timeout`, between two reads.
        client_body_timeout: Duration = Duration::from_secs(60),
        /// `client_body_in_single_buffer`.
        client_body_in_single_buffer: bool = false,
        /// `client_body_in_file_only`.
        client_body_in_file_only: ClientBodyFile = ClientBodyFile::Off,
        /// `client_body_temp_path`.
        client_body_temp_path: ClientBodyTemp = ClientBodyTemp::default(),

        /// `keepalive_timeout`, first value; zero closes after each answer.
        keepalive_timeout: Duration = Duration::from_secs(75),
        /// `keepalive_timeout`, second value: sent as `Keep-Alive: timeout=N`.
        keepalive_header: Option<Duration> = None,
        /// `keepalive_min_timeout`.
        keepalive_min_timeout: Duration = Duration::ZERO,
        /// `keepalive_requests` per connection.
        keepalive_requests: u64 = 1000,
        /// `keepalive_time`: after it a connection closes with its next answer.
        keepalive_time: Duration = Duration::from_secs(3600),
        /// `keepalive_disable`.
        keepalive_disable: KeepaliveDisable = KeepaliveDisable { msie6: true, safari: false },
        /// `lingering_close`.
        lingering_close: LingeringClose = LingeringClose::On,
        /// `lingering_time`.
        lingering_time: Duration = Duration::from_secs(30),
        /// `lingering_timeout`.
        lingering_timeout: Duration = Duration::from_secs(5),
        /// `send_timeout`, between two writes.
        send_timeout: Duration = Duration::from_secs(60),
        /// `reset_timedout_connection`.
        reset_timedout_connection: bool = false,

        /// `sendfile`.
        sendfile: bool = false,
        /// `sendfile_max_chunk` in bytes; 0 is no limit.
        sendfile_max_chunk: u64 = 2 << 20,
        /// `tcp_nopush`.
        tcp_nopush: bool = false,
        /// `tcp_nodelay`.
        tcp_nodelay: bool = true,
        /// `limit_rate` in bytes per second; 0 is no limit.
        limit_rate: Amount = Amount::Fixed(0),
        /// `limit_rate_after` in bytes.
        limit_rate_after: Amount = Amount::Fixed(0),

        /// `open_file_cache`; `None` is off.
        open_file_cache: Option<OpenFileCache> = None,
        /// `open_file_cache_valid`: after it an entry is checked again.
        open_file_cache_valid: Duration = Duration::from_secs(60),
        /// `open_file_cache_min_uses` within `inactive` for a file to stay open.
        open_file_cache_min_uses: u64 = 1,
        /// `open_file_cache_errors`: remember failures too.
        open_file_cache_errors: bool = false,
        /// `disable_symlinks`.
        disable_symlinks: DisableSymlinks = DisableSymlinks::Off,
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

/// `if_modified_since`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfModifiedSince {
    /// Ignore the field.
    Off,
    /// The dates must be equal.
    Exact,
    /// The file must not be newer.
    Before,
}

/// `server_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTokens {
    /// Name without version.
    Off,
    /// Name and version.
    On,
    /// Name, version and build.
    Build,
}

/// A version of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// The value of `charset` and `source_charset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charset {
    /// None.
    Off,
    /// This one, as it stands where the configuration names it first.
    Named(Text),
    /// The one that a variable names.
    Evaluated(Variable),
}

/// A set of media types, as in `gzip_types`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MimeSet {
    /// `*`.
    Any,
    /// These, lower-cased and sorted; `text/html` is always among them.
    Only(Vec<Text>),
}

impl MimeSet {
    /// Types that `charset_types` names when it does not stand: those that nginx does.
    fn with_charset() -> Self {
        let kinds = [
            "application/javascript",
            "application/rss+xml",
            "text/html",
            "text/plain",
            "text/vnd.wap.wml",
            "text/xml",
        ];
        Self::Only(kinds.map(Text::from).to_vec())
    }

    /// Whether a media type (without parameters) belongs to the set.
    pub fn contains(&self, kind: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Only(kinds) => kinds
                .binary_search_by(|known| {
                    known
                        .iter()
                        .copied()
                        .cmp(kind.iter().map(u8::to_ascii_lowercase))
                })
                .is_ok(),
        }
    }
}

/// `gzip_proxied`: which answers to requests with a Via field are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GzipProxied {
    /// All of them (then the other fields do not matter).
    pub any: bool,
    /// Those that Expires keeps out of caches.
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

/// `satisfy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Satisfy {
    /// All access checks must let in.
    All,
    /// One is enough.
    Any,
}

/// `keepalive_disable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepaliveDisable {
    /// No keep-alive after a POST from MSIE 6.
    pub msie6: bool,
    /// No keep-alive with Safari on macOS.
    pub safari: bool,
}

/// `lingering_close`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LingeringClose {
    /// Close at once.
    Off,
    /// Read on when the client may still be sending.
    On,
    /// Read on in any case.
    Always,
}

/// `open_file_cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFileCache {
    /// `max=` entries.
    pub max: u64,
    /// `inactive=`: unused for so long, an entry goes.
    pub inactive: Duration,
}

/// `open_log_file_cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenLogFileCache {
    /// `max=` descriptors.
    pub max: u64,
    /// `inactive=`.
    pub inactive: Duration,
    /// `min_uses=`.
    pub min_uses: u64,
    /// `valid=`.
    pub valid: Duration,
}

/// `disable_symlinks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisableSymlinks {
    /// Follow links.
    Off,
    /// A link anywhere in the path is refused.
    On {
        /// `from=`: this initial part of the path is not checked.
        from: Option<Template>,
    },
    /// A link is refused when it and what it points to have different owners.
    IfNotOwner {
        /// `from=`.
        from: Option<Template>,
    },
}
