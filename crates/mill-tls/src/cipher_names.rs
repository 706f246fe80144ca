//! Names of cipher suites as OpenSSL spells them.

use rustls::CipherSuite;

/// The name of a suite that rustls has; empty for another one.
pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    offered_cipher_name(u16::from(suite)).unwrap_or_default()
}

/// The name of a suite that a client may offer; `None` for a rare one.
pub fn offered_cipher_name(number: u16) -> Option<&'static str> {
    let known = NAMES
        .binary_search_by_key(&number, |(known, _)| *known)
        .ok()?;
    NAMES.get(known).map(|(_, name)| *name)
}

/// By number, of the IANA's registry.
const NAMES: &[(u16, &str)] = &[
    (0x000a, "DES-CBC3-SHA"),
    (0x0016, "DHE-RSA-DES-CBC3-SHA"),
    (0x002f, "AES128-SHA"),
    (0x0033, "DHE-RSA-AES128-SHA"),
    (0x0035, "AES256-SHA"),
    (0x0039, "DHE-RSA-AES256-SHA"),
    (0x003c, "AES128-SHA256"),
    (0x003d, "AES256-SHA256"),
    (0x0041, "CAMELLIA128-SHA"),
    (0x0067, "DHE-RSA-AES128-SHA256"),
    (0x006b, "DHE-RSA-AES256-SHA256"),
    (0x0084, "CAMELLIA256-SHA"),
    (0x009c, "AES128-GCM-SHA256"),
    (0x009d, "AES256-GCM-SHA384"),
    (0x009e, "DHE-RSA-AES128-GCM-SHA256"),
    (0x009f, "DHE-RSA-AES256-GCM-SHA384"),
    (0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"),
    (0x1301, "TLS_AES_128_GCM_SHA256"),
    (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0x1304, "TLS_AES_128_CCM_SHA256"),
    (0x1305, "TLS_AES_128_CCM_8_SHA256"),
    (0xc008, "ECDHE-ECDSA-DES-CBC3-SHA"),
    (0xc009, "ECDHE-ECDSA-AES128-SHA"),
    (0xc00a, "ECDHE-ECDSA-AES256-SHA"),
    (0xc012, "ECDHE-RSA-DES-CBC3-SHA"),
    (0xc013, "ECDHE-RSA-AES128-SHA"),
    (0xc014, "ECDHE-RSA-AES256-SHA"),
    (0xc023, "ECDHE-ECDSA-AES128-SHA256"),
    (0xc024, "ECDHE-ECDSA-AES256-SHA384"),
    (0xc027, "ECDHE-RSA-AES128-SHA256"),
    (0xc028, "ECDHE-RSA-AES256-SHA384"),
    (0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (0xc02f, "ECDHE-RSA-AES128-GCM-SHA256"),
    (0xc030, "ECDHE-RSA-AES256-GCM-SHA384"),
    (0xc09c, "AES128-CCM"),
    (0xc09d, "AES256-CCM"),
    (0xc09e, "DHE-RSA-AES128-CCM"),
    (0xc09f, "DHE-RSA-AES256-CCM"),
    (0xc0ac, "ECDHE-ECDSA-AES128-CCM"),
    (0xc0ad, "ECDHE-ECDSA-AES256-CCM"),
    (0xcca8, "ECDHE-RSA-CHACHA20-POLY1305"),
    (0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (0xccaa, "DHE-RSA-CHACHA20-POLY1305"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs;

    #[test]
    fn the_table_is_in_order_and_has_all_that_rustls_has() {
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
        for suite in aws_lc_rs::ALL_CIPHER_SUITES {
            assert_ne!(cipher_name(suite.suite()), "", "{suite:?}");
        }
    }
}
