//! What the known fields of a request mean for the message: its host, its length, and the connection after it. The same
//! in every version of HTTP that has fields.

use crate::authority::parse_authority;
use crate::field::{KnownField, ListElements, trim_blanks};
use crate::head::{ConnectionOption, RequestHead};
use crate::limits::CONTENT_LENGTH_MAX;
use crate::refusal::Refusal;
use crate::span::Span;
use crate::version::Version;

/// Fields that nginx refuses when they occur twice. (`Host` as well, with another log text.)
const UNIQUE: u64 = KnownField::IfModifiedSince.bit()
    | KnownField::IfUnmodifiedSince.bit()
    | KnownField::IfMatch.bit()
    | KnownField::IfNoneMatch.bit()
    | KnownField::IfRange.bit()
    | KnownField::ContentLength.bit()
    | KnownField::ContentRange.bit()
    | KnownField::TransferEncoding.bit()
    | KnownField::Expect.bit()
    | KnownField::Authorization.bit();

/// Applies a known field to the head.
#[inline]
pub(crate) fn apply(
    bytes: &[u8],
    known: KnownField,
    value: Span,
    head: &mut RequestHead,
) -> Result<(), Refusal> {
    let occurs_again = head.present & known.bit() != 0;
    if occurs_again && UNIQUE & known.bit() != 0 {
        return Err(Refusal::DuplicateField);
    }
    head.present |= known.bit();
    match known {
        KnownField::Host => {
            if occurs_again {
                return Err(Refusal::DuplicateHost);
            }
            let host = parse_authority(value.of(bytes)).ok_or(Refusal::InvalidHost)?;
            // RFC 9112 3.2.2: the authority of the target comes before the Host field.
            if head.host.is_empty() {
                let start = value.start as usize;
                head.host = Span::between(start, start + host.host_len);
                head.host_has_uppercase = host.has_uppercase;
                head.fields_before_server = u16::try_from(head.fields.len()).unwrap_or(u16::MAX);
            }
        }
        KnownField::Connection => apply_connection(value.of(bytes), head),
        KnownField::Expect => {
            head.expect_continue = value.of(bytes).eq_ignore_ascii_case(b"100-continue");
        }
        KnownField::ContentLength => {
            // An invalid one is refused when the head is complete: then the server is known.
            head.content_length = parse_content_length(value.of(bytes));
        }
        KnownField::TransferEncoding => {
            head.chunked = value.of(bytes).eq_ignore_ascii_case(b"chunked");
        }
        _ => {}
    }
    Ok(())
}

fn apply_connection(value: &[u8], head: &mut RequestHead) {
    if head.connection == ConnectionOption::Unstated && value.eq_ignore_ascii_case(b"keep-alive") {
        head.connection = ConnectionOption::KeepAlive;
        return;
    }
    for option in ListElements::of(value) {
        head.connection.add(option);
    }
}

/// RFC 9110 8.6: digits only; no sign, no blank, no list, not beyond a file offset.
pub(crate) fn parse_content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || trim_blanks(value).len() != value.len() {
        return None;
    }
    let mut length = 0_u64;
    for &byte in value {
        if !byte.is_ascii_digit() {
            return None;
        }
        length = length
            .checked_mul(10)?
            .checked_add(u64::from(byte - b'0'))?;
    }
    (length <= CONTENT_LENGTH_MAX).then_some(length)
}

/// Checks that need all fields. RFC 9112 3.2 (Host) and 6.3 (length).
pub(crate) fn conclude(bytes: &[u8], head: &mut RequestHead) -> Result<(), Refusal> {
    if head.version != Version::Http10 && !head.has(KnownField::Host) {
        return Err(Refusal::MissingHost);
    }
    if head.has(KnownField::ContentLength) && head.content_length.is_none() {
        return Err(Refusal::InvalidContentLength);
    }
    head.expect_continue &= head.version != Version::Http10;
    if !head.has(KnownField::TransferEncoding) {
        return Ok(());
    }
    head.refused = head.value(KnownField::TransferEncoding).unwrap_or_default();
    if head.version == Version::Http10 {
        return Err(Refusal::TransferEncodingInHttp10);
    }
    if !head.chunked {
        return Err(refuse_codings(head.refused.of(bytes)));
    }
    if head.content_length.is_some() {
        return Err(Refusal::ContentLengthAndTransferEncoding);
    }
    head.refused = Span::EMPTY;
    Ok(())
}

/// Codings other than `chunked` alone. RFC 9112 6.3: none may follow `chunked`, since the end of such content is
/// undefined; 6.1: `chunked` occurs once.
fn refuse_codings(value: &[u8]) -> Refusal {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let mut codings = ListElements::of(value);
    match (codings.find(|coding| is_chunked(coding)), codings.next()) {
        (Some(_), Some(_)) => Refusal::ChunkedIsNotLast,
        _ => Refusal::UnknownTransferEncoding,
    }
}

/// Whether an invalid name may be taken for one of the fields that define the length or the host of a message: it has
/// the same letters, and other bytes before, between or after them.
pub(crate) fn looks_like_framing(name: &[u8]) -> bool {
    let is = |field: &[u8]| {
        let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
        letters
            .map(u8::to_ascii_lowercase)
            .eq(field.iter().copied())
    };
    is(b"contentlength") || is(b"transferencoding") || is(b"host")
}
