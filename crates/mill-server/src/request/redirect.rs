//! The value of `Location`.

use crate::request::Request;
use mill_http::decimal::emit_decimal;
use mill_runtime::address::Address;

/// The value of `Location`: a path gets scheme, host and port, according to `absolute_redirect`,
/// `server_name_in_redirect` and `port_in_redirect`. Other values are not changed.
pub fn absolute(location: Vec<u8>, request: &mut Request) -> Vec<u8> {
    if !location.starts_with(b"/") || !request.location.headers.absolute_redirect {
        return location;
    }
    let scheme = request.connection.scheme();
    let mut absolute = [scheme.as_bytes(), b"://"].concat();
    if request.location.headers.server_name_in_redirect {
        absolute.extend_from_slice(&request.server.name);
    } else if request.host().is_empty() {
        request.pure = false;
        emit_host(request.connection.local(), &mut absolute);
    } else {
        absolute.extend_from_slice(&request.host());
    }
    if let Address::Ip(local) = request.connection.local()
        && request.location.headers.port_in_redirect
        && local.port() != default_port(scheme)
    {
        absolute.push(b':');
        emit_decimal(u64::from(local.port()), &mut absolute);
    }
    absolute.extend_from_slice(&location);
    absolute
}

/// The port that a URI may omit, RFC 9110 4.2.1 and 4.2.2.
fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// An address in place of a host name. nginx writes an IPv6 address without brackets here; a URI needs them.
fn emit_host(address: &Address, out: &mut Vec<u8>) {
    let host = match address {
        Address::Ip(address) if address.is_ipv6() => format!("[{}]", address.ip()),
        Address::Ip(address) => address.ip().to_string(),
        Address::Unix(path) => return out.extend([b"unix:", &**path].concat()),
    };
    out.extend_from_slice(host.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_in_for_a_missing_host() {
        let check = |address: Address, expected: &str| {
            let mut out = Vec::new();
            emit_host(&address, &mut out);
            assert_eq!(out, expected.as_bytes());
        };
        let ip = |text: &str| Address::Ip(text.parse().unwrap());
        check(ip("192.0.2.1:80"), "192.0.2.1");
        check(ip("[2001:db8::1]:80"), "[2001:db8::1]");
        check(Address::Unix(b"/run/a"[..].into()), "unix:/run/a");
    }
}
