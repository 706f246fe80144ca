//! Names under which many responses are purged at once: `Surrogate-Key`, `Cache-Tag`, and the groups of RFC 9875.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::structured::{Item, parse_list};
use crate::field::trim_blanks;

/// The most tags of one response (RFC 9875 2 asks for 32 at least).
pub const TAGS_MAX: usize = 128;
/// The longest tag in bytes (RFC 9875 2 asks for 32 at least).
pub const TAG_BYTES_MAX: usize = 1024;

/// The form of a field that has tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagForm {
    /// `Surrogate-Key`: divided by blanks.
    Blanks,
    /// `Cache-Tag`: divided by commas.
    Commas,
    /// `Cache-Groups` and `Cache-Group-Invalidation`: a list of strings (RFC 9875 2, 3).
    Strings,
}

impl TagForm {
    /// The form of the field of this name, if it has tags that a response is stored with.
    pub fn of_field(name: &[u8]) -> Option<Self> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"surrogate-key") {
            Some(Self::Blanks)
        } else if is(b"cache-tag") {
            Some(Self::Commas)
        } else {
            is(b"cache-groups").then_some(Self::Strings)
        }
    }
}

/// Tags in the order in which they came, each once; case matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    pub tags: Vec<Box<[u8]>>,
    /// There were more, or longer ones: a purge by those that are missing does not find the response.
    pub is_cut: bool,
}

impl Tags {
    /// The tags that a response is stored with, of all its fields that have some. Groups hold within an origin only
    /// (RFC 9875 2), which the caller's key of a tag has to tell.
    pub fn of_response<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut found = Self::default();
        for (name, value) in fields {
            if let Some(form) = TagForm::of_field(name) {
                found.add(form, value);
            }
        }
        found
    }

    /// The groups that the response to an unsafe request invalidates (RFC 9875 3).
    pub fn invalidated<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut found = Self::default();
        let is_it = |name: &[u8]| name.eq_ignore_ascii_case(b"cache-group-invalidation");
        for (_, value) in fields.into_iter().filter(|(name, _)| is_it(name)) {
            found.add(TagForm::Strings, value);
        }
        found
    }

    /// Adds the tags of one field line. A malformed list of strings, or one with other members, is ignored.
    pub fn add(&mut self, form: TagForm, value: &[u8]) {
        match form {
            TagForm::Blanks => value
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .for_each(|tag| self.push(tag)),
            TagForm::Commas => value
                .split(|byte| *byte == b',')
                .for_each(|tag| self.push(trim_blanks(tag))),
            TagForm::Strings => self.add_strings(value),
        }
    }

    fn add_strings(&mut self, value: &[u8]) {
        let Some(members) = parse_list(value) else {
            return;
        };
        let texts = members.into_iter().map(|item| match item {
            Item::Text(text) => Some(text),
            _ => None,
        });
        let Some(texts) = texts.collect::<Option<Vec<&[u8]>>>() else {
            return;
        };
        for text in texts {
            self.push(&unescaped(text));
        }
    }

    fn push(&mut self, tag: &[u8]) {
        if tag.is_empty() || self.tags.iter().any(|known| **known == *tag) {
            return;
        }
        if self.tags.len() == TAGS_MAX || tag.len() > TAG_BYTES_MAX {
            self.is_cut = true;
            return;
        }
        self.tags.push(tag.into());
    }
}

/// Without the backslashes before `"` and `\`, which the parser has checked.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut is_escaped = false;
    let kept = text.iter().filter(|byte| {
        is_escaped = **byte == b'\\' && !is_escaped;
        !is_escaped
    });
    kept.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    fn check(name: &str, value: &str, expected: &[&str]) {
        let found = Tags::of_response([(name.as_bytes(), value.as_bytes())]);
        let expected: Vec<Box<[u8]>> = expected
            .iter()
            .map(|tag| Box::from(tag.as_bytes()))
            .collect();
        assert_eq!(found.tags, expected, "{name} {value}");
        assert!(!found.is_cut);
    }

    #[test]
    fn each_field_has_its_form() {
        check("Surrogate-Key", " a  b\ta B ", &["a", "b", "B"]);
        check("surrogate-key", "a,b", &["a,b"]);
        check("Cache-Tag", "a, b c ,,a", &["a", "b c"]);
        check(
            "Cache-Groups",
            "\"a\", \"b c\";x=1, \"a\", \"q\\\"\\\\\"",
            &["a", "b c", "q\"\\"],
        );
        check("Cache-Groups", "\"a\", b", &[]);
        check("Cache-Groups", "\"a", &[]);
        check("Cache-Groups", "\"\"", &[]);
        check("X-Cache-Tag", "a", &[]);
        check("Cache-Group-Invalidation", "\"a\"", &[]);
        let lines: [(&[u8], &[u8]); 2] = [
            (b"Cache-Group-Invalidation", b"\"a\""),
            (b"cache-groups", b"\"b\""),
        ];
        assert_eq!(Tags::invalidated(lines).tags, [Box::from(b"a".as_slice())]);
    }

    #[test]
    fn number_and_length_are_bounded() {
        for (count, len, is_cut) in [
            (TAGS_MAX, 5, false),
            (TAGS_MAX + 1, 5, true),
            (1, TAG_BYTES_MAX, false),
            (1, TAG_BYTES_MAX + 1, true),
        ] {
            let tags: Vec<String> = (0..count).map(|index| format!("{index:0len$}")).collect();
            let found =
                Tags::of_response([(b"surrogate-key".as_slice(), tags.join(" ").as_bytes())]);
            assert_eq!(found.is_cut, is_cut, "{count} {len}");
            assert!(found.tags.len() <= TAGS_MAX);
        }
    }
}
