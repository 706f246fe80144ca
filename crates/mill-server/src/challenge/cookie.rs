//! The value of the cookie: when it was made, in milliseconds since 1970, and what proves that we have made it for this
//! client, in hexadecimal:
//!
//! ```text
//! 0                16                                      80
//! | milliseconds   | HMAC-SHA256 of name, address, agent, milliseconds |
//! ```

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use std::net::IpAddr;

/// The client that a cookie is for.
pub(super) struct Subject {
    key: hmac::Key,
    /// All that is signed besides the time.
    text: Vec<u8>,
}

/// Digits of the time.
const TIME_LEN: usize = 16;

/// Digits of the whole: the signature has 32 bytes.
const VALUE_LEN: usize = TIME_LEN + 64;

const _: () = assert!(TIME_LEN == 2 * size_of::<u64>());

impl Subject {
    pub(super) fn new(secret: &[u8], cookie: &[u8], client: Option<IpAddr>, agent: &[u8]) -> Self {
        let mut text = Vec::new();
        // Lengths, lest a byte move from one part to the next.
        let address = match client {
            None => Vec::new(),
            Some(IpAddr::V4(address)) => address.octets().to_vec(),
            Some(IpAddr::V6(address)) => address.octets().to_vec(),
        };
        for part in [cookie, &address, agent] {
            text.extend_from_slice(&(part.len() as u64).to_be_bytes());
            text.extend_from_slice(part);
        }
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            text,
        }
    }

    /// The value of a cookie that is made at this time.
    pub(super) fn value(&self, made_ms: u64) -> Vec<u8> {
        let mut value = format!("{made_ms:016x}").into_bytes();
        for byte in self.sign(made_ms).as_ref() {
            value.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        value
    }

    /// When a cookie was made, if we have made it for this client.
    pub(super) fn made_ms(&self, value: &[u8]) -> Option<u64> {
        if value.len() != VALUE_LEN {
            return None;
        }
        let digits = std::str::from_utf8(value.get(..TIME_LEN)?).ok()?;
        let made_ms = u64::from_str_radix(digits, 16).ok()?;
        let expected = self.value(made_ms);
        verify_slices_are_equal(&expected, value).ok()?;
        Some(made_ms)
    }

    fn sign(&self, made_ms: u64) -> hmac::Tag {
        let signed = [&self.text[..], &made_ms.to_be_bytes()].concat();
        hmac::sign(&self.key, &signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(secret: &str, cookie: &str, client: &str, agent: &str) -> Subject {
        let client = (!client.is_empty()).then(|| client.parse().unwrap());
        Subject::new(
            secret.as_bytes(),
            cookie.as_bytes(),
            client,
            agent.as_bytes(),
        )
    }

    #[test]
    fn a_cookie_is_good_for_the_client_alone_that_it_was_made_for() {
        let ours = subject("secret", "__tfw", "192.0.2.1", "browser");
        let value = ours.value(1_700_000_000_123);
        assert_eq!(value.len(), VALUE_LEN);
        assert_eq!(&value[..TIME_LEN], b"0000018bcfe5687b");
        assert_eq!(ours.made_ms(&value), Some(1_700_000_000_123));
        for other in [
            subject("secret2", "__tfw", "192.0.2.1", "browser"),
            subject("secret", "__tfx", "192.0.2.1", "browser"),
            subject("secret", "__tfw", "192.0.2.2", "browser"),
            subject("secret", "__tfw", "::192.0.2.1", "browser"),
            subject("secret", "__tfw", "", "browser"),
            subject("secret", "__tfw", "192.0.2.1", "browser2"),
            subject("secret", "__tfw", "192.0.2.1", ""),
        ] {
            assert_eq!(other.made_ms(&value), None);
        }
    }

    #[test]
    fn a_changed_cookie_is_none() {
        let ours = subject("secret", "__tfw", "192.0.2.1", "browser");
        let value = ours.value(1_700_000_000_123);
        for place in 0..value.len() {
            let mut changed = value.clone();
            changed[place] = if changed[place] == b'0' { b'1' } else { b'0' };
            assert_eq!(ours.made_ms(&changed), None, "{place}");
        }
        for other in [
            &b""[..],
            &value[..value.len() - 1],
            &[&value[..], b"0"].concat(),
            &value.to_ascii_uppercase(),
            &[0xff; VALUE_LEN],
            &[b'+'; VALUE_LEN],
        ] {
            assert_eq!(ours.made_ms(other), None);
        }
    }
}
