//! Escaping for URIs and for HTML pages, with nginx's sets of characters.

use alloc::vec::Vec;

/// Where the text goes decides what must be escaped. Control bytes, 0x7f and above always are.
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
}
