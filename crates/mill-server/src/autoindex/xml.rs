//! A listing as XML, octet for octet as nginx makes it.

use super::Entry;
use mill_http::date::DateTime;
use mill_http::escape::escape_html;
use mill_runtime::files::FileKind;

pub(super) fn emit(entries: &[Entry]) -> Vec<u8> {
    let mut out = b"<?xml version=\"1.0\"?>\r\n<list>\r\n".to_vec();
    for entry in entries {
        emit_entry(entry, &mut out);
    }
    out.extend_from_slice(b"</list>\r\n");
    out
}

fn emit_entry(entry: &Entry, out: &mut Vec<u8>) {
    let element = match entry.kind {
        FileKind::Directory => "directory",
        FileKind::Regular => "file",
        FileKind::Other => "other",
    };
    let DateTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
        ..
    } = DateTime::at(entry.modified, 0);
    let size = match entry.kind {
        FileKind::Regular => format!(" size=\"{}\"", entry.len),
        FileKind::Directory | FileKind::Other => String::new(),
    };
    let start = format!(
        "<{element} mtime=\"{year:4}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\"{size}>"
    );
    out.extend_from_slice(start.as_bytes());
    escape_html(&entry.name, out);
    out.extend_from_slice(format!("</{element}>\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms are copied from nginx 1.22.1's answer.
    #[test]
    fn the_list_is_nginxs() {
        let entry = |name: &str, kind, len| Entry {
            name: name.as_bytes().to_vec(),
            kind,
            len,
            modified: 1_770_091_506,
        };
        let entries = [
            entry("a&b dir", FileKind::Directory, 4096),
            entry("amp&<x>\".txt", FileKind::Regular, 1774),
            entry("dangling", FileKind::Other, 7),
        ];
        let expected = "<?xml version=\"1.0\"?>\r\n<list>\r\n\
            <directory mtime=\"2026-02-03T04:05:06Z\">a&amp;b dir</directory>\r\n\
            <file mtime=\"2026-02-03T04:05:06Z\" size=\"1774\">amp&amp;&lt;x&gt;&quot;.txt</file>\r\n\
            <other mtime=\"2026-02-03T04:05:06Z\">dangling</other>\r\n\
            </list>\r\n";
        assert_eq!(String::from_utf8(emit(&entries)).unwrap(), expected);
    }
}
