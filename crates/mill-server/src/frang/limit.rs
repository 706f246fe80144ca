//! The limits by their names.

use mill_metrics::ServerCounters;
use std::fmt;

macro_rules! limits {
    ($($variant:ident $name:literal $counter:ident,)*) => {
        /// One of the limits of `frang`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FrangLimit {
            $(#[doc = $name] $variant,)*
        }

        impl FrangLimit {
            /// As it is written in the configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Counts that it was exceeded.
            pub(crate) const fn count(self, counters: &mut ServerCounters) {
                let counter = match self {
                    $(Self::$variant => &mut counters.$counter,)*
                };
                *counter = counter.saturating_add(1);
            }
        }
    };
}

limits! {
    RequestRate "request_rate" frang_request_rate,
    RequestBurst "request_burst" frang_request_burst,
    ConnectionRate "tcp_connection_rate" frang_tcp_connection_rate,
    ConnectionBurst "tcp_connection_burst" frang_tcp_connection_burst,
    Connections "concurrent_tcp_connections" frang_concurrent_tcp_connections,
    HandshakeRate "tls_connection_rate" frang_tls_connection_rate,
    HandshakeBurst "tls_connection_burst" frang_tls_connection_burst,
    IncompleteHandshakes "tls_incomplete_connection_rate" frang_tls_incomplete_connection_rate,
    UriLen "http_uri_len" frang_http_uri_len,
    FieldLen "http_hdr_len" frang_http_hdr_len,
    Fields "http_header_cnt" frang_http_header_cnt,
    ContentLen "http_body_len" frang_http_body_len,
    HeadPieces "http_header_chunk_cnt" frang_http_header_chunk_cnt,
    ContentPieces "http_body_chunk_cnt" frang_http_body_chunk_cnt,
    Methods "http_methods" frang_http_methods,
    MethodOverride "http_method_override_allowed" frang_http_method_override,
    ContentTypeRequired "http_ct_required" frang_http_ct_required,
    ContentTypes "http_ct_vals" frang_http_ct_vals,
    StrictHost "http_strict_host_checking" frang_http_strict_host,
    Statuses "http_resp_code_block" frang_http_resp_code_block,
    TlsFingerprint "tls_fingerprint" frang_tls_fingerprint,
    HttpFingerprint "http_fingerprint" frang_http_fingerprint,
    Misses "max_misses" challenges_missed,
    Bytes "brange" frang_brange,
    TypeWithoutContent "http_allow_empty_body_content_type" frang_type_without_content,
    PostValidate "http_post_validate" frang_http_post_validate,
}

impl FrangLimit {
    /// Whether what breaks it is no attack but a malformed request: 400, whatever `action` and `ip_block` say.
    pub(crate) const fn is_of_form(self) -> bool {
        matches!(
            self,
            Self::Bytes | Self::TypeWithoutContent | Self::PostValidate
        )
    }
}

/// That a limit of a client was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    pub(crate) limit: FrangLimit,
    pub(crate) value: u64,
    pub(crate) most: u64,
    /// A line of the error log tells it: one a second, client and limit.
    pub(crate) is_told: bool,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            limit, value, most, ..
        } = self;
        let name = limit.name();
        write!(
            formatter,
            "limiting client by \"{name}\" of frang: {value}, and {most} is the most"
        )
    }
}
