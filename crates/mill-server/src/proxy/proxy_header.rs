//! The header of the PROXY protocol that a connection to a server begins with: `proxy_protocol`.

use crate::request::Request;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::ProxyProtocol;
use mill_runtime::address::Address;
use mill_upstream::proxy_protocol::{Ends, emit_v1, emit_v2};

/// The header for this request's client; empty if the location asks for none.
pub(super) fn of(request: &Request, protocol: PassProtocol) -> Vec<u8> {
    let mut header = Vec::new();
    let ends = match (request.client(), request.connection.local()) {
        (Address::Ip(source), Address::Ip(destination)) => Some(Ends::Ip {
            source: *source,
            destination: *destination,
        }),
        (Address::Unix(source), Address::Unix(destination)) => Some(Ends::Unix {
            source,
            destination,
        }),
        _ => None,
    };
    match request.location.proxy_http.proxy_protocol {
        ProxyProtocol::V1 if protocol == PassProtocol::Http => emit_v1(ends, &mut header),
        ProxyProtocol::V2 if protocol == PassProtocol::Http => {
            emit_v2(ends, &[], false, &mut header);
        }
        _ => {}
    }
    header
}
