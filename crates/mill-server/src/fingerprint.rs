//! What clients of one kind have in common, whatever their addresses are: `$tls_fingerprint`, `$request_fingerprint`.
//!
//! Both are FNV-1a hashes of 64 bits over a text, which docs/frang.md describes, so that other programs can make them too.
//! They tell kinds of programs apart; one that imitates another has its fingerprint.

use mill_http::field::KnownField;
use mill_http::head::RequestHead;
use mill_tls::facts::TlsFacts;

/// The fingerprint of a handshake: the cipher suites and groups that the client has offered, in its order and without those
/// that it makes up (GREASE, RFC 8701); whether it has asked for a name; the protocol above that was agreed on.
pub(crate) fn of_handshake(facts: &TlsFacts) -> u64 {
    let mut hash = Fnv::new();
    for numbers in [&facts.offered_ciphers, &facts.offered_groups] {
        for number in numbers.iter().filter(|number| !is_grease(**number)) {
            hash.add(format!("{number:04x},").as_bytes());
        }
        hash.add(b";");
    }
    hash.add(if facts.server_name.is_some() {
        b"1"
    } else {
        b"0"
    });
    hash.add(b";");
    hash.add(facts.alpn.as_deref().unwrap_or_default());
    hash.0
}

/// The fingerprint of a head: its version and the names of its fields in their order and in lower case, without those that
/// one client sends with some requests only.
pub(crate) fn of_head(head: &RequestHead, bytes: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.add(head.version.name().as_bytes());
    for field in head
        .fields
        .iter()
        .filter(|field| !is_occasional(field.known))
    {
        hash.add(b",");
        for byte in field.name.of(bytes) {
            hash.add(&[byte.to_ascii_lowercase()]);
        }
    }
    hash.0
}

/// As variables and the configuration have it.
pub(crate) fn text(fingerprint: u64) -> Vec<u8> {
    format!("{fingerprint:016x}").into_bytes()
}

/// Numbers that clients offer so that servers get used to unknown ones: 0x0a0a, 0x1a1a, … 0xfafa.
const fn is_grease(number: u16) -> bool {
    let [high, low] = number.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

/// Fields that depend on the page, not on the program.
const fn is_occasional(field: KnownField) -> bool {
    use KnownField as Known;
    matches!(
        field,
        Known::Host
            | Known::Cookie
            | Known::Referer
            | Known::Origin
            | Known::Authorization
            | Known::ContentLength
            | Known::ContentType
            | Known::TransferEncoding
            | Known::Expect
            | Known::Range
            | Known::IfRange
            | Known::IfMatch
            | Known::IfNoneMatch
            | Known::IfModifiedSince
            | Known::IfUnmodifiedSince
            | Known::CacheControl
            | Known::Pragma
    )
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_http::h1::parse::{Parsed, parse_request};
    use mill_http::limits::HeadRules;

    fn of(text: &str) -> u64 {
        let mut head = RequestHead::default();
        let parsed = parse_request(text.as_bytes(), &mut head, &HeadRules::default());
        assert!(matches!(parsed, Parsed::Complete { .. }), "{parsed:?}");
        of_head(&head, text.as_bytes())
    }

    fn fnv(text: &str) -> u64 {
        let mut hash = Fnv::new();
        hash.add(text.as_bytes());
        hash.0
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the test vectors of its authors.
        assert_eq!(fnv(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv("foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(text(0xab), b"00000000000000ab");
    }

    #[test]
    fn a_head_is_its_version_and_the_order_of_its_fields() {
        let one = of("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n");
        assert_eq!(one, fnv("HTTP/1.1,user-agent,accept"));
        let same = "POST /other HTTP/1.1\r\nhost: b\r\nUSER-AGENT: y\r\naccept: z\r\nCookie: c\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(of(same), one);
        assert_ne!(
            of("GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nUser-Agent: x\r\n\r\n"),
            one
        );
        assert_ne!(
            of("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nAccept: */*\r\nX: y\r\n\r\n"),
            one
        );
        assert_ne!(
            of("GET / HTTP/1.0\r\nHost: a\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n"),
            one
        );
    }

    #[test]
    fn a_handshake_is_what_the_client_has_offered_without_grease() {
        let facts = |ciphers: &[u16], groups: &[u16]| TlsFacts {
            offered_ciphers: ciphers.into(),
            offered_groups: groups.into(),
            server_name: Some("a.example".into()),
            alpn: Some(b"h2"[..].into()),
            ..TlsFacts::default()
        };
        let one = of_handshake(&facts(&[0x1301, 0xc02b], &[0x001d]));
        assert_eq!(one, fnv("1301,c02b,;001d,;1;h2"));
        assert_eq!(
            of_handshake(&facts(&[0x3a3a, 0x1301, 0xc02b], &[0xfafa, 0x001d])),
            one
        );
        assert_ne!(of_handshake(&facts(&[0xc02b, 0x1301], &[0x001d])), one);
        let nameless = TlsFacts {
            server_name: None,
            ..facts(&[0x1301, 0xc02b], &[0x001d])
        };
        assert_eq!(of_handshake(&nameless), fnv("1301,c02b,;001d,;0;h2"));
    }
}
