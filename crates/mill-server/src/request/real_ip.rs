//! The client's address as a proxy in front of this server tells it: `set_real_ip_from` and its like.
//!
//! Looked for with the settings of the server, and as long as none is found, with those of each location that the
//! request comes to. It holds for that request, in rules, variables, logs and the choice of a server behind.

use crate::request::Request;
use crate::request::arrival::ip;
use mill_config::config::Network;
use mill_config::config::settings::{RealIpHeader, RealIpSettings};
use mill_runtime::address::Address;
use mill_upstream::proxy_protocol::Ends;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

/// Sets the request's client from the settings of its present location, unless it is set already.
pub(crate) fn find(request: &mut Request) {
    let settings = &request.location.real_ip;
    if settings.from.is_empty() {
        return;
    }
    // What logs a hot answer finds the client again, with the settings of the server alone.
    let is_servers = Arc::ptr_eq(settings, &request.server.location.real_ip);
    let told = match request.told_client {
        None => told(settings, request),
        Some(_) => None,
    };
    request.pure &= is_servers;
    if told.is_some() {
        request.told_client = told;
    }
}

fn told(settings: &RealIpSettings, request: &Request) -> Option<Address> {
    let peer = &request.connection.peer;
    match &settings.header {
        RealIpHeader::ProxyProtocol => {
            let header = request.connection.proxy_header()?;
            match header.ends? {
                Ends::Ip { source, .. } if is_trusted(peer, &settings.from) => {
                    Some(Address::Ip(source))
                }
                _ => None,
            }
        }
        RealIpHeader::Field(name) => {
            let message = &request.message;
            let fields = message.head.fields.iter().filter(|field| !field.ignored);
            let named = fields
                .filter(|field| field.name.of(&message.bytes).eq_ignore_ascii_case(name))
                .map(|field| field.value.of(&message.bytes));
            // nginx knows the field of several lines by its exact name.
            let lines_max = if **name == *b"X-Forwarded-For" {
                usize::MAX
            } else {
                1
            };
            let mut lines: Vec<&[u8]> = named.take(lines_max).collect();
            lines.reverse();
            in_lists(&lines, peer, settings)
        }
    }
}

/// The address that `lists`, the last one first, tell a server whose peer is `peer`. Each proxy appends the address of its
/// own peer, so an address is believed as long as all that follow it are those of trusted proxies.
fn in_lists(lists: &[&[u8]], peer: &Address, settings: &RealIpSettings) -> Option<Address> {
    let mut found = None;
    for list in lists {
        let mut rest = Some(*list);
        while let Some(list) = rest {
            if !is_trusted(found.as_ref().unwrap_or(peer), &settings.from) {
                return found;
            }
            let (word, before) = split_last(list);
            let Some(address) = parse(word) else {
                return found;
            };
            found = Some(Address::Ip(address));
            if !settings.recursive {
                return found;
            }
            rest = before;
        }
    }
    found
}

pub(crate) fn is_trusted(address: &Address, from: &[Network]) -> bool {
    let client = ip(address);
    from.iter().any(|network| network.contains(client))
}

/// The last word of a list, and what is before it. As in nginx, a first byte never separates.
fn split_last(list: &[u8]) -> (&[u8], Option<&[u8]>) {
    let is_separator = |byte: &u8| matches!(byte, b' ' | b',');
    let end = list.iter().rposition(|byte| !is_separator(byte));
    let list = list.get(..end.map_or(1, |end| end + 1)).unwrap_or_default();
    match list.iter().rposition(is_separator) {
        None | Some(0) => (list, None),
        Some(at) => (list.get(at + 1..).unwrap_or_default(), list.get(..at)),
    }
}

/// An address, or an address and a port that is not 0, with brackets around IPv6 then. Without a port it is 0.
fn parse(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, 0));
    }
    let address = match text.parse::<SocketAddrV4>() {
        Ok(address) => SocketAddr::V4(address),
        // No scope.
        Err(_) if text.contains('%') => return None,
        Err(_) => SocketAddr::V6(text.parse::<SocketAddrV6>().ok()?),
    };
    (address.port() != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(from: &[&str], recursive: bool) -> RealIpSettings {
        let from = from.iter().map(|text| match *text {
            "unix:" => Network::Unix,
            text => {
                let (address, bits) = text.split_once('/').expect("a network");
                Network::Cidr(address.parse().unwrap(), bits.parse().unwrap())
            }
        });
        RealIpSettings {
            from: from.collect(),
            recursive,
            ..RealIpSettings::default()
        }
    }

    #[test]
    fn the_last_address_that_a_trusted_proxy_tells_is_the_client() {
        let check = |from: &[&str], recursive: bool, lines: &[&str], expected: Option<&str>| {
            let peer = Address::Ip("10.0.0.1:9".parse().unwrap());
            let lists: Vec<&[u8]> = lines.iter().rev().map(|line| line.as_bytes()).collect();
            let found = in_lists(&lists, &peer, &settings(from, recursive));
            let expected = expected.map(|text| Address::Ip(text.parse().unwrap()));
            assert_eq!(found, expected, "{lines:?}");
        };
        let net = &["10.0.0.0/8"][..];
        check(net, false, &["192.0.2.1"], Some("192.0.2.1:0"));
        check(net, false, &["192.0.2.1, 10.0.0.2"], Some("10.0.0.2:0"));
        check(net, true, &["192.0.2.1, 10.0.0.2"], Some("192.0.2.1:0"));
        check(
            net,
            true,
            &["a, 192.0.2.1,10.0.0.2 , "],
            Some("192.0.2.1:0"),
        );
        check(net, true, &["a,10.0.0.2"], Some("10.0.0.2:0"));
        check(net, true, &["192.0.2.1", "10.0.0.2"], Some("192.0.2.1:0"));
        check(net, true, &["192.0.2.1", ""], None);
        check(net, true, &["10.0.0.3,10.0.0.2"], Some("10.0.0.3:0"));
        check(net, false, &["192.0.2.1:80"], Some("192.0.2.1:80"));
        check(net, false, &["[2001:db8::1]:80"], Some("[2001:db8::1]:80"));
        check(net, false, &["2001:db8::1"], Some("[2001:db8::1]:0"));
        for wrong in [
            "",
            ",",
            "x",
            "192.0.2.1:0",
            "192.0.2.1:",
            "[::1]",
            "[fe80::1%1]:80",
            ",192.0.2.1",
        ] {
            check(net, false, &[wrong], None);
        }
        check(&["192.0.2.0/24"], true, &["192.0.2.1"], None);
        check(&["unix:"], true, &["192.0.2.1"], None);
        check(&[], true, &["192.0.2.1"], None);
        let unix = Address::Unix(b""[..].into());
        let found = in_lists(&[b"192.0.2.1"], &unix, &settings(&["unix:"], false));
        assert_eq!(found, Some(Address::Ip("192.0.2.1:0".parse().unwrap())));
    }
}
