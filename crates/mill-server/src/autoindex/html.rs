//! The page of a listing, octet for octet as nginx makes it, since programs parse it.

use super::Entry;
use mill_http::date::DateTime;
use mill_http::escape::{EscapeSet, escape_html, escape_uri};
use mill_runtime::files::FileKind;

/// How dates and sizes are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// East of UTC.
    pub(super) utc_offset_minutes: i32,
    /// Bytes, rather than rounded K, M, G.
    pub(super) exact_size: bool,
    /// The page is in UTF-8: columns are counted in characters.
    pub(super) utf8: bool,
}

pub(super) fn emit(uri: &[u8], entries: &[Entry], style: Style) -> Vec<u8> {
    let mut out = b"<html>\r\n<head><title>Index of ".to_vec();
    escape_html(uri, &mut out);
    out.extend_from_slice(b"</title></head>\r\n<body>\r\n<h1>Index of ");
    escape_html(uri, &mut out);
    out.extend_from_slice(b"</h1><hr><pre><a href=\"../\">../</a>\r\n");
    for entry in entries {
        emit_entry(entry, style, &mut out);
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
    out
}

fn emit_entry(entry: &Entry, style: Style, out: &mut Vec<u8>) {
    let is_directory = entry.kind == FileKind::Directory;
    out.extend_from_slice(b"<a href=\"");
    escape_uri(EscapeSet::Component, &entry.name, out);
    if is_directory {
        out.push(b'/');
    }
    out.extend_from_slice(b"\">");
    emit_name(&entry.name, is_directory, style.utf8, out);
    out.push(b' ');
    emit_date(entry.modified, style.utc_offset_minutes, out);
    out.push(b' ');
    emit_size(entry, style.exact_size, out);
    out.extend_from_slice(b"\r\n");
}

/// The name in a column of 50 characters; a longer one is cut. The slash of a directory is left out where it has no
/// room. Columns of names that are not UTF-8, or not declared as such, are counted in bytes.
fn emit_name(name: &[u8], is_directory: bool, utf8: bool, out: &mut Vec<u8>) {
    let text = str::from_utf8(name).ok().filter(|_| utf8);
    let mut len = text.map_or(name.len(), |text| text.chars().count());
    if len > COLUMN_LEN {
        let shown = COLUMN_LEN - 3;
        let end = text.and_then(|text| text.char_indices().nth(shown));
        let end = end.map_or(shown, |(at, _)| at);
        escape_html(name.get(..end).unwrap_or(name), out);
        out.extend_from_slice(b"..&gt;</a>");
        return;
    }
    escape_html(name, out);
    if is_directory && len < COLUMN_LEN {
        out.push(b'/');
        len += 1;
    }
    out.extend_from_slice(b"</a>");
    out.resize(out.len() + (COLUMN_LEN - len), b' ');
}

/// Characters of a name that are shown.
const COLUMN_LEN: usize = 50;

fn emit_date(modified: i64, utc_offset_minutes: i32, out: &mut Vec<u8>) {
    let date_time = DateTime::at(modified, utc_offset_minutes);
    let month = MONTHS.get(usize::from(date_time.month).wrapping_sub(1));
    let text = format!(
        "{:02}-{}-{} {:02}:{:02}",
        date_time.day,
        month.copied().unwrap_or_default(),
        date_time.year,
        date_time.hour,
        date_time.minute
    );
    out.extend_from_slice(text.as_bytes());
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

fn emit_size(entry: &Entry, exact: bool, out: &mut Vec<u8>) {
    let is_directory = entry.kind == FileKind::Directory;
    let text = match (is_directory, exact) {
        (true, true) => format!("{:>19}", "-"),
        (true, false) => format!("{:>7}", "-"),
        (false, true) => format!("{:>19}", entry.len),
        (false, false) => match rounded(entry.len) {
            (size, Some(unit)) => format!("{size:>6}{unit}"),
            (size, None) => format!(" {size:>6}"),
        },
    };
    out.extend_from_slice(text.as_bytes());
}

/// A size in the largest unit that fits, rounded half up. Up to 9999 bytes it is exact.
fn rounded(len: u64) -> (u64, Option<char>) {
    let (unit_len, unit) = match len {
        GIB.. => (GIB, 'G'),
        MIB.. => (MIB, 'M'),
        10_000.. => (KIB, 'K'),
        _ => return (len, None),
    };
    let half = u64::from(len % unit_len >= unit_len / 2);
    (len / unit_len + half, Some(unit))
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Style = Style {
        utc_offset_minutes: 0,
        exact_size: true,
        utf8: false,
    };

    fn entry(name: &str, kind: FileKind, len: u64) -> Entry {
        Entry {
            name: name.as_bytes().to_vec(),
            kind,
            len,
            modified: 1_770_091_506,
        }
    }

    fn line(entry: &Entry, style: Style) -> String {
        let mut out = Vec::new();
        emit_entry(entry, style, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Copied from nginx 1.22.1's answer.
    #[test]
    fn the_page_is_nginxs() {
        let entries = [
            entry("a&b dir", FileKind::Directory, 4096),
            entry("?q#h%25", FileKind::Regular, 83),
            entry("amp&<x>\".txt", FileKind::Regular, 1774),
        ];
        let page = emit(b"/list/&/", &entries, EXACT);
        let expected = "<html>\r\n<head><title>Index of /list/&amp;/</title></head>\r\n\
            <body>\r\n<h1>Index of /list/&amp;/</h1><hr><pre><a href=\"../\">../</a>\r\n\
            <a href=\"a%26b%20dir/\">a&amp;b dir/</a>                                           03-Feb-2026 04:05                   -\r\n\
            <a href=\"%3Fq%23h%2525\">?q#h%25</a>                                            03-Feb-2026 04:05                  83\r\n\
            <a href=\"amp%26%3Cx%3E%22.txt\">amp&amp;&lt;x&gt;&quot;.txt</a>                                       03-Feb-2026 04:05                1774\r\n\
            </pre><hr></body>\r\n</html>\r\n";
        assert_eq!(String::from_utf8(page).unwrap(), expected);
    }

    #[test]
    fn names_fill_a_column_of_fifty_bytes() {
        let check = |len: usize, kind, shown: &str| {
            let name = "n".repeat(len);
            let line = line(&entry(&name, kind, 7), EXACT);
            let slash = if kind == FileKind::Directory { "/" } else { "" };
            let size = if kind == FileKind::Directory {
                "-"
            } else {
                "7"
            };
            let expected =
                format!("<a href=\"{name}{slash}\">{shown} 03-Feb-2026 04:05 {size:>19}\r\n");
            assert_eq!(line, expected);
        };
        let (file, directory) = (FileKind::Regular, FileKind::Directory);
        check(49, file, &format!("{}</a> ", "n".repeat(49)));
        check(50, file, &format!("{}</a>", "n".repeat(50)));
        check(51, file, &format!("{}..&gt;</a>", "n".repeat(47)));
        check(49, directory, &format!("{}/</a>", "n".repeat(49)));
        check(50, directory, &format!("{}</a>", "n".repeat(50)));
        check(51, directory, &format!("{}..&gt;</a>", "n".repeat(47)));
    }

    #[test]
    fn characters_fill_the_column_of_a_page_in_utf_8() {
        let style = Style {
            utf8: true,
            ..EXACT
        };
        let check = |name: String, kind: FileKind, expected: &str| {
            let line = line(&entry(&name, kind, 0), style);
            let (_, shown) = line.split_once("\">").unwrap();
            let (shown, _) = shown.split_once("03-Feb").unwrap();
            assert_eq!(shown, expected);
        };
        let (file, directory) = (FileKind::Regular, FileKind::Directory);
        let ue = |count| "ü".repeat(count);
        check(ue(1), file, &format!("ü</a>{:>50}", ' '));
        check(ue(48), file, &format!("{}</a>   ", ue(48)));
        check(ue(49), directory, &format!("{}/</a> ", ue(49)));
        check(ue(50), directory, &format!("{}</a> ", ue(50)));
        check(ue(51), file, &format!("{}..&gt;</a> ", ue(47)));
        check(
            format!("<{}>", "日".repeat(49)),
            file,
            &format!("&lt;{}..&gt;</a> ", "日".repeat(46)),
        );
    }

    #[test]
    fn a_name_that_is_not_utf_8_counts_in_bytes() {
        let emitted = |utf8| {
            let mut out = Vec::new();
            emit_name(b"\xc3\xbc\xff", false, utf8, &mut out);
            out
        };
        assert_eq!(emitted(true), emitted(false));
        assert_eq!(emitted(true).len(), 50 + "</a>".len());
    }

    #[test]
    fn sizes_are_exact_or_rounded() {
        let rounded = Style {
            exact_size: false,
            ..EXACT
        };
        let check = |len: u64, expected: &str| {
            let line = line(&entry("f", FileKind::Regular, len), rounded);
            assert!(line.ends_with(&format!("04:05 {expected}\r\n")), "{line:?}");
        };
        check(0, "      0");
        check(9_999, "   9999");
        check(10_000, "    10K");
        check(10_751, "    10K");
        check(10_752, "    11K");
        check((1 << 20) - 1, "  1024K");
        check(1_572_863, "     1M");
        check(1_572_864, "     2M");
        check((1 << 30) - 1, "  1024M");
        check(1_610_612_735, "     1G");
        check(1_610_612_736, "     2G");
        let directory = line(&entry("d", FileKind::Directory, 4096), rounded);
        assert!(directory.ends_with("04:05       -\r\n"), "{directory:?}");
        let exact = line(&entry("f", FileKind::Regular, 1_610_612_736), EXACT);
        assert!(
            exact.ends_with("04:05          1610612736\r\n"),
            "{exact:?}"
        );
    }

    #[test]
    fn dates_are_shifted_to_local_time() {
        let style = Style {
            utc_offset_minutes: -300,
            ..EXACT
        };
        let line = line(&entry("f", FileKind::Other, 0), style);
        assert!(line.contains(" 02-Feb-2026 23:05 "), "{line:?}");
    }
}
