//! Escaping for URIs and for HTML pages, with nginx's sets of characters.

use alloc::vec::Vec;

/// The bytes to be escaped, by the text's destination. Control bytes, 0x7f and above always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapeSet {
    /// A path: space, `"`, `#`, `%`, `<`, `>`, `?`, `\`, `^`, `` ` ``, `{`, `|`, `}`.
    Uri,
    /// One argument of a query: as `Uri`, and `&`, `+`, `;`.
    Args,
    /// One component: all but letters, digits, `-`, `.`, `_`, `~`.
    Component,
    /// A link in a page: as `Uri` but `'` too, and not `?`.
    Html,
    /// A URI that is already escaped but came from a client: as `Html`, but not `#` and `%`.
    Refresh,
}

impl EscapeSet {
    pub const fn escapes(self, byte: u8) -> bool {
        if byte <= b' ' || byte >= 0x7f {
            return true;
        }
        match self {
            Self::Component => {
                !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'))
            }
            _ if matches!(
                byte,
                b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
            ) =>
            {
                true
            }
            Self::Uri => matches!(byte, b'#' | b'%' | b'?'),
            Self::Args => matches!(byte, b'#' | b'%' | b'?' | b'&' | b'+' | b';'),
            Self::Html => matches!(byte, b'#' | b'%' | b'\''),
            Self::Refresh => matches!(byte, b'\''),
        }
    }
}

/// Appends `text` with the bytes of `set` as `%XX`.
pub fn escape_uri(set: EscapeSet, text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if set.escapes(byte) {
            let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.push(byte);
        }
    }
}

/// Appends the target of a `rewrite … redirect` with its escapes undone as nginx does it: up to
/// the first `?` (plain or escaped), escapes of printable characters above `%` are decoded, other
/// valid ones stay, and malformed ones lose their `%`. What follows the `?` stays as it is.
pub fn unescape_redirect(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'?', _) => {
                out.push(b'?');
                break;
            }
            (b'%', [high, low, behind @ ..]) if high.is_ascii_hexdigit() => {
                rest = behind;
                // nginx drops both characters of an escape whose second is wrong.
                if let (Some(high_digit), Some(low_digit)) = (hex_digit(*high), hex_digit(*low)) {
                    match high_digit << 4 | low_digit {
                        b'?' => {
                            out.push(b'?');
                            break;
                        }
                        byte @ b'&'..0x7f => out.push(byte),
                        _ => out.extend_from_slice(&[b'%', *high, *low]),
                    }
                }
            }
            // An incomplete escape at the end is removed.
            (b'%', [high]) if high.is_ascii_hexdigit() => rest = &[],
            (b'%', []) => {}
            (b'%', [other, behind @ ..]) => {
                out.push(*other);
                rest = behind;
            }
            (byte, _) => out.push(*byte),
        }
    }
    out.extend_from_slice(rest);
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Appends `text` with `<`, `>`, `&` and `"` as entities.
pub fn escape_html(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn each_set_escapes_its_own_characters() {
        let check = |set: EscapeSet, expected: &str| {
            let escaped: String = (0x21..0x7f_u8)
                .filter(|byte| set.escapes(*byte))
                .map(char::from)
                .collect();
            assert_eq!(escaped, expected, "{set:?}");
            assert!((0..=0x20).chain(0x7f..=255).all(|byte| set.escapes(byte)));
        };
        check(EscapeSet::Uri, "\"#%<>?\\^`{|}");
        check(EscapeSet::Args, "\"#%&+;<>?\\^`{|}");
        check(EscapeSet::Component, "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}");
        check(EscapeSet::Html, "\"#%'<>\\^`{|}");
        check(EscapeSet::Refresh, "\"'<>\\^`{|}");
    }

    #[test]
    fn text_is_escaped() {
        let mut out = Vec::new();
        escape_uri(EscapeSet::Uri, "/a b\u{e4}?".as_bytes(), &mut out);
        escape_html(b" <a href=\"&\">", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "/a%20b%C3%A4%3F &lt;a href=&quot;&amp;&quot;&gt;"
        );
    }

    #[test]
    fn redirect_targets_are_unescaped_up_to_their_query() {
        let check = |text: &str, expected: &str| {
            let mut out = Vec::new();
            unescape_redirect(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
        };
        check("", "");
        check("/a%41b", "/aAb");
        check("/%20%0d%0A%25%7f%e4", "/%20%0d%0A%25%7f%e4");
        check("/%26%7E", "/&~");
        check("/%41?%41", "/A?%41");
        check("/a%3fb%41", "/a?b%41");
        check("/%zz%4", "/zz");
        check("/%4zx", "/x");
        check("/%", "/");
    }
}
