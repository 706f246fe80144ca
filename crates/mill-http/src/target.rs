//! The request path as a server compares it: decoded, without dot segments.

use alloc::vec::Vec;

use crate::head::Target;

/// A path that gets 400: a bad escape, `%00`, or `..` above the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPath;

/// The normal form of a parsed target's path: `$uri`. Most paths are normal already and cost nothing; others are
/// written to `out`, which is emptied first.
pub fn normalize<'a>(
    target: &Target,
    bytes: &'a [u8],
    merge_slashes: bool,
    out: &'a mut Vec<u8>,
) -> Result<&'a [u8], InvalidPath> {
    let path = target.path.of(bytes);
    if !target.complex && !target.quoted {
        return Ok(path);
    }
    normalize_path(path, merge_slashes, out)?;
    Ok(out)
}

/// Writes the normal form of `path` (which begins with a slash and has neither query nor fragment) to `out`. In this
/// order, as nginx: escapes are decoded once; then `//` becomes `/` if `merge_slashes`, `/./` is removed, and `/../`
/// with the segment before it. So `%2e%2e%2f` is like `../`. Never longer than `path`.
pub fn normalize_path(
    path: &[u8],
    merge_slashes: bool,
    out: &mut Vec<u8>,
) -> Result<(), InvalidPath> {
    out.clear();
    out.reserve(path.len());
    let mut segment = Segment::Text;
    let mut rest = path;
    while let [first, after @ ..] = rest {
        let (byte, is_text);
        (byte, is_text, rest) = match first {
            b'%' => {
                let (byte, after) = decode(after)?;
                // Unescaped these three would have another meaning.
                (byte, matches!(byte, b'%' | b'#' | b'?'), after)
            }
            byte => (*byte, false, after),
        };
        segment = match (segment, byte) {
            (_, byte) if is_text => text(byte, out),
            (Segment::Slash, b'/') => {
                if !merge_slashes {
                    out.push(b'/');
                }
                Segment::Slash
            }
            (Segment::Dot, b'/') => {
                out.pop();
                Segment::Slash
            }
            (Segment::DotDot, b'/') => {
                climb(out)?;
                Segment::Slash
            }
            (Segment::Text, b'/') => {
                out.push(b'/');
                Segment::Slash
            }
            (Segment::Slash, b'.') => {
                out.push(b'.');
                Segment::Dot
            }
            (Segment::Dot, b'.') => {
                out.push(b'.');
                Segment::DotDot
            }
            (_, byte) => text(byte, out),
        };
    }
    match segment {
        Segment::Dot => drop(out.pop()),
        Segment::DotDot => climb(out)?,
        Segment::Text | Segment::Slash => {}
    }
    Ok(())
}

/// The content of the current segment so far.
#[derive(Clone, Copy)]
enum Segment {
    /// Something other than one or two dots.
    Text,
    /// Nothing.
    Slash,
    Dot,
    DotDot,
}

fn text(byte: u8, out: &mut Vec<u8>) -> Segment {
    out.push(byte);
    Segment::Text
}

/// Removes `/..` and the segment before it; what remains ends in a slash.
fn climb(out: &mut Vec<u8>) -> Result<(), InvalidPath> {
    let parent = out.len().saturating_sub(3);
    let above = out.get(..parent).unwrap_or(&[]);
    let slash = above
        .iter()
        .rposition(|byte| *byte == b'/')
        .ok_or(InvalidPath)?;
    out.truncate(slash + 1);
    Ok(())
}

/// The byte of the two hexadecimal digits after a `%`.
fn decode(after_percent: &[u8]) -> Result<(u8, &[u8]), InvalidPath> {
    let [high, low, rest @ ..] = after_percent else {
        return Err(InvalidPath);
    };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(InvalidPath),
    };
    match digit(*high)? << 4 | digit(*low)? {
        0 => Err(InvalidPath),
        byte => Ok((byte, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn paths_are_normalised_as_in_nginx() {
        let check = |path: &str, merged: Option<&str>, unmerged: Option<&str>| {
            for (merge, expected) in [(true, merged), (false, unmerged)] {
                let mut out = Vec::new();
                let found = normalize_path(path.as_bytes(), merge, &mut out).map(|()| out);
                let expected = expected
                    .map(|path| path.as_bytes().to_vec())
                    .ok_or(InvalidPath);
                assert_eq!(found, expected, "{path} {merge}");
            }
        };
        let both = |path: &str, expected: &str| check(path, Some(expected), Some(expected));
        both("/", "/");
        both("/a/b", "/a/b");
        both("/.", "/");
        both("/./a/.", "/a/");
        both("/a/..", "/");
        both("/a/../", "/");
        both("/a/b/../c", "/a/c");
        both("/a/b/../../c", "/c");
        both("/...", "/...");
        both("/..a/.b", "/..a/.b");
        both("/a./b..", "/a./b..");
        both("/%41%2fb", "/A/b");
        both("/a%2f%2e%2E%2fb", "/b");
        both("/%2e%2e%3f", "/..?");
        both("/a%25%2341%3F", "/a%#41?");
        both("/a%2520", "/a%20");
        both("/a+b", "/a+b");
        both("/%c3%a4%0a", "/\u{e4}\n");
        check("//", Some("/"), Some("//"));
        check("//a///b//", Some("/a/b/"), Some("//a///b//"));
        check("/a//../b", Some("/b"), Some("/a/b"));
        check("/a/%2f/b", Some("/a/b"), Some("/a///b"));
        for path in [
            "/..",
            "/../",
            "/../a",
            "/a/../..",
            "/a/../../b",
            "/%2e%2e/",
            "/%00",
            "/a%00b",
            "/%",
            "/%4",
            "/%4g",
            "/%g4",
            "/a/%",
        ] {
            check(path, None, None);
        }
    }

    #[test]
    fn a_normal_path_is_borrowed() {
        let bytes = b"/a/b";
        let target = Target {
            path: Span::between(0, 4),
            ..Target::default()
        };
        let mut out = Vec::new();
        let path = normalize(&target, bytes, true, &mut out).unwrap();
        assert!(core::ptr::eq(path, &bytes[..]));
        let quoted = Target {
            quoted: true,
            path: Span::between(0, 6),
            ..target
        };
        assert_eq!(
            normalize(&quoted, b"/%41/b", true, &mut out),
            Ok(&b"/A/b"[..])
        );
    }
}
