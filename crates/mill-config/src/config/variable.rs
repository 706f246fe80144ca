//! Variables: nginx's own by name, and those that the configuration defines.

/// Those of the `stream` block.
mod in_stream;

/// What each is called.
mod names;

use crate::Text;
pub use names::names;

/// A variable, resolved from its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// Defined by `set`, `map` or a named capture: index into [`super::Http::user_variables`].
    User(usize),
    /// `$arg_NAME`: the first argument of that name (compared without case).
    Arg(Text),
    /// `$cookie_NAME`.
    Cookie(Text),
    /// `$http_NAME`: request fields; compare names with [`names_field`].
    Http(Text),
    /// `$sent_http_NAME`: response fields.
    SentHttp(Text),
    /// `$sent_trailer_NAME`: response trailers.
    SentTrailer(Text),
    /// `$upstream_http_NAME`: fields of the server's answer.
    UpstreamHttp(Text),
    /// `$upstream_trailer_NAME`: its trailers.
    UpstreamTrailer(Text),
    /// `$upstream_cookie_NAME`: cookies that it sets.
    UpstreamCookie(Text),
    /// `$proxy_protocol_tlv_NAME`: a TLV of the PROXY protocol, by its name or as `0x` and its type.
    ProxyProtocolTlv(Text),
    /// A variable of an nginx module that is not supported (TLS, caches, limits): empty.
    Absent(&'static str),
    /// `$args`. Arguments of the request line; may be `set`.
    Args,
    /// `$binary_remote_net`. The network that one client has for itself: the first 8 bytes of an address of IPv6 (/64), else the
    /// whole address as `$binary_remote_addr`.
    BinaryRemoteNet,
    /// `$binary_remote_addr`. The client's address as 4 or 16 bytes.
    BinaryRemoteAddr,
    /// `$body_bytes_sent`. Bytes of content sent.
    BodyBytesSent,
    /// `$bytes_sent`. Bytes sent, the head included.
    BytesSent,
    /// `$connection`. Serial number of the connection.
    Connection,
    /// `$connection_requests`. Requests on this connection so far.
    ConnectionRequests,
    /// `$connection_time`. Age of the connection in seconds, with milliseconds.
    ConnectionTime,
    /// `$content_length`. Field Content-Length of the request.
    ContentLength,
    /// `$content_type`. Field Content-Type of the request.
    ContentType,
    /// `$date_gmt`. Current time in GMT.
    DateGmt,
    /// `$date_local`. Current time in the local zone.
    DateLocal,
    /// `$document_root`. `root` or `alias`, evaluated.
    DocumentRoot,
    /// `$document_uri`. As `$uri`.
    DocumentUri,
    /// `$gzip_ratio`. Achieved ratio of compression.
    GzipRatio,
    /// `$host`. Host: from the request line, the Host field, or the server's name.
    Host,
    /// `$hostname`. Name of this machine.
    Hostname,
    /// `$https`. `on` over TLS, else empty.
    Https,
    /// `$is_args`. `?` if there are arguments, else empty.
    IsArgs,
    /// `$limit_rate`. Limit of the answer in bytes per second; may be `set`.
    LimitRate,
    /// `$msec`. Current time in seconds, with milliseconds.
    Msec,
    /// `$nginx_version`. Version of the server.
    NginxVersion,
    /// `$pid`. Process id of the worker.
    Pid,
    /// `$pipe`. `p` if the request was pipelined, else `.`.
    Pipe,
    /// `$proxy_protocol_addr`. Client address of the PROXY protocol.
    ProxyProtocolAddr,
    /// `$proxy_protocol_port`. Client port of the PROXY protocol.
    ProxyProtocolPort,
    /// `$proxy_protocol_server_addr`. Server address of the PROXY protocol.
    ProxyProtocolServerAddr,
    /// `$proxy_protocol_server_port`. Server port of the PROXY protocol.
    ProxyProtocolServerPort,
    /// `$query_string`. As `$args`.
    QueryString,
    /// `$realpath_root`. `$document_root` with links resolved.
    RealpathRoot,
    /// `$remote_addr`. The client's address.
    RemoteAddr,
    /// `$remote_port`. The client's port.
    RemotePort,
    /// `$remote_user`. User name of Basic authentication.
    RemoteUser,
    /// `$request`. The whole request line.
    Request,
    /// `$request_body`. Content of the request.
    RequestBody,
    /// `$request_body_file`. File with the content of the request.
    RequestBodyFile,
    /// `$request_completion`. `OK` when the request is complete, else empty.
    RequestCompletion,
    /// `$request_filename`. Path of the file.
    RequestFilename,
    /// `$request_id`. 16 random bytes in hexadecimal.
    RequestId,
    /// `$request_length`. Bytes of the request, content included.
    RequestLength,
    /// `$request_method`. The method.
    RequestMethod,
    /// `$request_time`. Seconds since the first bytes of the request, with milliseconds.
    RequestTime,
    /// `$request_uri`. The target as it came, arguments included.
    RequestUri,
    /// `$scheme`. `http` or `https`.
    Scheme,
    /// `$server_addr`. Local address of the connection.
    ServerAddr,
    /// `$server_name`. Name of the server that accepted the request.
    ServerName,
    /// `$server_port`. Local port of the connection.
    ServerPort,
    /// `$server_protocol`. `HTTP/1.0`, `HTTP/1.1`.
    ServerProtocol,
    /// `$http2`. `h2` under TLS, `h2c` in clear; empty where it is not HTTP/2.
    Http2,
    /// `$ssl_alpn_protocol`. The protocol that ALPN has agreed on.
    SslAlpnProtocol,
    /// `$ssl_cipher`. The cipher, as OpenSSL names it.
    SslCipher,
    /// `$tls_fingerprint`. A hash of what the client has offered in its handshake.
    TlsFingerprint,
    /// `$request_fingerprint`. A hash of the names of the request's fields.
    HttpFingerprint,
    /// `$ssl_ciphers`. Ciphers that the client has offered.
    SslCiphers,
    /// `$ssl_client_…`. A part of the client's certificate.
    SslClient(ClientCertificatePart),
    /// `$ssl_curve`. The group in which keys were exchanged.
    SslCurve,
    /// `$ssl_curves`. Groups that the client has offered.
    SslCurves,
    /// `$ssl_early_data`. `1` while the handshake is not over, else nothing.
    SslEarlyData,
    /// `$ssl_protocol`. `TLSv1.2` or `TLSv1.3`.
    SslProtocol,
    /// `$ssl_server_name`. The server name that the client has asked for (SNI).
    SslServerName,
    /// `$ssl_session_id`. In hexadecimal digits; empty in TLS 1.3.
    SslSessionId,
    /// `$ssl_sigalg`. The algorithm of the server's signature.
    SslSigalg,
    /// `$ssl_client_sigalg`. That of the client's.
    SslClientSigalg,
    /// `$ssl_session_reused`. `r` if the session was resumed, else `.`.
    SslSessionReused,
    /// `$status`. Status of the answer.
    Status,
    /// `$tcpinfo_rtt`. TCP_INFO: round-trip time in microseconds.
    TcpinfoRtt,
    /// `$tcpinfo_rttvar`. TCP_INFO: its variance.
    TcpinfoRttvar,
    /// `$tcpinfo_snd_cwnd`. TCP_INFO: congestion window.
    TcpinfoSndCwnd,
    /// `$tcpinfo_rcv_space`. TCP_INFO: receive space.
    TcpinfoRcvSpace,
    /// `$time_iso8601`. Local time, ISO 8601.
    TimeIso8601,
    /// `$time_local`. Local time, common log format.
    TimeLocal,
    /// `$uri`. The path now: decoded, normalised, after rewrites.
    Uri,
    /// `$upstream_addr`. Addresses of the servers that were tried.
    UpstreamAddr,
    /// `$upstream_status`. Statuses of their answers.
    UpstreamStatus,
    /// `$upstream_connect_time`. Seconds until each connection, with milliseconds.
    UpstreamConnectTime,
    /// `$upstream_header_time`. Seconds until each answer's head.
    UpstreamHeaderTime,
    /// `$upstream_response_time`. Seconds until each answer's end.
    UpstreamResponseTime,
    /// `$upstream_response_length`. Bytes of each answer's content.
    UpstreamResponseLength,
    /// `$upstream_bytes_received`. Bytes that each server sent.
    UpstreamBytesReceived,
    /// `$upstream_bytes_sent`. Bytes that each server got.
    UpstreamBytesSent,
    /// `$upstream_queue_time`. Seconds in the group's queue.
    UpstreamQueueTime,
    /// `$upstream_last_server_name`. Name of the server that was tried last, as in its `server`.
    UpstreamLastServerName,
    /// `$upstream_cache_age`. Seconds since the answer that the cache gave was made or last found valid.
    UpstreamCacheAge,
    /// `$upstream_cache_etag`. Field ETag of the answer that is revalidated.
    UpstreamCacheEtag,
    /// `$upstream_cache_key`. The key of the request in its cache.
    UpstreamCacheKey,
    /// `$upstream_cache_last_modified`. Field Last-Modified of the answer that is revalidated.
    UpstreamCacheLastModified,
    /// `$upstream_cache_status`. `MISS`, `BYPASS`, `EXPIRED`, `STALE`, `UPDATING`, `REVALIDATED` or `HIT`.
    UpstreamCacheStatus,
    /// `$cache_decision`. Why the answer came from the cache or did not, and whether it is kept.
    CacheDecision,
    /// `$slice_range`. The piece of the answer that is asked for, as the field Range has it.
    SliceRange,
    /// `$proxy_host`. Host and port in `proxy_pass`.
    ProxyHost,
    /// `$proxy_port`. Port in `proxy_pass`, or that of its scheme.
    ProxyPort,
    /// `$proxy_add_x_forwarded_for`. Field X-Forwarded-For of the request, and the client's address behind it.
    ProxyAddXForwardedFor,
    /// `$proxy_internal_body_length`. Length of the content that is passed on.
    ProxyInternalBodyLength,
    /// `$proxy_internal_chunked`. `chunked` if the content is passed on so.
    ProxyInternalChunked,
    /// `$fastcgi_script_name`. The path, or its part that `fastcgi_split_path_info` tells, with `fastcgi_index`.
    FastcgiScriptName,
    /// `$fastcgi_path_info`. The other part that `fastcgi_split_path_info` tells.
    FastcgiPathInfo,
    /// `$realip_remote_addr`. The client's address before the realip directives changed it.
    RealipRemoteAddr,
    /// `$realip_remote_port`. The port before they changed it.
    RealipRemotePort,
    /// `$bytes_received`. Bytes that a client of `stream` has sent.
    BytesReceived,
    /// `$limit_conn_status`. `PASSED`, `REJECTED` or `REJECTED_DRY_RUN`.
    LimitConnStatus,
    /// `$limit_req_status`. `PASSED`, `DELAYED`, `REJECTED`, `DELAYED_DRY_RUN` or `REJECTED_DRY_RUN`.
    LimitReqStatus,
    /// `$protocol`. `TCP`.
    Protocol,
    /// `$session_time`. Seconds of the session, with milliseconds.
    SessionTime,
    /// `$ssl_preread_alpn_protocols`. Protocols that the ClientHello offers, with commas.
    SslPrereadAlpnProtocols,
    /// `$ssl_preread_protocol`. The highest version of TLS that the ClientHello offers.
    SslPrereadProtocol,
    /// `$ssl_preread_server_name`. The server name that the ClientHello asks for (SNI).
    SslPrereadServerName,
    /// `$upstream_first_byte_time`. Seconds until each server's first byte.
    UpstreamFirstByteTime,
    /// `$upstream_session_time`. Seconds of each session with a server.
    UpstreamSessionTime,
    /// `$connections_active`. Open connections.
    ConnectionsActive,
    /// `$connections_reading`. Connections whose request is being read.
    ConnectionsReading,
    /// `$connections_writing`. Connections being answered.
    ConnectionsWriting,
    /// `$connections_waiting`. Idle connections.
    ConnectionsWaiting,
}

/// Whether the name in a variable (lower case, underscores) means a field: `x_forwarded_for` means `X-Forwarded-For`
/// and, if the server accepts it, `X_Forwarded_For`.
pub fn names_field(variable: &[u8], field: &[u8]) -> bool {
    variable.len() == field.len()
        && variable
            .iter()
            .zip(field)
            .all(|(&wanted, &byte)| match byte {
                b'-' => wanted == b'_',
                byte => wanted == byte.to_ascii_lowercase(),
            })
}

/// What `$ssl_client_…` shows of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificatePart {
    /// `cert`: PEM with a tab before every line but the first.
    Tabbed,
    /// `escaped_cert`: PEM, escaped as in a URI.
    Escaped,
    /// `raw_cert`: PEM.
    Pem,
    /// `fingerprint`: SHA-1.
    Fingerprint,
    /// `i_dn`, as RFC 2253 writes names.
    Issuer,
    /// `i_dn_legacy`, with slashes.
    IssuerLegacy,
    /// `s_dn`.
    Subject,
    /// `s_dn_legacy`.
    SubjectLegacy,
    /// `serial`.
    Serial,
    /// `v_start`: from when on it is valid.
    Start,
    /// `v_end`: until when it is valid.
    End,
    /// `v_remain`: days until then.
    DaysLeft,
    /// `verify`: `SUCCESS`, `FAILED:reason` or `NONE`.
    Verify,
}

impl Variable {
    /// Whether `set` may assign to this built-in variable.
    pub fn is_assignable(&self) -> bool {
        matches!(
            self,
            Self::User(_)
                | Self::Args
                | Self::LimitRate
                | Self::Arg(_)
                | Self::Cookie(_)
                | Self::Http(_)
                | Self::SentHttp(_)
                | Self::SentTrailer(_)
                | Self::UpstreamHttp(_)
                | Self::UpstreamTrailer(_)
                | Self::UpstreamCookie(_)
                | Self::ProxyProtocolTlv(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_fields_without_case_and_with_dashes() {
        assert!(names_field(b"x_forwarded_for", b"X-Forwarded-For"));
        assert!(names_field(b"x_y", b"X_y"));
        assert!(!names_field(b"x_y", b"X-Yz"));
        assert!(!names_field(b"x-y", b"X-Y"));
    }
}
