//! What the variables of nginx, and our own, are called.

use super::{ClientCertificatePart, Variable};
use crate::Text;

/// Names of the variables that have one of their own, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN
        .iter()
        .map(|(name, _)| *name)
        .chain(ABSENT.iter().copied())
}

impl Variable {
    /// The built-in variable of that name (lower-cased, without `$`); `None` when nginx does not
    /// know it either.
    pub fn builtin(name: &[u8]) -> Option<Self> {
        if let Ok(index) = BUILTIN.binary_search_by(|(known, _)| known.as_bytes().cmp(name)) {
            return BUILTIN.get(index).map(|(_, variable)| variable.clone());
        }
        if let Ok(index) = ABSENT.binary_search_by(|known| known.as_bytes().cmp(name)) {
            return ABSENT.get(index).map(|name| Self::Absent(name));
        }
        let prefixed: [(&str, Family); 9] = [
            ("http_", Self::Http),
            ("sent_http_", Self::SentHttp),
            ("sent_trailer_", Self::SentTrailer),
            ("cookie_", Self::Cookie),
            ("arg_", Self::Arg),
            ("upstream_http_", Self::UpstreamHttp),
            ("upstream_trailer_", Self::UpstreamTrailer),
            ("upstream_cookie_", Self::UpstreamCookie),
            ("proxy_protocol_tlv_", Self::ProxyProtocolTlv),
        ];
        prefixed.iter().find_map(|(prefix, make)| {
            let rest = name.strip_prefix(prefix.as_bytes())?;
            Some(make(Text::from(rest)))
        })
    }
}

/// Makes a variable of an open family from the rest of its name.
type Family = fn(Text) -> Variable;

/// Sorted by name.
const BUILTIN: &[(&str, Variable)] = &[
    ("args", Variable::Args),
    ("binary_remote_addr", Variable::BinaryRemoteAddr),
    ("binary_remote_net", Variable::BinaryRemoteNet),
    ("body_bytes_sent", Variable::BodyBytesSent),
    ("bytes_sent", Variable::BytesSent),
    ("cache_decision", Variable::CacheDecision),
    ("connection", Variable::Connection),
    ("connection_requests", Variable::ConnectionRequests),
    ("connection_time", Variable::ConnectionTime),
    ("connections_active", Variable::ConnectionsActive),
    ("connections_reading", Variable::ConnectionsReading),
    ("connections_waiting", Variable::ConnectionsWaiting),
    ("connections_writing", Variable::ConnectionsWriting),
    ("content_length", Variable::ContentLength),
    ("content_type", Variable::ContentType),
    ("date_gmt", Variable::DateGmt),
    ("date_local", Variable::DateLocal),
    ("document_root", Variable::DocumentRoot),
    ("document_uri", Variable::DocumentUri),
    ("fastcgi_path_info", Variable::FastcgiPathInfo),
    ("fastcgi_script_name", Variable::FastcgiScriptName),
    ("gzip_ratio", Variable::GzipRatio),
    ("host", Variable::Host),
    ("hostname", Variable::Hostname),
    ("http2", Variable::Http2),
    ("https", Variable::Https),
    ("is_args", Variable::IsArgs),
    ("limit_conn_status", Variable::LimitConnStatus),
    ("limit_rate", Variable::LimitRate),
    ("limit_req_status", Variable::LimitReqStatus),
    ("msec", Variable::Msec),
    ("nginx_version", Variable::NginxVersion),
    ("pid", Variable::Pid),
    ("pipe", Variable::Pipe),
    ("proxy_add_x_forwarded_for", Variable::ProxyAddXForwardedFor),
    ("proxy_host", Variable::ProxyHost),
    (
        "proxy_internal_body_length",
        Variable::ProxyInternalBodyLength,
    ),
    ("proxy_internal_chunked", Variable::ProxyInternalChunked),
    ("proxy_port", Variable::ProxyPort),
    ("proxy_protocol_addr", Variable::ProxyProtocolAddr),
    ("proxy_protocol_port", Variable::ProxyProtocolPort),
    (
        "proxy_protocol_server_addr",
        Variable::ProxyProtocolServerAddr,
    ),
    (
        "proxy_protocol_server_port",
        Variable::ProxyProtocolServerPort,
    ),
    ("query_string", Variable::QueryString),
    ("realip_remote_addr", Variable::RealipRemoteAddr),
    ("realip_remote_port", Variable::RealipRemotePort),
    ("realpath_root", Variable::RealpathRoot),
    ("remote_addr", Variable::RemoteAddr),
    ("remote_port", Variable::RemotePort),
    ("remote_user", Variable::RemoteUser),
    ("request", Variable::Request),
    ("request_body", Variable::RequestBody),
    ("request_body_file", Variable::RequestBodyFile),
    ("request_completion", Variable::RequestCompletion),
    ("request_filename", Variable::RequestFilename),
    ("request_fingerprint", Variable::HttpFingerprint),
    ("request_id", Variable::RequestId),
    ("request_length", Variable::RequestLength),
    ("request_method", Variable::RequestMethod),
    ("request_time", Variable::RequestTime),
    ("request_uri", Variable::RequestUri),
    ("scheme", Variable::Scheme),
    ("server_addr", Variable::ServerAddr),
    ("server_name", Variable::ServerName),
    ("server_port", Variable::ServerPort),
    ("server_protocol", Variable::ServerProtocol),
    ("slice_range", Variable::SliceRange),
    ("ssl_alpn_protocol", Variable::SslAlpnProtocol),
    ("ssl_cipher", Variable::SslCipher),
    ("ssl_ciphers", Variable::SslCiphers),
    (
        "ssl_client_cert",
        Variable::SslClient(ClientCertificatePart::Tabbed),
    ),
    (
        "ssl_client_escaped_cert",
        Variable::SslClient(ClientCertificatePart::Escaped),
    ),
    (
        "ssl_client_fingerprint",
        Variable::SslClient(ClientCertificatePart::Fingerprint),
    ),
    (
        "ssl_client_i_dn",
        Variable::SslClient(ClientCertificatePart::Issuer),
    ),
    (
        "ssl_client_i_dn_legacy",
        Variable::SslClient(ClientCertificatePart::IssuerLegacy),
    ),
    (
        "ssl_client_raw_cert",
        Variable::SslClient(ClientCertificatePart::Pem),
    ),
    (
        "ssl_client_s_dn",
        Variable::SslClient(ClientCertificatePart::Subject),
    ),
    (
        "ssl_client_s_dn_legacy",
        Variable::SslClient(ClientCertificatePart::SubjectLegacy),
    ),
    (
        "ssl_client_serial",
        Variable::SslClient(ClientCertificatePart::Serial),
    ),
    ("ssl_client_sigalg", Variable::SslClientSigalg),
    (
        "ssl_client_v_end",
        Variable::SslClient(ClientCertificatePart::End),
    ),
    (
        "ssl_client_v_remain",
        Variable::SslClient(ClientCertificatePart::DaysLeft),
    ),
    (
        "ssl_client_v_start",
        Variable::SslClient(ClientCertificatePart::Start),
    ),
    (
        "ssl_client_verify",
        Variable::SslClient(ClientCertificatePart::Verify),
    ),
    ("ssl_curve", Variable::SslCurve),
    ("ssl_curves", Variable::SslCurves),
    ("ssl_early_data", Variable::SslEarlyData),
    ("ssl_protocol", Variable::SslProtocol),
    ("ssl_server_name", Variable::SslServerName),
    ("ssl_session_id", Variable::SslSessionId),
    ("ssl_session_reused", Variable::SslSessionReused),
    ("ssl_sigalg", Variable::SslSigalg),
    ("status", Variable::Status),
    ("tcpinfo_rcv_space", Variable::TcpinfoRcvSpace),
    ("tcpinfo_rtt", Variable::TcpinfoRtt),
    ("tcpinfo_rttvar", Variable::TcpinfoRttvar),
    ("tcpinfo_snd_cwnd", Variable::TcpinfoSndCwnd),
    ("time_iso8601", Variable::TimeIso8601),
    ("time_local", Variable::TimeLocal),
    ("tls_fingerprint", Variable::TlsFingerprint),
    ("upstream_addr", Variable::UpstreamAddr),
    ("upstream_bytes_received", Variable::UpstreamBytesReceived),
    ("upstream_bytes_sent", Variable::UpstreamBytesSent),
    ("upstream_cache_age", Variable::UpstreamCacheAge),
    ("upstream_cache_etag", Variable::UpstreamCacheEtag),
    ("upstream_cache_key", Variable::UpstreamCacheKey),
    (
        "upstream_cache_last_modified",
        Variable::UpstreamCacheLastModified,
    ),
    ("upstream_cache_status", Variable::UpstreamCacheStatus),
    ("upstream_connect_time", Variable::UpstreamConnectTime),
    ("upstream_header_time", Variable::UpstreamHeaderTime),
    (
        "upstream_last_server_name",
        Variable::UpstreamLastServerName,
    ),
    ("upstream_queue_time", Variable::UpstreamQueueTime),
    ("upstream_response_length", Variable::UpstreamResponseLength),
    ("upstream_response_time", Variable::UpstreamResponseTime),
    ("upstream_status", Variable::UpstreamStatus),
    ("uri", Variable::Uri),
];

/// Variables of nginx modules that are not supported, sorted.
const ABSENT: &[&str] = &[
    "ancient_browser",
    "geoip_area_code",
    "geoip_city",
    "geoip_city_continent_code",
    "geoip_city_country_code",
    "geoip_city_country_code3",
    "geoip_city_country_name",
    "geoip_country_code",
    "geoip_country_code3",
    "geoip_country_name",
    "geoip_dma_code",
    "geoip_latitude",
    "geoip_longitude",
    "geoip_org",
    "geoip_postal_code",
    "geoip_region",
    "geoip_region_name",
    "http3",
    "invalid_referer",
    "modern_browser",
    "msie",
    "secure_link",
    "secure_link_expires",
    "ssl_ech_outer_server_name",
    "ssl_ech_status",
    "uid_got",
    "uid_reset",
    "uid_set",
    "upstream_first_byte_time",
    "upstream_session_time",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_names_are_sorted() {
        assert!(BUILTIN.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(ABSENT.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn names_resolve_to_their_variables() {
        let check = |name: &str, expected: Option<Variable>| {
            assert_eq!(Variable::builtin(name.as_bytes()), expected, "{name}");
        };
        check("uri", Some(Variable::Uri));
        check(
            "http_user_agent",
            Some(Variable::Http(Text::from("user_agent"))),
        );
        check(
            "sent_http_etag",
            Some(Variable::SentHttp(Text::from("etag"))),
        );
        check("arg_x", Some(Variable::Arg(Text::from("x"))));
        check("ssl_ech_status", Some(Variable::Absent("ssl_ech_status")));
        check(
            "upstream_http_server",
            Some(Variable::UpstreamHttp(Text::from("server"))),
        );
        check("nosuch", None);
    }
}
