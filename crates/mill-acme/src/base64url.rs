//! Base64 with the alphabet for URLs, without padding (RFC 4648 5, RFC 7515 2).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) fn emit(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            let index = bits >> (18 - 6 * digit) & 63;
            let letter = ALPHABET.get(index as usize).copied();
            out.push(char::from(letter.unwrap_or_default()));
        }
    }
    out
}

/// `None`: it is not well formed. Padding may be there.
pub(crate) fn parse(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    // A single letter, or bits that belong to no byte.
    let is_whole = count < 6 && bits & ((1 << count) - 1) == 0;
    is_whole.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::{emit, parse};

    #[test]
    fn bytes_become_the_text_of_rfc_4648_and_back() {
        let cases: &[(&[u8], &str)] = &[
            (b"", ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (b"\xff\xfe\xfb", "__77"),
        ];
        for (bytes, text) in cases {
            assert_eq!(emit(bytes), *text);
            assert_eq!(parse(text).as_deref(), Some(*bytes), "{text}");
        }
        assert_eq!(parse("Zg==").as_deref(), Some(&b"f"[..]));
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["Z", "Zh", "Zm9v+", "Zm 9"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
