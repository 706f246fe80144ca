//! The member of `Cache-Status` that this cache adds: RFC 9211.

use alloc::vec::Vec;

use super::reuse::ForwardReason;
use crate::decimal::emit_decimal;
use crate::field::is_token_byte;
use crate::status::Status;

/// The longest `key` in bytes that is told; a longer one is left out, because a part would name something else.
pub const KEY_BYTES_MAX: usize = 256;

/// What the cache did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// Answered without the origin (RFC 9211 2.1).
    Hit,
    /// Sent on (RFC 9211 2.2).
    Forwarded {
        reason: ForwardReason,
        /// The origin's status, where the client got another (RFC 9211 2.3).
        status: Option<Status>,
        /// RFC 9211 2.5
        is_stored: bool,
        /// It waited for the answer to another request (RFC 9211 2.6).
        is_collapsed: bool,
    },
    /// Neither answered nor sent on: `only-if-cached`.
    Neither,
}

/// One member of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// The cache's name.
    pub cache: &'a [u8],
    pub outcome: CacheOutcome,
    /// Seconds of freshness left, negative if stale (RFC 9211 2.4).
    pub ttl: Option<i64>,
    /// RFC 9211 2.7
    pub key: Option<&'a [u8]>,
    /// A word of the cache's own (RFC 9211 2.8).
    pub detail: Option<&'a [u8]>,
}

impl CacheStatus<'_> {
    /// Appends the member. Whatever the bytes of name, key and detail are, the field stays well-formed: texts that a
    /// string cannot have are left out, as a name `-` stands for it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        if !emit_word(self.cache, out) {
            out.extend_from_slice(b"\"-\"");
        }
        match self.outcome {
            CacheOutcome::Hit => out.extend_from_slice(b";hit"),
            CacheOutcome::Forwarded {
                reason,
                status,
                is_stored,
                is_collapsed,
            } => {
                out.extend_from_slice(b";fwd=");
                out.extend_from_slice(reason.word().as_bytes());
                if let Some(Status(code)) = status {
                    out.extend_from_slice(b";fwd-status=");
                    emit_decimal(u64::from(code), out);
                }
                if is_stored {
                    out.extend_from_slice(b";stored");
                }
                if is_collapsed {
                    out.extend_from_slice(b";collapsed");
                }
            }
            CacheOutcome::Neither => {}
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(if ttl < 0 { b";ttl=-" } else { b";ttl=" });
            emit_decimal(ttl.unsigned_abs().min(INTEGER_MAX), out);
        }
        emit_parameter(
            b";key=",
            self.key.filter(|key| key.len() <= KEY_BYTES_MAX),
            emit_string,
            out,
        );
        emit_parameter(b";detail=", self.detail, emit_word, out);
    }
}

/// RFC 9651 3.3.1
const INTEGER_MAX: u64 = 999_999_999_999_999;

fn emit_parameter(
    name: &[u8],
    value: Option<&[u8]>,
    emit: impl Fn(&[u8], &mut Vec<u8>) -> bool,
    out: &mut Vec<u8>,
) {
    let before = out.len();
    out.extend_from_slice(name);
    if !value.is_some_and(|value| emit(value, out)) {
        out.truncate(before);
    }
}

/// A token if it can be one, else a string.
fn emit_word(text: &[u8], out: &mut Vec<u8>) -> bool {
    let begins = text
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'*');
    let fits = |byte: &u8| is_token_byte(*byte) || matches!(byte, b':' | b'/');
    if begins && text.iter().all(fits) {
        out.extend_from_slice(text);
        return true;
    }
    emit_string(text, out)
}

/// False if a string cannot have these bytes (RFC 9651 3.3.3); then nothing is written.
fn emit_string(text: &[u8], out: &mut Vec<u8>) -> bool {
    if !text.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return false;
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caching::structured::parse_list;

    const HIT: CacheStatus<'_> = CacheStatus {
        cache: b"millstream",
        outcome: CacheOutcome::Hit,
        ttl: None,
        key: None,
        detail: None,
    };

    fn check(status: CacheStatus<'_>, expected: &str) {
        let mut out = Vec::new();
        status.emit(&mut out);
        assert_eq!(core::str::from_utf8(&out), Ok(expected));
        assert_eq!(
            parse_list(&out).map(|members| members.len()),
            Some(1),
            "{expected}"
        );
    }

    #[test]
    fn a_member_says_what_was_done() {
        check(HIT, "millstream;hit");
        check(
            CacheStatus {
                ttl: Some(60),
                ..HIT
            },
            "millstream;hit;ttl=60",
        );
        check(
            CacheStatus {
                ttl: Some(-5),
                ..HIT
            },
            "millstream;hit;ttl=-5",
        );
        check(
            CacheStatus {
                ttl: Some(i64::MIN),
                ..HIT
            },
            "millstream;hit;ttl=-999999999999999",
        );
        let forwarded = |reason, status, is_stored, is_collapsed| CacheStatus {
            outcome: CacheOutcome::Forwarded {
                reason,
                status,
                is_stored,
                is_collapsed,
            },
            ..HIT
        };
        check(
            forwarded(ForwardReason::UriMiss, None, true, false),
            "millstream;fwd=uri-miss;stored",
        );
        let validated = forwarded(
            ForwardReason::Stale,
            Some(Status::NOT_MODIFIED),
            false,
            true,
        );
        check(validated, "millstream;fwd=stale;fwd-status=304;collapsed");
        check(
            CacheStatus {
                outcome: CacheOutcome::Neither,
                ..HIT
            },
            "millstream",
        );
        for (reason, word) in [
            (ForwardReason::Bypass, "bypass"),
            (ForwardReason::Method, "method"),
            (ForwardReason::VaryMiss, "vary-miss"),
            (ForwardReason::Miss, "miss"),
            (ForwardReason::Request, "request"),
            (ForwardReason::Partial, "partial"),
        ] {
            check(
                forwarded(reason, None, false, false),
                &alloc::format!("millstream;fwd={word}"),
            );
        }
    }

    #[test]
    fn texts_are_tokens_or_strings_or_left_out() {
        check(
            CacheStatus {
                cache: b"edge 1",
                ..HIT
            },
            "\"edge 1\";hit",
        );
        check(
            CacheStatus {
                cache: b"1edge",
                ..HIT
            },
            "\"1edge\";hit",
        );
        check(
            CacheStatus {
                cache: b"a\r\nSet-Cookie: x",
                ..HIT
            },
            "\"-\";hit",
        );
        check(
            CacheStatus {
                key: Some(b"/a?\"b\\"),
                ..HIT
            },
            "millstream;hit;key=\"/a?\\\"b\\\\\"",
        );
        check(
            CacheStatus {
                key: Some(b"/\xc3\xa9"),
                ..HIT
            },
            "millstream;hit",
        );
        check(
            CacheStatus {
                detail: Some(b"no-store"),
                ..HIT
            },
            "millstream;hit;detail=no-store",
        );
        check(
            CacheStatus {
                detail: Some(b"two words"),
                ..HIT
            },
            "millstream;hit;detail=\"two words\"",
        );
        check(
            CacheStatus {
                detail: Some(b"a\nb"),
                ..HIT
            },
            "millstream;hit",
        );
        let longest = [b'k'; KEY_BYTES_MAX + 1];
        check(
            CacheStatus {
                key: Some(&longest),
                ..HIT
            },
            "millstream;hit",
        );
    }
}
