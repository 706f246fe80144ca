//! Whether a client accepts gzip, as nginx reads `Accept-Encoding`.
//!
//! nginx looks for the word itself and its weight: `*`, `identity` and `x-gzip` are ignored, and a malformed weight
//! means no.

/// The value accepts the coding `gzip` with a weight above zero.
pub fn accepts_gzip(value: &[u8]) -> bool {
    // The common form of browsers.
    if value.starts_with(b"gzip,") {
        return true;
    }
    let Some(after) = find_coding(value) else {
        return false;
    };
    let mut rest = skip_spaces(after);
    rest = match rest {
        [] | [b',', ..] => return true,
        [b';', rest @ ..] => skip_spaces(rest),
        _ => return false,
    };
    match rest {
        [] => true,
        [b'q' | b'Q', b'=', weight @ ..] => weight_is_positive(weight),
        _ => false,
    }
}

/// The rest after the first `gzip` that begins the value or follows a comma or a space.
fn find_coding(value: &[u8]) -> Option<&[u8]> {
    let mut start = 0;
    loop {
        let rest = value.get(start..)?;
        let found = rest
            .windows(CODING.len())
            .position(|word| word.eq_ignore_ascii_case(CODING))?;
        let after = rest.get(found + CODING.len()..)?;
        let before = found.checked_sub(1).and_then(|index| rest.get(index));
        if matches!(before, None | Some(b',' | b' ')) {
            return Some(after);
        }
        start += found + CODING.len();
    }
}

const CODING: &[u8] = b"gzip";

fn skip_spaces(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    text
}

/// RFC 9110 12.4.2: 0 or 1, then up to three digits; 1 takes only zeros.
fn weight_is_positive(weight: &[u8]) -> bool {
    let end = weight
        .iter()
        .position(|byte| matches!(byte, b',' | b' '))
        .unwrap_or(weight.len());
    // nginx takes the first byte as the digit even if it is a separator, which then means no.
    match weight.get(..end) {
        Some([b'1']) => true,
        Some([b'1', b'.', fraction @ ..]) => {
            fraction.len() <= 3 && fraction.iter().all(|digit| *digit == b'0')
        }
        Some([b'0', b'.', fraction @ ..]) => {
            fraction.len() <= 3
                && fraction.iter().all(u8::is_ascii_digit)
                && fraction.iter().any(|digit| *digit != b'0')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_as_nginx_accepts_it() {
        let check = |value: &str, expected: bool| {
            assert_eq!(accepts_gzip(value.as_bytes()), expected, "{value:?}");
        };
        for value in [
            "gzip",
            "GZIP",
            "gzip, deflate",
            "deflate, gzip",
            "deflate,gzip;q=1",
            "gzip;q=1.000",
            "gzip; q=0.001",
            "gzip ; Q=0.5, x",
            "gzip;",
            "gzip ",
            "br gzip",
            "gzip;q=1 ",
            "x-gzip, gzip",
            "gzip,;q=0",
        ] {
            check(value, true);
        }
        for value in [
            "",
            "*",
            "gzi",
            "x-gzip",
            "gzipped",
            "gzip;q=0",
            "gzip;q=0.000",
            "gzip;q=0.",
            "gzip;q",
            "gzip;q=",
            "gzip;q=,",
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.0001",
            "gzip;q=0.x",
            "gzip;q =1",
            "gzip;x=1",
            "gzip\t",
            "deflate;gzip",
            "gzip;q=1;x",
        ] {
            check(value, false);
        }
    }
}
