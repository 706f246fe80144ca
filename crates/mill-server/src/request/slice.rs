//! `slice` and `$slice_range`: the piece of an answer that a request is for.

use super::Request;
use mill_http::field::KnownField;
use mill_http::method::Method;
use mill_http::range::ByteRange;

/// A piece of `size` bytes, or the last one of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Its first byte within the whole, a multiple of `size`.
    pub(crate) start: u64,
    /// Bytes; `slice`, at least 1.
    pub(crate) size: u64,
}

impl Slice {
    /// The first piece that the request needs; `None` where its location has no slices, an answer has begun, or what is
    /// asked for has no content that could be cut.
    pub(crate) fn first_of(request: &Request) -> Option<Self> {
        let size = request.location.slice.size;
        let is_asked = matches!(request.method, Method::Get | Method::Head);
        (size > 0 && is_asked && request.sent.status == 0).then(|| Self {
            start: first_byte(request) / size * size,
            size,
        })
    }

    /// The piece that has this byte.
    pub(crate) const fn with_byte(self, byte: u64) -> Self {
        Self {
            start: byte / self.size * self.size,
            ..self
        }
    }

    /// The bytes that it has of a whole of this length.
    pub(crate) fn range(self, complete_length: u64) -> ByteRange {
        ByteRange {
            start: self.start,
            end: self.start.saturating_add(self.size).min(complete_length),
        }
    }

    /// As the value of `Range`: `bytes=0-1048575`.
    pub(crate) fn text(self) -> Vec<u8> {
        let last = self.start.saturating_add(self.size - 1);
        format!("bytes={}-{last}", self.start).into_bytes()
    }
}

/// The first byte that is asked for, as nginx finds it: 0 for several ranges, the last bytes, and where `If-Range` decides.
fn first_byte(request: &Request) -> u64 {
    let message = &request.message;
    if message.head.has(KnownField::IfRange) {
        return 0;
    }
    let range = message.head.value(KnownField::Range);
    range.map_or(0, |range| first_byte_of(range.of(&message.bytes)))
}

fn first_byte_of(range: &[u8]) -> u64 {
    let Some((unit, list)) = range.split_at_checked(6) else {
        return 0;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") || list.contains(&b',') {
        return 0;
    }
    let digits = list.trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit());
    let digits = digits.get(..end.unwrap_or(digits.len()));
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<i64>().ok());
    number.unwrap_or(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_that_of_a_single_range() {
        let check = |range: &str, expected| {
            assert_eq!(first_byte_of(range.as_bytes()), expected, "{range}");
        };
        check("bytes=0-5", 0);
        check("bytes=17-20", 17);
        check("BYTES= 17-", 17);
        check("bytes=-17", 0);
        check("bytes=17-20,30-40", 0);
        check("items=17-20", 0);
        check("bytes=", 0);
        check("bytes=9223372036854775807-", i64::MAX.unsigned_abs());
        check("bytes=9223372036854775808-", 0);
        check("17", 0);
    }

    #[test]
    fn a_slice_ends_where_the_whole_does() {
        let slice = Slice { start: 0, size: 10 };
        let range = |start, end| ByteRange { start, end };
        assert_eq!(slice.range(100), range(0, 10));
        assert_eq!(slice.range(5), range(0, 5));
        assert_eq!(slice.with_byte(10).range(15), range(10, 15));
        assert_eq!(slice.with_byte(19), slice.with_byte(10));
        assert_eq!(slice.with_byte(29).text(), b"bytes=20-29");
        let last = Slice {
            start: u64::MAX,
            size: 10,
        };
        assert_eq!(last.range(u64::MAX), range(u64::MAX, u64::MAX));
    }
}
