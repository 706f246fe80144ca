//! The syntax of `Cache-Control`, RFC 9111 5.2: directives with optional arguments.
//!
//! What does not fit the grammar must not hide a directive from this cache that another one sees. So a malformed list
//! is read on: every token outside of a terminated quoted string is a directive, only the argument beside the fault is
//! `Argument::Invalid`. A quote that is never closed quotes nothing, and `;` divides as a comma does.

use crate::field::{is_token_byte, trim_blanks};

/// Seconds beyond which a delta-seconds is taken as this (RFC 9111 1.2.2).
pub const DELTA_SECONDS_MAX: u32 = 1 << 31;

/// One directive of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive<'a> {
    /// A token in the sender's case; names have no case.
    pub name: &'a [u8],
    pub argument: Argument<'a>,
}

impl Directive<'_> {
    /// The directive has this name, given in lower case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// What follows a directive's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    None,
    /// A token.
    Token(&'a [u8]),
    /// What is between the quotes. Quoted pairs are left as they are: no directive needs one.
    Quoted(&'a [u8]),
    /// Outside the grammar: nothing after `=`, blanks around it, other bytes, or text after the argument.
    Invalid,
}

impl<'a> Argument<'a> {
    /// Delta-seconds in either form (RFC 9111 5.2); `None` is no such argument.
    pub fn seconds(self) -> Option<u32> {
        parse_delta_seconds(self.text()?)
    }

    /// The text of a valid argument.
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::Token(text) | Self::Quoted(text) => Some(text),
            Self::None | Self::Invalid => None,
        }
    }
}

/// RFC 9111 1.2.2: digits only; what is too large becomes [`DELTA_SECONDS_MAX`].
pub fn parse_delta_seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let mut seconds = 0_u32;
    for byte in text {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        seconds = seconds.saturating_mul(10).saturating_add(digit);
    }
    Some(seconds.min(DELTA_SECONDS_MAX))
}

/// The directives of one field value, in their order. Linear in the value's length, but for quotes that are never
/// closed, of which the first is searched once.
#[derive(Clone, Debug)]
pub struct Directives<'a> {
    rest: &'a [u8],
    /// No quoted string ends in `rest`: a quote was searched to the end in vain.
    unclosed: bool,
}

impl<'a> Directives<'a> {
    pub const fn of(value: &'a [u8]) -> Self {
        Self {
            rest: value,
            unclosed: false,
        }
    }

    /// The token at the beginning of what is left, which may be empty.
    fn token(&mut self) -> &'a [u8] {
        let is_token = |byte: &u8| is_token_byte(*byte);
        let end = self.rest.iter().take_while(|byte| is_token(byte)).count();
        let (token, rest) = self.rest.split_at_checked(end).unwrap_or_default();
        self.rest = rest;
        token
    }

    /// The argument after `=`.
    fn argument(&mut self) -> Argument<'a> {
        let argument = if self.rest.first() == Some(&b'"') {
            self.quoted()
        } else {
            match self.token() {
                [] => Argument::Invalid,
                token => Argument::Token(token),
            }
        };
        if self.is_at_end_of_element() {
            argument
        } else {
            Argument::Invalid
        }
    }

    fn quoted(&mut self) -> Argument<'a> {
        let Some(text) = self.rest.get(1..) else {
            return Argument::Invalid;
        };
        if let Some(len) = (!self.unclosed).then(|| quoted_len(text)).flatten() {
            self.rest = text.get(len + 1..).unwrap_or_default();
            return text.get(..len).map_or(Argument::Invalid, Argument::Quoted);
        }
        self.unclosed = true;
        self.rest = text;
        Argument::Invalid
    }

    fn is_at_end_of_element(&self) -> bool {
        matches!(trim_blanks(self.rest), [] | [b',', ..])
    }
}

/// Bytes before the quote that closes a quoted string.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => *byte == b'"',
    })
}

impl<'a> Iterator for Directives<'a> {
    type Item = Directive<'a>;

    fn next(&mut self) -> Option<Directive<'a>> {
        let start = self.rest.iter().position(|byte| is_token_byte(*byte))?;
        self.rest = self.rest.get(start..)?;
        let name = self.token();
        let argument = match self.rest {
            [b'=', rest @ ..] => {
                self.rest = rest;
                self.argument()
            }
            _ if self.is_at_end_of_element() => Argument::None,
            _ => Argument::Invalid,
        };
        Some(Directive { name, argument })
    }
}

#[cfg(test)]
mod tests {
    use super::Argument::{Invalid, None as Without, Quoted, Token};
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn lists_are_read_as_the_grammar_says() {
        let check = |value: &'static str, expected: &[(&str, Argument<'_>)]| {
            let found: Vec<_> = Directives::of(value.as_bytes())
                .map(|one| (core::str::from_utf8(one.name).unwrap(), one.argument))
                .collect();
            assert_eq!(found, expected, "{value}");
        };
        check("", &[]);
        check(" , ,\t", &[]);
        check("no-store", &[("no-store", Without)]);
        check(
            "a ,b\t, c",
            &[("a", Without), ("b", Without), ("c", Without)],
        );
        check("max-age=5", &[("max-age", Token(b"5"))]);
        check(
            "max-age=\"5\" ,a",
            &[("max-age", Quoted(b"5")), ("a", Without)],
        );
        check("x=\"a, no-store\"", &[("x", Quoted(b"a, no-store"))]);
        check(
            "x=\"a\\\", b\",c",
            &[("x", Quoted(b"a\\\", b")), ("c", Without)],
        );
        check("x=\"\"", &[("x", Quoted(b""))]);
        // What follows is malformed: nothing is hidden by it.
        check("max-age=", &[("max-age", Invalid)]);
        check("max-age= 5", &[("max-age", Invalid), ("5", Without)]);
        check("max-age =5", &[("max-age", Invalid), ("5", Without)]);
        check(
            "max-age=5 private",
            &[("max-age", Invalid), ("private", Without)],
        );
        check(
            "max-age=5; private",
            &[("max-age", Invalid), ("private", Without)],
        );
        check("no-store; a", &[("no-store", Invalid), ("a", Without)]);
        check("no-store a", &[("no-store", Invalid), ("a", Without)]);
        check(
            "x=\"a, no-store",
            &[("x", Invalid), ("a", Without), ("no-store", Without)],
        );
        check("\"a, no-store", &[("a", Without), ("no-store", Without)]);
        check(
            "x=\"a\"b, c",
            &[("x", Invalid), ("b", Without), ("c", Without)],
        );
        check("\x01\u{e9}a", &[("a", Without)]);
        check("=5", &[("5", Without)]);
    }

    #[test]
    fn seconds_are_digits_and_saturate() {
        let check = |argument: Argument<'_>, expected| {
            assert_eq!(argument.seconds(), expected, "{argument:?}");
        };
        check(Token(b"0"), Some(0));
        check(Token(b"0060"), Some(60));
        check(Quoted(b"60"), Some(60));
        check(Token(b"2147483647"), Some(DELTA_SECONDS_MAX - 1));
        check(Token(b"2147483648"), Some(DELTA_SECONDS_MAX));
        check(Token(b"2147483649"), Some(DELTA_SECONDS_MAX));
        check(
            Token(b"99999999999999999999999999"),
            Some(DELTA_SECONDS_MAX),
        );
        for text in ["-1", "+1", "1.5", "1s", "0x1", "'1'", "x"] {
            check(Token(text.as_bytes()), None);
        }
        for text in ["", " 1", "1 ", "\\1"] {
            check(Quoted(text.as_bytes()), None);
        }
        check(Without, None);
        check(Invalid, None);
    }
}
