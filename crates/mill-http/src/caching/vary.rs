//! `Vary`: for which requests a stored response was made, RFC 9111 4.1.
//!
//! The values of the nominated request fields become a key, in which what means the same looks the same. Two requests
//! match when their keys are equal. A key is bytes of its own form: it cannot be imitated by what a value contains.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::field::{ListElements, is_token_byte, trim_blanks};

/// The most field names of `Vary` that this cache compares; with more, nothing matches.
pub const VARY_NAMES_MAX: usize = 32;

/// The nominated fields of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Vary {
    /// Every request to the target matches.
    #[default]
    None,
    /// `*`, a name that is no token, or more than [`VARY_NAMES_MAX`]: no request matches.
    Any,
    /// Names in lower case, sorted, each once.
    Names(Box<[Box<[u8]>]>),
}

impl Vary {
    /// Gathers the field lines of a response. Other names than `Vary` are passed over.
    pub fn of_fields<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let lines = fields
            .into_iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"vary"));
        for name in lines.flat_map(|(_, value)| ListElements::of(value)) {
            let is_token = name.iter().all(|byte| is_token_byte(*byte));
            if name == b"*" || !is_token {
                return Self::Any;
            }
            let name = name.to_ascii_lowercase().into_boxed_slice();
            let Err(at) = names.binary_search(&name) else {
                continue;
            };
            if names.len() == VARY_NAMES_MAX {
                return Self::Any;
            }
            names.insert(at, name);
        }
        if names.is_empty() {
            Self::None
        } else {
            Self::Names(names.into_boxed_slice())
        }
    }

    /// Whether the field of this name, in lower case, is nominated.
    pub fn nominates(&self, name: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Names(names) => names.iter().any(|known| **known == *name),
        }
    }

    /// Appends the key of a request: for each nominated field its name and value, or that it is absent. Empty for
    /// `None`. Returns false for `Any`, of which there is no key. Linear in fields times names.
    pub fn emit_key<'a, Fields>(&self, fields: Fields, out: &mut Vec<u8>) -> bool
    where
        Fields: Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    {
        let names = match self {
            Self::None => return true,
            Self::Any => return false,
            Self::Names(names) => names,
        };
        for name in names {
            emit_text(name, out);
            let is_it = |line: &(&[u8], &[u8])| line.0.eq_ignore_ascii_case(name);
            let mut values = fields
                .clone()
                .filter(is_it)
                .map(|(_, value)| value)
                .peekable();
            if values.peek().is_none() {
                out.push(ABSENT);
                continue;
            }
            out.push(PRESENT);
            emit_text(&normal_value(name, values), out);
        }
        true
    }

    /// The request has the key which the stored response was stored with.
    pub fn matches<'a, Fields>(&self, stored_key: &[u8], fields: Fields) -> bool
    where
        Fields: Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    {
        let mut key = Vec::with_capacity(stored_key.len());
        self.emit_key(fields, &mut key) && key == stored_key
    }
}

/// An absent field matches an absent one only, not an empty one.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// Length and bytes, so that no text runs into the next one.
fn emit_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_be_bytes());
    out.extend_from_slice(text);
}

/// What may be changed in a field's value without changing what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    /// Unknown: lines are joined (RFC 9110 5.3), nothing else.
    Other,
    /// A list in which order may matter: blanks and empty elements go.
    List,
    /// A list without case in which order may matter (RFC 9110 12.5.4).
    CaselessList,
    /// A list without case and order, but for weights (RFC 9110 12.5.2, 12.5.3).
    CaselessSet,
}

fn syntax(name: &[u8]) -> Syntax {
    match name {
        b"accept-encoding" | b"accept-charset" => Syntax::CaselessSet,
        b"accept-language" => Syntax::CaselessList,
        b"accept" => Syntax::List,
        _ => Syntax::Other,
    }
}

fn normal_value<'a>(name: &[u8], values: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let syntax = syntax(name);
    if syntax == Syntax::Other {
        let values: Vec<&[u8]> = values.map(trim_blanks).collect();
        return values.join(b", ".as_slice());
    }
    let mut elements: Vec<Vec<u8>> = values
        .flat_map(ListElements::of)
        .map(|element| normal_element(element, syntax))
        .collect();
    if syntax == Syntax::CaselessSet {
        elements.sort_unstable();
        elements.dedup();
    }
    elements.join(b",".as_slice())
}

/// Without blanks around `;`, a weight of one, or case where there is none. Blanks elsewhere are kept: an element with
/// them is malformed, or has them in quotes.
fn normal_element(element: &[u8], syntax: Syntax) -> Vec<u8> {
    if element.contains(&b'"') {
        return element.to_vec();
    }
    let mut normal = Vec::with_capacity(element.len());
    for part in element.split(|byte| *byte == b';').map(trim_blanks) {
        if syntax == Syntax::CaselessSet && !normal.is_empty() && is_weight_of_one(part) {
            continue;
        }
        if !normal.is_empty() {
            normal.push(b';');
        }
        normal.extend_from_slice(part);
    }
    if syntax != Syntax::List {
        normal.make_ascii_lowercase();
    }
    normal
}

/// RFC 9110 12.4.2: the default.
fn is_weight_of_one(part: &[u8]) -> bool {
    let [b'q' | b'Q', b'=', b'1', fraction @ ..] = part else {
        return false;
    };
    match fraction {
        [] => true,
        [b'.', digits @ ..] => digits.len() <= 3 && digits.iter().all(|digit| *digit == b'0'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn bytes<'a>(lines: Lines<'a>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone {
        lines
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    fn names(list: &[&str]) -> Vary {
        Vary::Names(list.iter().map(|name| Box::from(name.as_bytes())).collect())
    }

    #[test]
    fn nominated_fields_are_gathered_from_all_lines() {
        let check = |lines: Lines<'_>, expected: Vary| {
            assert_eq!(Vary::of_fields(bytes(lines)), expected, "{lines:?}");
        };
        check(&[], Vary::None);
        check(&[("Vary", "")], Vary::None);
        check(&[("Vary", " , ")], Vary::None);
        check(&[("X-Vary", "*")], Vary::None);
        check(&[("Vary", "Accept")], names(&["accept"]));
        check(&[("vary", "b, A ,,b")], names(&["a", "b"]));
        check(&[("Vary", "b"), ("VARY", "a, B")], names(&["a", "b"]));
        for value in ["*", "a, *", "*, a", "a b", "\"a\"", "a;b", "a\u{e9}"] {
            check(&[("Vary", value)], Vary::Any);
        }
        check(&[("Vary", "a"), ("Vary", "*")], Vary::Any);
    }

    #[test]
    fn more_names_than_are_compared_match_nothing() {
        for (count, is_any) in [(VARY_NAMES_MAX, false), (VARY_NAMES_MAX + 1, true)] {
            let list: Vec<String> = (0..count).map(|index| format!("f{index}")).collect();
            let list = format!("{0}, {0}", list.join(","));
            let found = Vary::of_fields(bytes(&[("Vary", &list)]));
            assert_eq!(found == Vary::Any, is_any, "{count}");
        }
    }

    #[test]
    fn requests_match_that_say_the_same() {
        let check = |vary: &str, one: Lines<'_>, other: Lines<'_>, expected: bool| {
            let vary = Vary::of_fields(bytes(&[("Vary", vary)]));
            let mut key = Vec::new();
            assert!(vary.emit_key(bytes(one), &mut key));
            assert!(vary.matches(&key, bytes(one)));
            assert_eq!(
                vary.matches(&key, bytes(other)),
                expected,
                "{one:?} {other:?}"
            );
        };
        let same = |name: &str, one: &str, other: &str, expected: bool| {
            check(name, &[(name, one)], &[(name, other)], expected);
        };
        check("", &[("a", "1")], &[("a", "2")], true);
        check("a", &[], &[], true);
        check("a", &[("b", "1")], &[("b", "2")], true);
        check("a", &[("a", "1")], &[], false);
        check("a", &[("a", "")], &[], false);
        check("a", &[("A", "1")], &[("a", "1")], true);
        check("a", &[("a", "1"), ("a", "2")], &[("a", "1, 2")], true);
        check("a", &[("a", "1"), ("a", "2")], &[("a", "2, 1")], false);
        check(
            "a,b",
            &[("a", "1"), ("b", "2")],
            &[("b", "2"), ("a", "1")],
            true,
        );
        check("a,b", &[("a", "1")], &[("b", "1")], false);
        same("a", "1", " 1\t", true);
        same("a", "1,2", "1, 2", false);
        same("a", "x", "X", false);
        same("accept-encoding", "gzip, br", "br,gzip", true);
        same("accept-encoding", "GZIP", "gzip ,", true);
        same("accept-encoding", "gzip;q=1.0, br", "br, gzip", true);
        same("accept-encoding", "gzip ; q=0.5", "gzip;q=0.5", true);
        same("accept-encoding", "gzip;q=0.5", "gzip", false);
        same("accept-encoding", "gzip;q=0", "gzip", false);
        same("accept-encoding", "gzip, gzip", "gzip", true);
        same("accept-encoding", "gzip br", "gzip, br", false);
        same("accept-encoding", "", "gzip", false);
        same("accept-charset", "utf-8, latin1", "latin1,UTF-8", true);
        same("accept-language", "de, en", "DE,en", true);
        same("accept-language", "de, en", "en, de", false);
        same("accept", "text/html , */*", "text/html,*/*", true);
        same("accept", "text/html;level=1", "text/html; level=1", true);
        same("accept", "text/html", "text/HTML", false);
        same("accept", "a/b;x=\"1, 2\"", "a/b;x=\"1,2\"", false);
        same("cookie", "a=1; b=2", "b=2; a=1", false);
    }

    #[test]
    fn a_value_cannot_imitate_another_field() {
        let vary = Vary::of_fields(bytes(&[("Vary", "a, b")]));
        let texts = ["", "1", "a", "b", "\u{0}", "1\u{0}\u{0}b", ", ", "b:1"];
        let mut keys = Vec::new();
        for one in texts {
            for other in texts {
                let mut key = Vec::new();
                vary.emit_key(bytes(&[("a", one), ("b", other)]), &mut key);
                assert!(!keys.contains(&key), "{one:?} {other:?}");
                keys.push(key);
            }
        }
        assert!(!Vary::Any.matches(b"", bytes(&[])));
    }
}
