//! `$proxy_protocol_…`: the header of the PROXY protocol before the connection's first request.

use super::connection::port;
use super::decimal;
use crate::request::ConnectionFacts;
use mill_config::config::Variable;
use mill_runtime::address::Address;
use mill_upstream::proxy_protocol::{Ends, Header, TlvName, TlvValue};
use std::net::SocketAddr;

/// `None` without a header, or if it does not tell that.
pub(super) fn value(variable: &Variable, connection: &ConnectionFacts) -> Option<Vec<u8>> {
    let header = connection.proxy_header()?;
    let host = |address: SocketAddr| address.ip().to_string().into_bytes();
    Some(match variable {
        Variable::ProxyProtocolAddr => host(ends(&header)?.0),
        Variable::ProxyProtocolPort => port(&Address::Ip(ends(&header)?.0)),
        Variable::ProxyProtocolServerAddr => host(ends(&header)?.1),
        Variable::ProxyProtocolServerPort => port(&Address::Ip(ends(&header)?.1)),
        Variable::ProxyProtocolTlv(name) => match header.tlvs.find(TlvName::parse(name)?)? {
            TlvValue::Bytes(bytes) => bytes.to_vec(),
            TlvValue::Number(number) => decimal(number.into()),
        },
        _ => return None,
    })
}

/// The client and the server that it connected to. As in nginx, paths of sockets are not told.
fn ends(header: &Header<'_>) -> Option<(SocketAddr, SocketAddr)> {
    match header.ends? {
        Ends::Ip {
            source,
            destination,
        } => Some((source, destination)),
        Ends::Unix { .. } => None,
    }
}
