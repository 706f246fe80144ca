//! memcached's text protocol, as far as a lookup needs it: `get`, and its answer.
//!
//! The answer is `VALUE key flags length`, the content, an empty line and `END`; or `END` alone if there is no such key.
//! Anything else, errors of memcached too, is a fault. (memcached, doc/protocol.txt.)
//!
//! Order of calls: `emit_get`; `parse_head` with all bytes since the beginning, again whenever more have arrived, until
//! it returns a head; then `Value::on_bytes` with the bytes after it.

use mill_http::h1::response::BodyStep;
use std::fmt;

/// The answer's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemcachedHead {
    /// `None` if there is no such key. Then nothing follows, and the connection may be kept.
    pub value: Option<ValueHead>,
    /// Bytes up to and with the line's end.
    pub len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueHead {
    /// What the program that stored the value says of it: `memcached_gzip_flag` gives one bit a meaning.
    pub flags: u64,
    /// Bytes of the content.
    pub length: u64,
}

/// Appends the request for `key`, which is escaped as nginx does: blanks, control bytes and `%`. Returns where the
/// escaped key is in `out`; the answer repeats it.
pub fn emit_get(key: &[u8], out: &mut Vec<u8>) -> std::ops::Range<usize> {
    out.extend_from_slice(b"get ");
    let start = out.len();
    for &byte in key {
        if byte <= b' ' || byte == b'%' {
            let digit = |value: u8| b"0123456789ABCDEF".get(usize::from(value)).copied();
            let digits = [digit(byte >> 4), digit(byte & 15)];
            out.push(b'%');
            out.extend(digits.into_iter().flatten());
        } else {
            out.push(byte);
        }
    }
    let end = out.len();
    out.extend_from_slice(b"\r\n");
    start..end
}

/// Parses the first line of the answer for the escaped `key`; `None` when it is incomplete. `bytes_max` limits it:
/// `memcached_buffer_size`.
pub fn parse_head(
    bytes: &[u8],
    key: &[u8],
    bytes_max: u32,
) -> Result<Option<MemcachedHead>, MemcachedFault> {
    let bytes_max = bytes_max as usize;
    let seen = bytes.get(..bytes_max).unwrap_or(bytes);
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        let is_too_long = bytes.len() > bytes_max;
        return if is_too_long {
            Err(MemcachedFault::HeadTooLong)
        } else {
            Ok(None)
        };
    };
    let line = seen.get(..end).unwrap_or(seen);
    let line = line.strip_suffix(b"\r").ok_or(MemcachedFault::Response)?;
    let value = match line {
        b"END" => None,
        _ => Some(parse_value(line, key)?),
    };
    Ok(Some(MemcachedHead {
        value,
        len: end + 1,
    }))
}

fn parse_value(line: &[u8], key: &[u8]) -> Result<ValueHead, MemcachedFault> {
    let rest = line.strip_prefix(b"VALUE ");
    let rest = rest.ok_or(MemcachedFault::Response)?;
    let rest = rest.strip_prefix(key).ok_or(MemcachedFault::Key)?;
    let rest = rest.strip_prefix(b" ").ok_or(MemcachedFault::Response)?;
    let blank = rest.iter().position(|byte| *byte == b' ');
    let (flags, length) = rest.split_at(blank.ok_or(MemcachedFault::Response)?);
    Ok(ValueHead {
        flags: number(flags).ok_or(MemcachedFault::Flags)?,
        length: number(length.get(1..).unwrap_or_default()).ok_or(MemcachedFault::Length)?,
    })
}

/// Digits alone, below 2^63.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let number = text.iter().try_fold(0_u64, |sum, byte| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })?;
    i64::try_from(number).is_ok().then_some(number)
}

/// The content of a value, and the trailer behind it.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Bytes of content to come.
    remaining: u64,
    /// Bytes of the trailer that were seen.
    trailer_len: usize,
    is_complete: bool,
}

/// What follows the content.
const TRAILER: &[u8] = b"\r\nEND\r\n";

impl Value {
    pub const fn new(head: &ValueHead) -> Self {
        Self {
            remaining: head.length,
            trailer_len: 0,
            is_complete: false,
        }
    }

    /// Takes bytes, each once, and passes the content on. It is complete after the trailer, or at a byte that is none of
    /// the trailer's: the content is whole then, too.
    pub fn on_bytes(&mut self, bytes: &[u8], mut on_content: impl FnMut(&[u8])) -> BodyStep {
        let len = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let (content, rest) = bytes.split_at(len.min(bytes.len()));
        self.remaining -= content.len() as u64;
        if !content.is_empty() {
            on_content(content);
        }
        let mut consumed = content.len();
        if self.remaining == 0 && !self.is_complete {
            let expected = TRAILER.get(self.trailer_len..).unwrap_or_default();
            let same = rest.iter().zip(expected).take_while(|(a, b)| a == b);
            let same = same.count();
            consumed += same;
            self.trailer_len += same;
            self.is_complete = same < rest.len() || self.has_trailer();
        }
        BodyStep {
            consumed,
            content: content.len(),
            complete: self.is_complete,
        }
    }

    /// The content is whole, and whatever follows it was seen.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The trailer is the right one: the connection may be kept. Otherwise nginx logs "memcached sent invalid trailer".
    pub const fn has_trailer(&self) -> bool {
        self.trailer_len == TRAILER.len()
    }

    /// Whether the content is whole without what should follow it, at the end of the stream.
    pub const fn has_content(&self) -> bool {
        self.remaining == 0
    }
}

/// Why an answer can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedFault {
    /// Of another key.
    Key,
    Flags,
    Length,
    /// Neither a value nor `END`: an error of memcached, or another protocol.
    Response,
    /// The line is longer than `memcached_buffer_size`.
    HeadTooLong,
}

/// A fault with what nginx tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    fault: MemcachedFault,
    line: &'a [u8],
    key: &'a [u8],
}

impl MemcachedFault {
    /// `answer` is the answer's beginning, of which the first line is told; `key` is the escaped one.
    pub fn describe<'a>(self, answer: &'a [u8], key: &'a [u8]) -> Described<'a> {
        let end = answer.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let line = answer.get(..end.unwrap_or(answer.len())).unwrap_or(answer);
        Described {
            fault: self,
            line,
            key,
        }
    }
}

impl fmt::Display for Described<'_> {
    /// nginx's words.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, key) = (self.line.escape_ascii(), self.key.escape_ascii());
        let what = match self.fault {
            MemcachedFault::Key => "key",
            MemcachedFault::Flags => "flags",
            MemcachedFault::Length => "length",
            MemcachedFault::Response => {
                return write!(out, "memcached sent invalid response: \"{line}\"");
            }
            MemcachedFault::HeadTooLong => return out.write_str("upstream sent too big header"),
        };
        write!(
            out,
            "memcached sent invalid {what} in response \"{line}\" for key \"{key}\""
        )
    }
}

#[cfg(test)]
mod tests;
