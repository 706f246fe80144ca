//! Structured fields, RFC 9651: dictionaries and lists, checked whole and left as text.

use alloc::vec::Vec;

/// The most members of a dictionary or list that are read; with more, the field is as if it were malformed.
pub(crate) const MEMBERS_MAX: usize = 256;

/// A member's value as its text in the field. Parameters are checked and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Boolean(bool),
    /// Integer, decimal or token, as written.
    Word(&'a [u8]),
    /// A string: what is between the quotes, with its escapes.
    Text(&'a [u8]),
    /// Any other type.
    Other,
}

/// RFC 9651 4.2.2; a key that comes again has its last value. `None` is malformed.
pub(crate) fn parse_dictionary(value: &[u8]) -> Option<Vec<(&[u8], Item<'_>)>> {
    let mut text = Text { rest: value };
    let mut members: Vec<(&[u8], Item<'_>)> = Vec::new();
    text.skip_spaces();
    while !text.rest.is_empty() {
        let key = text.key()?;
        let item = if text.skip(b'=') {
            text.member()?
        } else {
            text.parameters()?;
            Item::Boolean(true)
        };
        if let Some(member) = members.iter_mut().find(|(known, _)| *known == key) {
            member.1 = item;
        } else if members.len() == MEMBERS_MAX {
            return None;
        } else {
            members.push((key, item));
        }
        text.end_of_member()?;
    }
    Some(members)
}

/// RFC 9651 4.2.1. `None` is malformed.
pub(crate) fn parse_list(value: &[u8]) -> Option<Vec<Item<'_>>> {
    let mut text = Text { rest: value };
    let mut members = Vec::new();
    text.skip_spaces();
    while !text.rest.is_empty() {
        if members.len() == MEMBERS_MAX {
            return None;
        }
        members.push(text.member()?);
        text.end_of_member()?;
    }
    Some(members)
}

struct Text<'a> {
    rest: &'a [u8],
}

impl<'a> Text<'a> {
    fn skip_spaces(&mut self) {
        while self.skip(b' ') {}
    }

    fn skip(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The bytes at the beginning that `fits`.
    fn run(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().take_while(|byte| fits(**byte)).count();
        let (run, rest) = self.rest.split_at_checked(end).unwrap_or_default();
        self.rest = rest;
        run
    }

    /// Comma and blanks before the next member, or the end; a comma at the end is malformed.
    fn end_of_member(&mut self) -> Option<()> {
        let is_blank = |byte| byte == b' ' || byte == b'\t';
        self.run(is_blank);
        if self.rest.is_empty() {
            return Some(());
        }
        let has_comma = self.skip(b',');
        self.run(is_blank);
        (has_comma && !self.rest.is_empty()).then_some(())
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let is_first = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'*';
        self.rest.first().filter(|byte| is_first(byte))?;
        let is_mark = |byte| matches!(byte, b'_' | b'-' | b'.' | b'*');
        Some(self.run(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || is_mark(byte)))
    }

    /// An item or an inner list, with its parameters.
    fn member(&mut self) -> Option<Item<'a>> {
        if !self.skip(b'(') {
            let item = self.bare_item()?;
            self.parameters()?;
            return Some(item);
        }
        loop {
            self.skip_spaces();
            if self.skip(b')') {
                self.parameters()?;
                return Some(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            matches!(self.rest, [b' ' | b')', ..]).then_some(())?;
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.skip(b';') {
            self.skip_spaces();
            self.key()?;
            if self.skip(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn bare_item(&mut self) -> Option<Item<'a>> {
        match self.rest {
            [b'-' | b'0'..=b'9', ..] => self.number().map(Item::Word),
            [b'*' | b'a'..=b'z' | b'A'..=b'Z', ..] => {
                let is_tail = |byte| matches!(byte, b':' | b'/');
                let fits = |byte| crate::field::is_token_byte(byte) || is_tail(byte);
                Some(Item::Word(self.run(fits)))
            }
            [b'"', rest @ ..] => {
                self.rest = rest;
                self.string().map(Item::Text)
            }
            [b'?', digit @ (b'0' | b'1'), rest @ ..] => {
                self.rest = rest;
                Some(Item::Boolean(*digit == b'1'))
            }
            [b':', rest @ ..] => {
                self.rest = rest;
                let is_mark = |byte| matches!(byte, b'+' | b'/' | b'=');
                self.run(|byte| byte.is_ascii_alphanumeric() || is_mark(byte));
                self.skip(b':').then_some(Item::Other)
            }
            [b'@', rest @ ..] => {
                self.rest = rest;
                let number = self.number()?;
                (!number.contains(&b'.')).then_some(Item::Other)
            }
            [b'%', b'"', rest @ ..] => {
                self.rest = rest;
                self.run(|byte| (0x20..0x7f).contains(&byte) && byte != b'"');
                self.skip(b'"').then_some(Item::Other)
            }
            _ => None,
        }
    }

    /// RFC 9651 4.2.4: 15 digits, or 12 and up to 3.
    fn number(&mut self) -> Option<&'a [u8]> {
        let start = self.rest;
        self.skip(b'-');
        let whole = self.run(|byte| byte.is_ascii_digit()).len();
        let fits = if self.skip(b'.') {
            let fraction = self.run(|byte| byte.is_ascii_digit()).len();
            (1..=12).contains(&whole) && (1..=3).contains(&fraction)
        } else {
            (1..=15).contains(&whole)
        };
        fits.then_some(())?;
        start.get(..start.len() - self.rest.len())
    }

    /// RFC 9651 4.2.5, behind the opening quote.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.rest;
        loop {
            self.run(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
            match self.rest {
                [b'\\', b'"' | b'\\', rest @ ..] => self.rest = rest,
                [b'"', rest @ ..] => {
                    let len = start.len() - self.rest.len();
                    self.rest = rest;
                    return start.get(..len);
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Item::{Boolean, Other, Text as Quoted, Word};

    #[test]
    fn dictionaries_are_read_whole_or_not_at_all() {
        let check = |value: &str, expected: Option<&[(&str, Item<'_>)]>| {
            let found = parse_dictionary(value.as_bytes());
            let found: Option<Vec<_>> = found.map(|members| {
                let text = |key| core::str::from_utf8(key).unwrap();
                members
                    .into_iter()
                    .map(|(key, item)| (text(key), item))
                    .collect()
            });
            assert_eq!(found.as_deref(), expected, "{value}");
        };
        check("", Some(&[]));
        check("a", Some(&[("a", Boolean(true))]));
        check(
            "a=?0 ,\tb=?1",
            Some(&[("a", Boolean(false)), ("b", Boolean(true))]),
        );
        check(
            "a=1, b=-2.5, a=3",
            Some(&[("a", Word(b"3")), ("b", Word(b"-2.5"))]),
        );
        check(
            "a=x/y;p=1;q, b;c=\"d\"",
            Some(&[("a", Word(b"x/y")), ("b", Boolean(true))]),
        );
        check("a=\"x, \\\"y\"", Some(&[("a", Quoted(b"x, \\\"y"))]));
        check("a=(1 \"b\";x c);y", Some(&[("a", Other)]));
        check(
            "a=:aGk=:, b=@5, c=%\"x\", d=()",
            Some(&[("a", Other), ("b", Other), ("c", Other), ("d", Other)]),
        );
        for value in [
            "A",
            "a,",
            ",a",
            "a,,b",
            "a b",
            "a=",
            "a= 1",
            "a =1",
            "a=\"x",
            "a=\"\\x\"",
            "a=1x",
            "a=?2",
            "a=1.",
            "a=1.2345",
            "a=1234567890123456",
            "a=(1",
            "a=(1,2)",
            "a=:x",
            "a=@1.5",
            "a=\u{e9}",
            "a;",
            "a;B",
            "=1",
        ] {
            check(value, None);
        }
    }

    #[test]
    fn lists_are_read_whole_or_not_at_all() {
        assert_eq!(parse_list(b""), Some(Vec::new()));
        assert_eq!(
            parse_list(b"\"a\", b;x=1"),
            Some([Quoted(b"a".as_slice()), Word(b"b")].into())
        );
        for value in ["\"a\",", "\"a\" \"b\"", ","] {
            assert_eq!(parse_list(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn more_members_than_are_read_are_malformed() {
        for (count, is_read) in [(MEMBERS_MAX, true), (MEMBERS_MAX + 1, false)] {
            let members: Vec<_> = (0..count).map(|index| alloc::format!("a{index}")).collect();
            let value = members.join(",");
            assert_eq!(parse_dictionary(value.as_bytes()).is_some(), is_read);
            assert_eq!(parse_list(value.as_bytes()).is_some(), is_read);
        }
    }
}
