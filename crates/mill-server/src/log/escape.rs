//! The three ways to escape a value in an access log.

use super::error::hexadecimal;
use super::row;
use mill_config::config::LogEscape;

/// Appends a variable's value; `None` is a variable that was not found.
pub(super) fn emit_value(value: Option<&[u8]>, escape: LogEscape, line: &mut Vec<u8>) {
    match (value, escape) {
        (None, LogEscape::Default) => line.push(b'-'),
        (None, LogEscape::Json | LogEscape::None | LogEscape::Row) => {}
        (Some(value), LogEscape::None) => line.extend_from_slice(value),
        (Some(value), LogEscape::Row) => row::emit_text(value, line),
        (Some(value), LogEscape::Default) => emit_escaped(value, is_plain, emit_default, line),
        (Some(value), LogEscape::Json) => emit_escaped(value, is_plain_in_json, emit_json, line),
    }
}

/// Appends whole runs of plain bytes at once: most values have no other bytes.
fn emit_escaped(
    mut value: &[u8],
    is_plain: fn(u8) -> bool,
    emit: fn(u8, &mut Vec<u8>),
    line: &mut Vec<u8>,
) {
    while !value.is_empty() {
        let plain = value.iter().take_while(|&&byte| is_plain(byte)).count();
        let (stretch, rest) = value.split_at(plain);
        line.extend_from_slice(stretch);
        let Some((&byte, rest)) = rest.split_first() else {
            return;
        };
        emit(byte, line);
        value = rest;
    }
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

fn emit_default(byte: u8, line: &mut Vec<u8>) {
    line.extend_from_slice(b"\\x");
    line.extend_from_slice(&hexadecimal(byte));
}

/// Bytes from 128 on are parts of UTF-8 and not escaped, as in nginx.
const fn is_plain_in_json(byte: u8) -> bool {
    byte >= b' ' && !matches!(byte, b'"' | b'\\')
}

fn emit_json(byte: u8, line: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            line.extend_from_slice(b"\\u00");
            line.extend_from_slice(&hexadecimal(byte));
            return;
        }
    };
    line.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(escape: LogEscape, value: Option<&[u8]>, expected: &[u8]) {
        let mut line = Vec::new();
        emit_value(value, escape, &mut line);
        assert_eq!(
            line.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn default_escapes_quotes_controls_and_everything_above_ascii() {
        let check = |value, expected| check(LogEscape::Default, value, expected);
        check(None, b"-");
        check(Some(b""), b"");
        check(Some(b"plain text ~"), b"plain text ~");
        check(Some(b"a\"b\\c"), b"a\\x22b\\x5Cc");
        check(Some(b"\x00\x1f\x7f\x80\xff"), b"\\x00\\x1F\\x7F\\x80\\xFF");
        check(Some("é".as_bytes()), b"\\xC3\\xA9");
    }

    #[test]
    fn json_escapes_what_a_string_may_not_hold() {
        let check = |value, expected| check(LogEscape::Json, value, expected);
        check(None, b"");
        check(Some(b"a\"b\\c"), b"a\\\"b\\\\c");
        check(Some(b"\n\r\t\x08\x0c"), b"\\n\\r\\t\\b\\f");
        check(Some(b"\x00\x1f\x7f"), b"\\u0000\\u001F\x7f");
        check(Some("é".as_bytes()), "é".as_bytes());
    }

    #[test]
    fn none_escapes_nothing() {
        let check = |value, expected| check(LogEscape::None, value, expected);
        check(None, b"");
        check(Some(b"a\"\x01\xff"), b"a\"\x01\xff");
    }
}
