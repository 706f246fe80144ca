//! The name of a server that a client asks for (RFC 6066 3).

use rustls::pki_types::DnsName;

/// Whether it is a host name, as rustls takes it: a client that asks for another one is refused.
pub fn is_host_name(name: &str) -> bool {
    DnsName::try_from(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_name_leads_out_of_a_folder() {
        for name in [
            "..", ".", "a/b", "../a", "a/../b", "", "a..b", ".a", "data:x", "a\\b", "a\0",
        ] {
            assert!(!is_host_name(name), "{name}");
        }
        for name in [
            "a.example",
            "xn--bcher-kva.example",
            "a_b.example",
            "localhost",
        ] {
            assert!(is_host_name(name), "{name}");
        }
    }
}
