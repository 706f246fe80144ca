//! Regular expressions, in the two dialects that are needed.
//!
//! nginx uses PCRE. Expressions that the `regex` crate understands run there (linear time, no stack); look-around and
//! back-references fall back to PCRE2 itself.

use std::fmt;
use std::ops::Range;

use crate::Text;

/// A compiled regular expression on bytes. `.` is one byte, not one character, and classes such
/// as `\w` are ASCII, as in nginx.
pub struct Pattern {
    source: Text,
    caseless: bool,
    engine: Engine,
    /// (capture, index of the user variable) for each named capture.
    named: Vec<(usize, usize)>,
}

enum Engine {
    Linear(regex::bytes::Regex),
    Backtracking(pcre2::bytes::Regex),
}

/// Captures of the last match: ranges into the subject, `None` for groups that took no part.
/// Entry 0 is the whole match.
pub type Captures = Vec<Option<Range<usize>>>;

impl Pattern {
    /// Compiles an expression; `caseless` is `~*`. The error is the engine's text.
    pub fn parse(source: &[u8], caseless: bool) -> Result<Self, String> {
        let text = std::str::from_utf8(source);
        let linear = text
            .ok()
            .filter(|text| !has_own_meaning_in_pcre(text))
            .and_then(|text| {
                regex::bytes::RegexBuilder::new(text)
                    .unicode(false)
                    .case_insensitive(caseless)
                    .build()
                    .ok()
            });
        let engine = match linear {
            Some(regex) => Engine::Linear(regex),
            None => {
                let text = text.map_err(|_| String::from("the expression is not valid UTF-8"))?;
                let regex = pcre2::bytes::RegexBuilder::new()
                    .caseless(caseless)
                    .jit_if_available(true)
                    .build(text)
                    .map_err(|error| pcre_message(&error))?;
                Engine::Backtracking(regex)
            }
        };
        Ok(Self {
            source: Text::from(source),
            caseless,
            engine,
            named: Vec::new(),
        })
    }

    /// The expression as written.
    pub fn source(&self) -> &Text {
        &self.source
    }

    /// Whether case is ignored.
    pub fn is_caseless(&self) -> bool {
        self.caseless
    }

    /// Named captures as (capture number, index into [`super::Http::user_variables`]): a match
    /// sets these variables.
    pub fn named(&self) -> &[(usize, usize)] {
        &self.named
    }

    /// Whether it matches somewhere in the subject.
    pub fn is_match(&self, subject: &[u8]) -> bool {
        match &self.engine {
            Engine::Linear(regex) => regex.is_match(subject),
            // The error is PCRE's match limit: nginx answers 500, here it is no match.
            Engine::Backtracking(regex) => regex.is_match(subject).unwrap_or(false),
        }
    }

    /// Whether it matches; if so `captures` is replaced, else it is not changed.
    pub fn captures(&self, subject: &[u8], captures: &mut Captures) -> bool {
        match &self.engine {
            Engine::Linear(regex) => {
                // Most expressions that are tried do not match: then nothing is allocated.
                if !regex.is_match(subject) {
                    return false;
                }
                let mut locations = regex.capture_locations();
                if regex.captures_read(&mut locations, subject).is_none() {
                    return false;
                }
                captures.clear();
                captures.extend(
                    (0..locations.len())
                        .map(|index| locations.get(index).map(|(start, end)| start..end)),
                );
                true
            }
            Engine::Backtracking(regex) => {
                if !regex.is_match(subject).unwrap_or(false) {
                    return false;
                }
                let mut locations = regex.capture_locations();
                if !matches!(regex.captures_read(&mut locations, subject), Ok(Some(_))) {
                    return false;
                }
                captures.clear();
                captures.extend(
                    (0..locations.len())
                        .map(|index| locations.get(index).map(|(start, end)| start..end)),
                );
                true
            }
        }
    }

    /// Number of captures, the whole match not counted.
    pub fn capture_count(&self) -> usize {
        match &self.engine {
            Engine::Linear(regex) => regex.captures_len().saturating_sub(1),
            Engine::Backtracking(regex) => regex.captures_len().saturating_sub(1),
        }
    }

    /// Names of the captures with their numbers.
    pub(crate) fn capture_names(&self) -> Vec<(usize, String)> {
        let names: Vec<Option<String>> = match &self.engine {
            Engine::Linear(regex) => regex
                .capture_names()
                .map(|name| name.map(String::from))
                .collect(),
            Engine::Backtracking(regex) => regex.capture_names().to_vec(),
        };
        names
            .into_iter()
            .enumerate()
            .filter_map(|(index, name)| name.map(|name| (index, name)))
            .collect()
    }

    /// Binds named captures to variables.
    pub(crate) fn bind(&mut self, named: Vec<(usize, usize)>) {
        self.named = named;
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.caseless { "*" } else { "" };
        write!(f, "~{star} {:?}", self.source)
    }
}

/// Whether the text uses syntax that the `regex` crate accepts but reads differently from PCRE: set operations and
/// classes in classes, `\<` and `\>`, `\b{start}`.
///
/// One difference remains: `$` matches only at the very end here, in PCRE also before a final line feed. A path with a
/// line feed at its end matches fewer expressions, which is the safer reading.
fn has_own_meaning_in_pcre(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has = |wanted: &[&[u8; 2]]| {
        bytes
            .windows(2)
            .any(|pair| wanted.iter().any(|wanted| pair == &wanted[..]))
    };
    let sets = bytes.contains(&b'[') && has(&[b"&&", b"--", b"~~"]);
    sets || has(&[b"\\<", b"\\>"]) || text.contains("\\b{") || nested_bracket(bytes)
}

/// A `[` inside a class that opens no `[:name:]`.
fn nested_bracket(bytes: &[u8]) -> bool {
    let mut inside = false;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\\' => rest = rest.get(1..).unwrap_or_default(),
            b'[' if inside && rest.first() != Some(&b':') => return true,
            b'[' if !inside => {
                inside = true;
                // A bracket that comes first is a member of the class.
                rest = rest.strip_prefix(b"^").unwrap_or(rest);
                rest = rest.strip_prefix(b"]").unwrap_or(rest);
            }
            b']' => inside = false,
            _ => {}
        }
    }
    false
}

/// PCRE's own text, without the crate's prefix.
fn pcre_message(error: &pcre2::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(": ") {
        Some((_, reason)) => String::from(reason),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_in_pcre() {
        let check = |source: &str, caseless: bool, subject: &str, expected: bool| {
            let pattern = Pattern::parse(source.as_bytes(), caseless).unwrap();
            assert_eq!(
                pattern.is_match(subject.as_bytes()),
                expected,
                "{source} {subject}"
            );
            let mut captures = Captures::new();
            assert_eq!(
                pattern.captures(subject.as_bytes(), &mut captures),
                expected
            );
            assert_eq!(captures.is_empty(), !expected);
        };
        check(r"\.php$", false, "/a.php", true);
        check(r"\.php$", false, "/a.PHP", false);
        check(r"\.php$", true, "/a.PHP", true);
        check("^/(?!b)", false, "/a", true);
        check("^/(?!b)", false, "/b", false);
        check(r"^/(.)\1$", false, "/aa", true);
        check(r"^/(.)\1$", false, "/ab", false);
        check("a++b", false, "aab", true);
        check("[[a]", false, "[", true);
        check("[a&&b]", false, "&", true);
        check(r"\<a", false, "<a", true);
        check("[[:digit:]]", false, "5", true);
        check("^.$", false, "\u{e9}", false);
    }

    #[test]
    fn captures_have_numbers_and_names_in_both_engines() {
        for source in ["^/(?<a>x)(y)?", "^/(?<a>x)(y)?(?=.*)"] {
            let pattern = Pattern::parse(source.as_bytes(), false).unwrap();
            let mut captures = Captures::new();
            assert!(pattern.captures(b"/x", &mut captures));
            assert_eq!(captures, [Some(0..2), Some(1..2), None]);
            assert_eq!(pattern.capture_names(), [(1, String::from("a"))]);
            assert_eq!(pattern.capture_count(), 2);
        }
    }

    #[test]
    fn malformed_expressions_are_refused_with_pcres_messages() {
        let error = Pattern::parse(b"(", false).unwrap_err();
        assert_eq!(error, "missing closing parenthesis");
        assert!(Pattern::parse(b"\xff(", false).is_err());
    }
}
