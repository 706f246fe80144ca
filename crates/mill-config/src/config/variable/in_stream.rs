//! Built-in variables of the `stream` block, by their names.

use super::Variable;
use crate::Text;

impl Variable {
    /// The built-in variable of that name in the `stream` block, which has fewer than `http`, and some of its own.
    pub fn builtin_in_stream(name: &[u8]) -> Option<Self> {
        if let Ok(index) = OF_STREAM.binary_search_by(|(known, _)| known.as_bytes().cmp(name)) {
            return OF_STREAM.get(index).map(|(_, variable)| variable.clone());
        }
        if let Some(rest) = name.strip_prefix(b"proxy_protocol_tlv_") {
            return Some(Self::ProxyProtocolTlv(Text::from(rest)));
        }
        let is_of_tls = name.starts_with(b"ssl_");
        let is_shared = SHARED.binary_search_by(|known| known.as_bytes().cmp(name));
        if is_of_tls || is_shared.is_ok() {
            return Self::builtin(name);
        }
        None
    }
}

/// Those of the `stream` block alone, sorted by name.
const OF_STREAM: &[(&str, Variable)] = &[
    ("bytes_received", Variable::BytesReceived),
    ("limit_conn_status", Variable::LimitConnStatus),
    ("protocol", Variable::Protocol),
    ("session_time", Variable::SessionTime),
    (
        "ssl_preread_alpn_protocols",
        Variable::SslPrereadAlpnProtocols,
    ),
    ("ssl_preread_protocol", Variable::SslPrereadProtocol),
    ("ssl_preread_server_name", Variable::SslPrereadServerName),
    ("upstream_first_byte_time", Variable::UpstreamFirstByteTime),
    ("upstream_session_time", Variable::UpstreamSessionTime),
];

/// Those that it shares with `http`, sorted.
const SHARED: &[&str] = &[
    "binary_remote_addr",
    "binary_remote_net",
    "bytes_sent",
    "connection",
    "hostname",
    "msec",
    "nginx_version",
    "pid",
    "proxy_protocol_addr",
    "proxy_protocol_port",
    "proxy_protocol_server_addr",
    "proxy_protocol_server_port",
    "realip_remote_addr",
    "realip_remote_port",
    "remote_addr",
    "remote_port",
    "server_addr",
    "server_port",
    "status",
    "time_iso8601",
    "time_local",
    "upstream_addr",
    "upstream_bytes_received",
    "upstream_bytes_sent",
    "upstream_connect_time",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_names_are_sorted_and_known() {
        assert!(OF_STREAM.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(SHARED.is_sorted_by(|a, b| a < b));
        for name in SHARED {
            let known = Variable::builtin_in_stream(name.as_bytes());
            assert!(known.is_some(), "{name}");
        }
    }
}
