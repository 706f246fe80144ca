//! A listing as JSON, octet for octet as nginx makes it.

use super::Entry;
use mill_http::date::imf_fixdate;
use mill_http::decimal::emit_decimal;
use mill_runtime::files::FileKind;

pub(super) fn emit(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    emit_list(entries, &mut out);
    out
}

/// The list as the argument of a call. The comment before it prevents the answer from being sniffed as another type
/// than a script.
pub(super) fn emit_call(callback: &[u8], entries: &[Entry]) -> Vec<u8> {
    let mut out = b"/* callback */\r\n".to_vec();
    out.extend_from_slice(callback);
    out.push(b'(');
    emit_list(entries, &mut out);
    out.extend_from_slice(b");");
    out
}

fn emit_list(entries: &[Entry], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        emit_entry(entry, out);
    }
    out.extend_from_slice(b"\r\n]");
}

fn emit_entry(entry: &Entry, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n{ \"name\":\"");
    escape_json(&entry.name, out);
    out.extend_from_slice(match entry.kind {
        FileKind::Directory => b"\", \"type\":\"directory\", \"mtime\":\"",
        FileKind::Regular => b"\", \"type\":\"file\", \"mtime\":\"",
        FileKind::Other => b"\", \"type\":\"other\", \"mtime\":\"",
    });
    out.extend_from_slice(&imf_fixdate(entry.modified));
    out.push(b'"');
    if entry.kind == FileKind::Regular {
        out.extend_from_slice(b", \"size\":");
        emit_decimal(entry.len, out);
    }
    out.extend_from_slice(b" }");
}

/// RFC 8259 7: quotation mark, backslash and control bytes. What is not UTF-8 stays as it is.
fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> [Entry; 3] {
        let entry = |name: &str, kind, len| Entry {
            name: name.as_bytes().to_vec(),
            kind,
            len,
            modified: 1_770_091_506,
        };
        [
            entry("a&b dir", FileKind::Directory, 4096),
            entry("amp&<x>\".txt", FileKind::Regular, 1774),
            entry("dangling", FileKind::Other, 7),
        ]
    }

    /// The forms are copied from nginx 1.22.1's answers.
    #[test]
    fn the_list_is_nginxs() {
        let expected = "[\r\n\
            { \"name\":\"a&b dir\", \"type\":\"directory\", \"mtime\":\"Tue, 03 Feb 2026 04:05:06 GMT\" },\r\n\
            { \"name\":\"amp&<x>\\\".txt\", \"type\":\"file\", \"mtime\":\"Tue, 03 Feb 2026 04:05:06 GMT\", \"size\":1774 },\r\n\
            { \"name\":\"dangling\", \"type\":\"other\", \"mtime\":\"Tue, 03 Feb 2026 04:05:06 GMT\" }\r\n]";
        assert_eq!(String::from_utf8(emit(&entries())).unwrap(), expected);
        let call = String::from_utf8(emit_call(b"a.b", &entries())).unwrap();
        assert_eq!(call, format!("/* callback */\r\na.b({expected});"));
        assert_eq!(emit(&[]), b"[\r\n]");
    }

    #[test]
    fn names_are_escaped() {
        let check = |name: &str, expected: &str| {
            let mut out = Vec::new();
            escape_json(name.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check("ctl\u{1}x\u{1f}", "ctl\\u0001x\\u001F");
        check("back\\slash", "back\\\\slash");
        check("a\nb\rc\td\u{8}e\u{c}", "a\\nb\\rc\\td\\be\\f");
        check("ü\u{7f}", "ü\u{7f}");
    }
}
