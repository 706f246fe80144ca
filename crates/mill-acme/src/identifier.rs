//! Names and addresses that certificates are for (RFC 8555 9.7.7, RFC 8738).

use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::net::IpAddr;

/// A host name or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identifier {
    #[serde(rename = "type")]
    kind: String,
    /// As text.
    pub value: String,
}

impl Identifier {
    /// Of a host name in lower case, or of an address.
    pub fn new(value: &str) -> Self {
        let address: Option<IpAddr> = value.parse().ok();
        match address {
            Some(address) => Self {
                kind: String::from("ip"),
                value: address.to_string(),
            },
            None => Self {
                kind: String::from("dns"),
                value: value.to_owned(),
            },
        }
    }

    /// The name that the authority asks for in its ClientHello (RFC 8737 3, RFC 8738 6).
    pub fn server_name(&self) -> String {
        match self.value.parse() {
            Err(_) => self.value.clone(),
            Ok(IpAddr::V4(address)) => {
                let [a, b, c, d] = address.octets();
                format!("{d}.{c}.{b}.{a}.in-addr.arpa")
            }
            Ok(IpAddr::V6(address)) => {
                let mut name = String::new();
                for octet in address.octets().iter().rev() {
                    let _ = write!(name, "{:x}.{:x}.", octet & 15, octet >> 4);
                }
                name + "ip6.arpa"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Identifier;

    #[test]
    fn an_address_is_asked_for_by_its_reverse_name() {
        let check = |value: &str, kind: &str, name: &str| {
            let identifier = Identifier::new(value);
            assert_eq!(identifier.kind, kind);
            assert_eq!(identifier.server_name(), name);
        };
        check("a.example", "dns", "a.example");
        check("192.0.2.1", "ip", "1.2.0.192.in-addr.arpa");
        let name = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        check("2001:db8::1", "ip", name);
    }
}
