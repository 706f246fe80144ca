//! From Tempesta FW's patterns to keys of a `map`.

use super::lexer::Term;
use super::site::{PathTest, Pattern, Test};
use crate::resolve::Applied;

/// A value of a rule: `*` alone is anything that is there, `text*` a prefix, `*text` a suffix; `\*` is the character.
/// Where suffixes are not compared, or both ends are open, there is a warning.
pub(super) fn wildcard(raw: &[u8], suffixes: bool) -> (Pattern, Option<String>) {
    if raw == b"*" {
        return (anything(), None);
    }
    let (text, test) = ends(raw);
    let open_twice = raw.starts_with(b"*") && test == Test::Prefix;
    let shown = String::from_utf8_lossy(raw);
    match test {
        Test::Prefix => {
            let warning = format!("\"{shown}\" is open at both ends, and compared as a prefix");
            (
                path_pattern(Test::Prefix, &text),
                open_twice.then_some(warning),
            )
        }
        Test::Suffix if !suffixes => {
            let warning = format!("\"{shown}\" is compared as a whole, without its *");
            (path_pattern(Test::Equal, &text), Some(warning))
        }
        test => (path_pattern(test, &text), None),
    }
}

/// The text without its wildcards and backslashes, and which end is open.
fn ends(raw: &[u8]) -> (Vec<u8>, Test) {
    let is_prefix = match raw {
        [.., before, b'*'] => *before != b'\\',
        _ => false,
    };
    let test = match (raw.first(), is_prefix) {
        (_, true) => Test::Prefix,
        (Some(b'*'), false) => Test::Suffix,
        _ => Test::Equal,
    };
    let mut text = Vec::with_capacity(raw.len());
    let mut escaped = false;
    for (at, &byte) in raw.iter().enumerate() {
        let at_end = at == 0 || at + 1 == raw.len();
        if escaped {
            escaped = false;
        } else if byte == b'\\' {
            escaped = true;
            continue;
        } else if byte == b'*' && at_end {
            continue;
        }
        text.push(byte);
    }
    (text, test)
}

/// A cookie by its name and value, either with a wildcard; compared with regard to case, anywhere in the field.
pub(super) fn cookie(name: &Term, value: &Term) -> Applied<Pattern> {
    let part = |term: &Term, other: &str| -> Applied<Vec<u8>> {
        if term.raw == b"*" {
            return Ok(other.as_bytes().to_vec());
        }
        let (text, test) = ends(&term.raw);
        let quoted = quote(&text);
        Ok(match test {
            Test::Prefix if term.raw.starts_with(b"*") => {
                let message = format!("\"{}\" is open at both ends", term.display());
                return Err(term.error(message));
            }
            Test::Prefix => [&quoted, other.as_bytes()].concat(),
            Test::Suffix => [other.as_bytes(), &quoted].concat(),
            _ => quoted,
        })
    };
    let (name, value) = (part(name, "[^=;]*")?, part(value, "[^;]*")?);
    let pattern = [&b"~(^|; ?)"[..], &name, b"=", &value, b"(;|$)"].concat();
    Ok(Pattern::Regex(pattern))
}

/// `"/pattern/flags"`, or a pattern alone.
pub(super) fn regex(term: &Term) -> Applied<Pattern> {
    let raw = term.raw.as_slice();
    let inner = raw.strip_prefix(b"/");
    let end = inner.and_then(|inner| inner.iter().rposition(|&byte| byte == b'/'));
    let (pattern, flags) = match (inner, end) {
        (Some(inner), Some(end)) => (
            inner.get(..end).unwrap_or_default(),
            inner.get(end + 1..).unwrap_or_default(),
        ),
        _ => (raw, &[][..]),
    };
    if pattern.is_empty() {
        return Err(term.error("an empty regular expression"));
    }
    let mut key = if flags.contains(&b'i') {
        b"~*".to_vec()
    } else {
        b"~".to_vec()
    };
    let others: Vec<u8> = flags.iter().copied().filter(|&flag| flag != b'i').collect();
    if let Some(&flag) = others.iter().find(|flag| !b"msx".contains(flag)) {
        let message = format!(
            "unknown flag \"{}\" of a regular expression",
            char::from(flag)
        );
        return Err(term.error(message));
    }
    if !others.is_empty() {
        key.extend([&b"(?"[..], &others, b")"].concat());
    }
    key.extend(pattern);
    Ok(Pattern::Regex(key))
}

/// The pattern of a path test; `*` is anything.
pub(super) fn of_path(path: &PathTest) -> Applied<Pattern> {
    match path.test {
        Test::Regex => regex(&path.text),
        Test::Any => Ok(anything()),
        test => Ok(path_pattern(test, &path.text.bytes)),
    }
}

/// The same without its marks, for use within a longer expression.
pub(super) fn path_source(path: &PathTest) -> Vec<u8> {
    let quoted = quote(&path.text.bytes);
    match path.test {
        Test::Equal => [&quoted, &b"$"[..]].concat(),
        Test::Prefix => quoted,
        Test::Suffix => [&b".*"[..], &quoted, b"$"].concat(),
        Test::Any => Vec::new(),
        Test::Regex => match regex(&path.text) {
            Ok(Pattern::Regex(key)) => {
                let caseless = key.strip_prefix(b"~*");
                let source = caseless.or(key.strip_prefix(b"~")).unwrap_or(&key);
                [&b".*"[..], source].concat()
            }
            _ => Vec::new(),
        },
    }
}

fn path_pattern(test: Test, text: &[u8]) -> Pattern {
    match test {
        Test::Prefix => Pattern::Regex([&b"~*^"[..], &quote(text)].concat()),
        Test::Suffix => Pattern::Regex([&b"~*"[..], &quote(text), b"$"].concat()),
        _ => Pattern::Exact(text.to_vec()),
    }
}

/// Whatever has a byte.
fn anything() -> Pattern {
    Pattern::Regex(b"~.".to_vec())
}

/// Text as a regular expression.
pub(super) fn quote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if b"\\^$.|?*+()[]{}".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_at_the_ends_unless_a_backslash_takes_them() {
        let check = |raw: &str, suffixes: bool, expected: &str, warns: bool| {
            let (pattern, warning) = wildcard(raw.as_bytes(), suffixes);
            let text = match pattern {
                Pattern::Exact(text) => text,
                Pattern::Regex(key) => key,
            };
            assert_eq!(String::from_utf8_lossy(&text), expected, "{raw}");
            assert_eq!(warning.is_some(), warns, "{raw}");
        };
        check("a.b", true, "a.b", false);
        check("a.b*", true, r"~*^a\.b", false);
        check("*.php", true, r"~*\.php$", false);
        check("*.php", false, ".php", true);
        check("*a*", true, "~*^a", true);
        check("*", false, "~.", false);
        check(r"a\*", true, "a*", false);
        check(r"\*a", true, "*a", false);
        check("a*b", true, "a*b", false);
    }
}
