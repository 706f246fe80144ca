//! `allow` and `deny`: networks and the order of rules.

use std::net::IpAddr;

/// One `allow` or `deny`; the first rule whose network contains the client decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// True for `allow`.
    pub allow: bool,
    /// The clients that it applies to.
    pub network: Network,
}

/// A set of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// `all`.
    All,
    /// `unix:`, every client on a UNIX-domain socket.
    Unix,
    /// Address and prefix length in bits (32 or 128 for a single address). Host bits are zero.
    Cidr(IpAddr, u8),
}

impl Network {
    /// Whether a client belongs to this set; `None` is a client on a UNIX-domain socket.
    ///
    /// An IPv4-mapped IPv6 client is matched as its IPv4 address, as in nginx.
    pub fn contains(&self, client: Option<IpAddr>) -> bool {
        match (*self, client) {
            (Self::All, _) | (Self::Unix, None) => true,
            (Self::Unix, Some(_)) | (Self::Cidr(..), None) => false,
            (Self::Cidr(IpAddr::V4(network), bits), Some(client)) => {
                let client = match client {
                    IpAddr::V4(client) => client,
                    IpAddr::V6(client) => match client.to_ipv4_mapped() {
                        Some(client) => client,
                        None => return false,
                    },
                };
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                client.to_bits() & mask == network.to_bits()
            }
            (Self::Cidr(IpAddr::V6(network), bits), Some(IpAddr::V6(client))) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                client.to_bits() & mask == network.to_bits()
            }
            (Self::Cidr(IpAddr::V6(_), _), Some(IpAddr::V4(_))) => false,
        }
    }
}

/// Whether the rules admit a client. Without a matching rule it is admitted.
pub fn is_allowed(rules: &[AccessRule], client: Option<IpAddr>) -> bool {
    rules
        .iter()
        .find(|rule| rule.network.contains(client))
        .is_none_or(|rule| rule.allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let check = |network: &str, bits: u8, client: &str, expected: bool| {
            let network = Network::Cidr(network.parse().unwrap(), bits);
            assert_eq!(
                network.contains(Some(client.parse().unwrap())),
                expected,
                "{client}"
            );
        };
        check("10.0.0.0", 8, "10.255.0.1", true);
        check("10.0.0.0", 8, "11.0.0.1", false);
        check("10.0.0.0", 8, "::ffff:10.1.2.3", true);
        check("0.0.0.0", 0, "192.0.2.1", true);
        check("192.0.2.1", 32, "192.0.2.1", true);
        check("192.0.2.1", 32, "192.0.2.2", false);
        check("2001:db8::", 32, "2001:db8:1::1", true);
        check("2001:db8::", 32, "2001:db9::1", false);
        check("::", 0, "::1", true);
        check("::", 0, "10.0.0.1", false);
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rule = |allow, network| AccessRule { allow, network };
        let rules = [rule(true, Network::Unix), rule(false, Network::All)];
        assert!(is_allowed(&rules, None));
        assert!(!is_allowed(&rules, Some("10.0.0.1".parse().unwrap())));
        assert!(is_allowed(&rules[..1], Some("10.0.0.1".parse().unwrap())));
    }
}
