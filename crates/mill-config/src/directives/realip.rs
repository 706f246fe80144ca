//! `set_real_ip_from`, `real_ip_header`, `real_ip_recursive`: the client's address as a proxy in front tells it.

use std::net::IpAddr;

use crate::Text;
use crate::config::Network;
use crate::config::settings::group;
use crate::directive::{ALL_LEVELS, ANY_LEVEL, Apply, Arity, Directive, many, once};
use crate::directives::access::network;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

group! {
    /// The client's address as a proxy in front tells it.
    RealIpSettings {
        /// `set_real_ip_from`: proxies that are believed; none turns it off.
        from: Vec<Network> = Vec::new(),
        /// `real_ip_header`.
        header: RealIpHeader = RealIpHeader::Field(Text::from("X-Real-IP")),
        /// `real_ip_recursive`: of several addresses the last one that is no proxy of `from`, not simply the last.
        recursive: bool = false,
    }
}

/// `real_ip_header`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RealIpHeader {
    /// This field, any case; the first one, but of `X-Forwarded-For`, spelled so, all of them.
    Field(Text),
    /// `proxy_protocol`: the PROXY protocol.
    ProxyProtocol,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "set_real_ip_from",
        ALL_LEVELS,
        Arity::Exactly(1),
        Apply::With(set_real_ip_from),
        "Proxies that tell the client's address: an address, a network, a name, or unix:.",
    ),
    once(
        "real_ip_header",
        ANY_LEVEL,
        Arity::Exactly(1),
        "X-Real-IP",
        Apply::With(|r, s| {
            let header = match s.arg(1).bytes.as_slice() {
                b"proxy_protocol" => RealIpHeader::ProxyProtocol,
                name => RealIpHeader::Field(Text::from(name)),
            };
            r.level.settings.real_ip.header = Some(header);
            Ok(())
        }),
        "The field with the client's address, or proxy_protocol.",
    ),
    once(
        "real_ip_recursive",
        ANY_LEVEL,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.real_ip.recursive),
        "Of several addresses in the field take the last one that is no such proxy.",
    ),
];

fn set_real_ip_from(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let written = match word.bytes.as_slice() {
        b"all" => None,
        text => network(text),
    };
    let networks = match written {
        Some((network, exact)) => {
            if !exact {
                let message = format!("low address bits of {} are meaningless", word.display());
                resolver.warn(statement, word, message);
            }
            vec![network]
        }
        None => {
            let found = resolver.source.resolve(&word.bytes).into_iter();
            let bits = |address: &IpAddr| if address.is_ipv4() { 32 } else { 128 };
            found
                .map(|address| Network::Cidr(address, bits(&address)))
                .collect()
        }
    };
    if networks.is_empty() {
        let shown = word.display();
        let message = format!("host not found in set_real_ip_from \"{shown}\"");
        return Err(resolver.emerg(statement, word, message));
    }
    let from = &mut resolver.level.settings.real_ip.from;
    from.get_or_insert_default().extend(networks);
    Ok(())
}
