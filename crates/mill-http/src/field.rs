//! Field names and values, RFC 9110 5: known names, one field line, comma lists.

use crate::span::Span;

macro_rules! known_fields {
    ($($variant:ident $name:literal,)*) => {
        /// The field names that this server uses or often logs, those of answers from upstream servers among them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(u8)]
        pub enum KnownField {
            $(#[doc = $name] $variant,)*
            /// Any other name.
            #[default]
            Other,
        }

        const KNOWN: &[(KnownField, &[u8])] = &[$((KnownField::$variant, $name.as_bytes()),)*];
    };
}

known_fields! {
    Accept "accept",
    AcceptCharset "accept-charset",
    AcceptEncoding "accept-encoding",
    AcceptLanguage "accept-language",
    AcceptRanges "accept-ranges",
    Authorization "authorization",
    CacheControl "cache-control",
    Connection "connection",
    ContentEncoding "content-encoding",
    ContentLength "content-length",
    ContentRange "content-range",
    ContentType "content-type",
    Cookie "cookie",
    Date "date",
    Depth "depth",
    Destination "destination",
    Dnt "dnt",
    ETag "etag",
    Expect "expect",
    Forwarded "forwarded",
    From "from",
    Host "host",
    IfMatch "if-match",
    IfModifiedSince "if-modified-since",
    IfNoneMatch "if-none-match",
    IfRange "if-range",
    IfUnmodifiedSince "if-unmodified-since",
    KeepAlive "keep-alive",
    LastModified "last-modified",
    Location "location",
    MaxForwards "max-forwards",
    Origin "origin",
    Overwrite "overwrite",
    Pragma "pragma",
    ProxyAuthorization "proxy-authorization",
    ProxyConnection "proxy-connection",
    Range "range",
    Referer "referer",
    Refresh "refresh",
    Server "server",
    SetCookie "set-cookie",
    Status "status",
    Te "te",
    Trailer "trailer",
    TransferEncoding "transfer-encoding",
    Upgrade "upgrade",
    UpgradeInsecureRequests "upgrade-insecure-requests",
    UserAgent "user-agent",
    Via "via",
    XAccelBuffering "x-accel-buffering",
    XAccelCharset "x-accel-charset",
    XAccelExpires "x-accel-expires",
    XAccelLimitRate "x-accel-limit-rate",
    XAccelRedirect "x-accel-redirect",
    XForwardedFor "x-forwarded-for",
    XForwardedHost "x-forwarded-host",
    XForwardedProto "x-forwarded-proto",
    XPad "x-pad",
    XRealIp "x-real-ip",
    XRequestId "x-request-id",
    XRequestedWith "x-requested-with",
}

/// One field line of a head, as spans of its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    pub name: Span,
    /// Without the blanks around it.
    pub value: Span,
    pub known: KnownField,
    pub kind: NameKind,
    /// The name is invalid and `ignore_invalid_headers` is on: the field has no effect, and
    /// nginx logs it as "client sent invalid header line".
    pub ignored: bool,
}

/// The spelling of a field's name, as nginx's directives distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameKind {
    /// Letters, digits and `-`.
    #[default]
    Plain,
    /// These and `_`: `underscores_in_headers`.
    Underscored,
    /// Anything else: `ignore_invalid_headers`.
    Odd,
}

const _: () = assert!(size_of::<Field>() == 20);
/// A set of known fields must fit `u64`.
const _: () = assert!(KNOWN.len() < 64);

impl KnownField {
    /// The known field of this name, whatever its case.
    pub fn parse(name: &[u8]) -> Self {
        if name.iter().all(|byte| is_token_byte(*byte)) {
            Self::parse_valid(name)
        } else {
            Self::Other
        }
    }

    /// As `parse`, for a name without control bytes; a name that is known has no others than letters, digits and `-`.
    /// One probe and one comparison.
    pub(crate) fn parse_valid(name: &[u8]) -> Self {
        let (Some(first), Some(last)) = (name.first(), name.last()) else {
            return Self::Other;
        };
        let middle = name.get(name.len() / 2).unwrap_or(first);
        let slot = BY_HASH
            .get(slot(name.len(), *first, *middle, *last))
            .copied()
            .unwrap_or(EMPTY);
        match KNOWN.get(usize::from(slot)) {
            Some((known, text)) if equal_folded(text, name) => *known,
            _ => Self::Other,
        }
    }

    /// The name in lower case; empty for `Other`.
    pub fn name(self) -> &'static [u8] {
        KNOWN.get(self as usize).map_or(b"", |(_, name)| name)
    }

    /// This field's place in a set of fields.
    pub const fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// Each has a bit.
const _: () = assert!(KNOWN.len() < 64);

/// Whether `name`, folded to lower case, is `known`. Setting bit 5 folds letters and does not change digits and `-`; it
/// turns no other byte of a token into one that a known name has. Words overlap at the end, so that there is no loop
/// over single bytes.
fn equal_folded(known: &[u8], name: &[u8]) -> bool {
    if known.len() != name.len() {
        return false;
    }
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let half = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    let fold = u64::from_le_bytes([0x20; 8]);
    let half_fold = u32::from_le_bytes([0x20; 4]);
    if let (Some(known_last), Some(name_last)) = (known.last_chunk(), name.last_chunk()) {
        let (known_words, name_words) = (known.as_chunks().0, name.as_chunks().0);
        known_words
            .iter()
            .zip(name_words)
            .all(|(k, n)| word(k) == word(n) | fold)
            && word(known_last) == word(name_last) | fold
    } else if let (Some(known_first), Some(name_first), Some(known_last), Some(name_last)) = (
        known.first_chunk(),
        name.first_chunk(),
        known.last_chunk(),
        name.last_chunk(),
    ) {
        half(known_first) == half(name_first) | half_fold
            && half(known_last) == half(name_last) | half_fold
    } else {
        known.iter().zip(name).all(|(k, n)| *k == *n | 0x20)
    }
}

/// No known field hashes here.
const EMPTY: u8 = u8::MAX;
/// Slots of the hash; a power of two, so that the index is a mask.
const SLOTS: usize = 256;
const BY_HASH: [u8; SLOTS] = by_hash();

/// The factors were found by search: with them no two known names share a slot (`by_hash` asserts it at compile time,
/// so a new name that collides needs new factors).
const fn slot(len: usize, first: u8, middle: u8, last: u8) -> usize {
    let lower = [
        (first | 0x20) as usize,
        (middle | 0x20) as usize,
        (last | 0x20) as usize,
    ];
    (len * 232 + lower[0] * 160 + lower[2] * 206 + lower[1]) % SLOTS
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "fewer than 64 names, asserted above"
)]
const fn by_hash() -> [u8; SLOTS] {
    let mut table = [EMPTY; SLOTS];
    let mut index = 0;
    while index < KNOWN.len() {
        let name = KNOWN[index].1;
        let at = slot(
            name.len(),
            name[0],
            name[name.len() / 2],
            name[name.len() - 1],
        );
        assert!(
            table[at] == EMPTY,
            "two known field names share a slot: search new factors"
        );
        table[at] = index as u8;
        index += 1;
    }
    table
}

/// RFC 9110 5.6.2: a token's bytes.
#[inline]
pub const fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[byte as usize]
}

const TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        let is_mark = matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        );
        table[byte as usize] = is_mark || byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// RFC 9110 5.5: bytes of a field value; obs-text is accepted, as in nginx.
pub const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

/// `value` without blanks (SP, HTAB) at both ends.
pub fn trim_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The elements of a comma-separated list (RFC 9110 5.6.1), without blanks, empty ones skipped.
/// A comma inside a quoted string separates nothing.
#[derive(Clone, Debug)]
pub struct ListElements<'a> {
    rest: &'a [u8],
}

impl<'a> ListElements<'a> {
    pub const fn of(value: &'a [u8]) -> Self {
        Self { rest: value }
    }
}

impl<'a> Iterator for ListElements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = element_len(self.rest);
            let (element, rest) = self.rest.split_at_checked(end)?;
            self.rest = rest.get(1..).unwrap_or(&[]);
            let element = trim_blanks(element);
            if !element.is_empty() {
                return Some(element);
            }
        }
        None
    }
}

/// Bytes up to the first comma outside quotes. An unterminated quote reaches to the end.
fn element_len(list: &[u8]) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (index, byte) in list.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return index,
            _ => {}
        }
    }
    list.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_known_name_is_found_in_any_case() {
        for (known, name) in KNOWN {
            assert_eq!(KnownField::parse(name), *known);
            assert_eq!(KnownField::parse(&name.to_ascii_uppercase()), *known);
            assert_eq!(known.name(), *name);
        }
    }

    #[test]
    fn names_that_are_nearly_known_are_other() {
        for name in [
            "",
            "h",
            "hosts",
            "hos",
            "h0st",
            "content_length",
            "content-lengti",
            "hoSt ",
        ] {
            assert_eq!(
                KnownField::parse(name.as_bytes()),
                KnownField::Other,
                "{name}"
            );
        }
    }

    #[test]
    fn lists_skip_empty_elements_and_keep_quoted_commas() {
        let check = |list: &str, expected: &[&str]| {
            let found: Vec<&[u8]> = ListElements::of(list.as_bytes()).collect();
            let expected: Vec<&[u8]> = expected.iter().map(|text| text.as_bytes()).collect();
            assert_eq!(found, expected, "{list}");
        };
        check("", &[]);
        check(" , ,\t", &[]);
        check("a", &["a"]);
        check("a,b , c", &["a", "b", "c"]);
        check(",a,,b,", &["a", "b"]);
        check("\"a,b\", c", &["\"a,b\"", "c"]);
        check("\"a\\\",b\",c", &["\"a\\\",b\"", "c"]);
        check("\"a,b", &["\"a,b"]);
    }

    #[test]
    fn token_and_value_bytes_are_those_of_the_grammar() {
        assert!((0..=255).filter(|byte| is_token_byte(*byte)).count() == 77);
        assert!((0..=255).filter(|byte| is_value_byte(*byte)).count() == 224);
        assert!(!is_token_byte(b':') && !is_token_byte(b' ') && !is_token_byte(0x80));
    }
}
