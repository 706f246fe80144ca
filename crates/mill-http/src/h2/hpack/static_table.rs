//! The static table: RFC 7541 appendix A.

/// The field of an index from 1 to 61.
pub(super) fn field(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    FIELDS.get(index.checked_sub(1)?).copied()
}

/// The first index of this name, and whether that field or one behind it has this value too: then that one's index.
pub(super) fn find(name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
    let mut fields = (1..).zip(FIELDS).skip_while(|(_, field)| field.0 != name);
    let (first, field) = fields.next()?;
    if field.1 == value {
        return Some((first, true));
    }
    let mut others = fields.take_while(|(_, field)| field.0 == name);
    let same = others.find(|(_, field)| field.1 == value);
    Some(same.map_or((first, false), |(index, _)| (index, true)))
}

/// How many there are.
pub(super) const LEN: usize = FIELDS.len();

const FIELDS: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];
