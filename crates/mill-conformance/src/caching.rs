//! What caches must do, as cases: requests for one target, some seconds apart, what the origin answers, and what becomes of the
//! last request. The same cases are put to our cache in a simulated world and, by `cargo xtask conformance`, to programs.
//!
//! A line a case, in six columns divided by `|`:
//!
//! ```text
//! clause | the origin's answer | requests before | seconds | the last request | what becomes of it
//! 5.1    | Cache-Control: max-age=10;Age: 5 | - | 4 | - | hit; Age: 9
//! ```
//!
//! Field lines are divided by `;`, `-` is none, and `~` at the beginning of a path stands for the folder that a case has for
//! itself. Lines that begin with `:` are no fields:
//!
//! - in an answer, `@+10` stands for the date ten seconds from now; `:status 404` (else 200); what begins with `then ` is said to all requests but the first, `unsafe ` to
//!   methods other than GET and HEAD, and `304 ` are fields of answers that validate;
//! - in a request, `:method HEAD` (else GET) and `:path ~/b` (else `~/a`); requests before are divided by `&&`;
//! - what becomes of the last request is `hit`, `forwarded`, with another status than 200 `forwarded 404`, `validated` (the origin
//!   has said 304), `stale` (what is kept in the place of 5xx) or a status other than 200 that comes from the cache, then fields that its answer must have with this value, or, behind `!`, must not have. What begins with
//!   `asked ` is a field that the origin must have been asked with, or, behind `!`, without.

/// Dates in the form of HTTP.
pub mod http_date;

use std::fmt;

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The clause, of RFC 9111 unless it begins with another number.
    pub clause: String,
    pub origin: Origin,
    pub before: Vec<Asking>,
    /// From the last request before to the last request.
    pub seconds: u64,
    pub last: Asking,
    pub expected: Expected,
    /// The line as it is written.
    pub text: String,
}

/// What the origin does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub first: Saying,
    /// Said to all requests behind the first; as the first where there is none.
    pub then: Option<Saying>,
    /// Said to requests of unsafe methods.
    pub to_unsafe: Saying,
    /// Fields of 304.
    pub validating: Vec<String>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saying {
    pub status: u16,
    /// `Name: value`.
    pub fields: Vec<String>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    pub method: String,
    pub path: String,
    pub fields: Vec<String>,
}

/// What becomes of the last request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub outcome: String,
    /// Name and value of fields of the answer; `None` is not there.
    pub fields: Vec<(String, Option<String>)>,
    /// The same of the request that the origin was asked.
    pub asked: Vec<(String, Option<String>)>,
}

impl Default for Saying {
    fn default() -> Self {
        Self {
            status: 200,
            fields: Vec::new(),
        }
    }
}

/// The cases of a text; panics where it is none, for it is part of the program.
pub fn cases(text: &str) -> Vec<Case> {
    let lines = text.lines();
    let lines = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(Case::parse).collect()
}

impl Case {
    fn parse(line: &str) -> Self {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[clause, origin, before, seconds, last, expected] = columns.as_slice() else {
            panic!("six columns: {line}");
        };
        Self {
            clause: clause.to_owned(),
            origin: Origin::parse(origin),
            before: before.split("&&").map(Asking::parse).collect(),
            seconds: seconds
                .parse()
                .unwrap_or_else(|_| panic!("seconds: {line}")),
            last: Asking::parse(last),
            expected: Expected::parse(expected),
            text: line.to_owned(),
        }
    }
}

/// What `;` divides; it is written `\\;` where it belongs to a part.
fn parts(column: &str) -> impl Iterator<Item = String> {
    let column = column.replace("\\;", "\0");
    let parts: Vec<String> = column
        .split(';')
        .map(|part| part.trim().replace('\0', ";"))
        .collect();
    let parts = parts.into_iter();
    parts.filter(|part| !matches!(part.as_str(), "" | "-"))
}

impl Origin {
    fn parse(column: &str) -> Self {
        let mut origin = Self::default();
        for part in parts(column) {
            if let Some(part) = part.strip_prefix("then ") {
                origin.then.get_or_insert_default().add(part);
            } else if let Some(part) = part.strip_prefix("unsafe ") {
                origin.to_unsafe.add(part);
            } else if let Some(part) = part.strip_prefix("304 ") {
                origin.validating.push(part.to_owned());
            } else {
                origin.first.add(&part);
            }
        }
        origin
    }

    /// What is said to a request: the number of those before it that were no unsafe ones, whether its method is safe.
    pub fn saying(&self, number: usize, is_safe: bool) -> &Saying {
        match (&self.then, is_safe) {
            (_, false) => &self.to_unsafe,
            (Some(then), true) if number > 0 => then,
            _ => &self.first,
        }
    }
}

impl Saying {
    fn add(&mut self, part: &str) {
        match part.strip_prefix(":status ") {
            Some(status) => self.status = status.parse().unwrap_or_else(|_| panic!("{part}")),
            None => self.fields.push(part.to_owned()),
        }
    }

    /// The value of its first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Whether a request with these conditions has what this answer would bring.
    pub fn is_same(&self, if_none_match: &str, if_modified_since: &str) -> bool {
        let is = |name, value: &str| !value.is_empty() && self.field(name) == Some(value);
        is("ETag", if_none_match) || is("Last-Modified", if_modified_since)
    }
}

impl Asking {
    fn parse(column: &str) -> Self {
        let mut asking = Self {
            method: String::from("GET"),
            path: String::from("~/a"),
            fields: Vec::new(),
        };
        for part in parts(column) {
            if let Some(method) = part.strip_prefix(":method ") {
                method.clone_into(&mut asking.method);
            } else if let Some(path) = part.strip_prefix(":path ") {
                path.clone_into(&mut asking.path);
            } else {
                asking.fields.push(part);
            }
        }
        asking
    }

    pub fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

impl Expected {
    fn parse(column: &str) -> Self {
        let mut parts = parts(column);
        let mut expected = Self {
            outcome: parts.next().unwrap_or_default(),
            ..Self::default()
        };
        for part in parts {
            match part.strip_prefix("asked ") {
                Some(part) => expected.asked.push(wanted(part)),
                None => expected.fields.push(wanted(&part)),
            }
        }
        expected
    }
}

fn wanted(part: &str) -> (String, Option<String>) {
    match (part.strip_prefix('!'), part.split_once(':')) {
        (Some(name), _) => (name.to_owned(), None),
        (None, Some((name, value))) => (name.to_owned(), Some(value.trim().to_owned())),
        (None, None) => panic!("a field, or ! and a name: {part}"),
    }
}

/// What was found of the last request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The status of its answer.
    pub status: u16,
    /// The head of its answer.
    pub head: String,
    /// The head of each request that the origin was asked for it.
    pub asked: Vec<String>,
    /// The status that the origin has said to the first of them.
    pub said: Option<u16>,
}

impl Found {
    /// What became of it, in the words of cases. Fields are mentioned only where they are not as they are expected; `Age` may
    /// differ by so many seconds.
    pub fn outcome(&self, expected: &Expected, age_tolerance: u64) -> String {
        // What a cache makes of a whole answer, also of one that it has just got.
        let is_made = matches!(self.status, 206 | 304 | 412 | 416 | 504);
        let mut outcome = match self.asked.as_slice() {
            [] if self.status == 200 => String::from("hit"),
            [] => self.status.to_string(),
            [_, _, ..] => String::from("asked more than once"),
            [_] if is_made => self.status.to_string(),
            [_] if self.said == Some(304) => String::from("validated"),
            [_] if self.status == 200 && self.said != Some(200) => String::from("stale"),
            [_] if self.status == 200 => String::from("forwarded"),
            [_] => format!("forwarded {}", self.status),
        };
        let asked = self.asked.last().map_or("", String::as_str);
        for (head, wanted, prefix) in [
            (self.head.as_str(), &expected.fields, ""),
            (asked, &expected.asked, "asked "),
        ] {
            for (name, value) in wanted {
                let found = header(head, name);
                if !is_equal(name, found.as_deref(), value.as_deref(), age_tolerance) {
                    let found = found.unwrap_or_else(|| String::from("none"));
                    outcome += &format!("; {prefix}{name}: {found}");
                }
            }
        }
        outcome
    }
}

fn is_equal(name: &str, found: Option<&str>, wanted: Option<&str>, age_tolerance: u64) -> bool {
    let seconds = |value: Option<&str>| value.and_then(|value| value.parse::<u64>().ok());
    match (seconds(found), seconds(wanted)) {
        (Some(found), Some(wanted)) if name == "Age" => found.abs_diff(wanted) <= age_tolerance,
        _ => found == wanted,
    }
}

/// The values of a head's fields of this name, joined.
pub fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().skip(1);
    let fields = lines.filter_map(|line| line.split_once(':'));
    let values = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let values: Vec<&str> = values.map(|(_, value)| value.trim()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_case() {
        let text = "# not this\n\n4.3 | ETag: \"a\";then :status 503;304 X: 1;unsafe Location: ~/b \
            | - && :method POST;:path ~/b | 5 | X-A: 1 | hit; Age: 5; !Set-Cookie; asked !Range";
        let cases = cases(text);
        let [case] = cases.as_slice() else {
            panic!("{cases:?}");
        };
        assert_eq!((case.clause.as_str(), case.seconds), ("4.3", 5));
        assert_eq!(case.origin.saying(0, true).field("etag"), Some("\"a\""));
        assert_eq!(case.origin.saying(1, true).status, 503);
        assert_eq!(case.origin.saying(1, false).field("Location"), Some("~/b"));
        assert_eq!(case.origin.validating, ["X: 1"]);
        let [first, second] = case.before.as_slice() else {
            panic!("{case:?}");
        };
        assert!(first.is_safe() && !second.is_safe());
        assert_eq!(second.path, "~/b");
        assert_eq!(case.last.fields, ["X-A: 1"]);
        let age = (String::from("Age"), Some(String::from("5")));
        let cookie = (String::from("Set-Cookie"), None);
        assert_eq!(case.expected.fields, [age, cookie]);
        assert_eq!(case.expected.asked, [(String::from("Range"), None)]);
    }

    #[test]
    fn what_became_of_a_request_is_a_word_and_the_fields_that_differ() {
        let expected = Expected::parse("hit; Age: 5; !Set-Cookie");
        let check = |status, head: &str, said: &[u16], outcome: &str| {
            let found = Found {
                status,
                head: format!("HTTP/1.1 {status}\r\n{head}"),
                asked: said.iter().map(|_| String::from("GET")).collect(),
                said: said.first().copied(),
            };
            assert_eq!(found.outcome(&expected, 0), outcome);
        };
        check(200, "Age: 5\r\n", &[], "hit");
        check(200, "Age: 4\r\n", &[], "hit; Age: 4");
        check(
            200,
            "age: 5\r\nSet-Cookie: a\r\n",
            &[],
            "hit; Set-Cookie: a",
        );
        check(200, "Age: 5\r\n", &[200], "forwarded");
        check(404, "Age: 5\r\n", &[404], "forwarded 404");
        check(200, "Age: 5\r\n", &[304], "validated");
        check(200, "Age: 5\r\n", &[503], "stale");
        check(304, "Age: 5\r\n", &[304], "304");
        check(200, "Age: 5\r\n", &[200, 200], "asked more than once");
        check(504, "", &[], "504; Age: none");
    }

    #[test]
    fn an_age_may_be_a_second_off_where_time_is_real() {
        let expected = Expected::parse("hit; Age: 5");
        for (age, tolerance, outcome) in [(5, 0, "hit"), (6, 1, "hit"), (7, 1, "hit; Age: 7")] {
            let found = Found {
                status: 200,
                head: format!("HTTP/1.1 200\r\nAge: {age}\r\n"),
                ..Found::default()
            };
            assert_eq!(found.outcome(&expected, tolerance), outcome);
        }
    }
}
