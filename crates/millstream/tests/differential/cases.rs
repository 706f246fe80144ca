//! The text files with configurations and requests.
//!
//! ```text
//! # A comment.
//! [http]                     directives of the http block
//! [server]                   directives of a server for localhost; without this section [http] brings its servers
//! [compare]                  files of the server's directory to compare afterwards: access.log, or error.log, whose
//!                            lines of level info count only when this word follows
//! [origin]                   answers of an upstream server, each with its name: `ok = HTTP/1.1 200 OK¶¶`
//! [cases]
//! GET /a.txt                                 HTTP/1.1 with Host: localhost and Connection: close
//! HEAD /a.txt HTTP/1.0 | Range: bytes=0-1    field lines after bars; Host and Connection replace those above
//! GET /a.txt | -Host | = text                without Host; with content and its Content-Length
//! raw: GET / HTTP/1.1¶Host: a¶¶              the bytes themselves
//! differs some-id: GET /                     known to be different
//! closes: GET /                              the client closes a moment after it has sent that
//! once stored/a: GET /                       sent when the server's directory has this file
//! ```
//!
//! Everywhere in a case: `¶` is CR LF, `\r` `\n` `\t` `\0` `\xHH` `\\` are bytes, `{a*9000}` is repetition, `⏸` waits
//! for the server before the rest is sent. In directives `%ROOT%` is the directory of the files, `%OUT%` the server's
//! own, `%PORT%` its port, `%ORIGIN%` and `%SECOND%` two upstream servers (`origin.rs`). A script of theirs that begins
//! with `⇤` does not wait for the request's content; at its end `✂` closes the connection, `↯` resets it, `⇄` sends back
//! what arrives. A script `second:NAME` is of the second server only.

use crate::exchange::Leaves;
use crate::origin::{Script, ScriptEnd, Scripts};

/// One file of cases.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) http: String,
    pub(crate) server: Option<String>,
    pub(crate) compare: Vec<String>,
    pub(crate) cases: Vec<Case>,
    /// What upstream servers answer, by name.
    pub(crate) scripts: Scripts,
    /// What those of nginx answer in their place.
    pub(crate) reference: Scripts,
}

/// What is sent on one connection.
#[derive(Debug)]
pub(crate) struct Case {
    /// As it stands in the file.
    pub(crate) text: String,
    /// The name under which COMPLIANCE.md explains why the answers differ.
    pub(crate) differs: Option<String>,
    /// A file of the server's own directory that it makes behind an answer: its appearance is awaited first.
    pub(crate) once: Option<String>,
    /// Sent one after the other, waiting for the server in between.
    pub(crate) sends: Vec<Vec<u8>>,
    pub(crate) leaves: Leaves,
}

impl Subject {
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut subject = Self {
            name: name.to_owned(),
            http: String::new(),
            server: None,
            compare: Vec::new(),
            cases: Vec::new(),
            scripts: Scripts::new(),
            reference: Scripts::new(),
        };
        let mut section = "";
        for line in text.lines() {
            let is_comment = line.starts_with('#') || line.trim().is_empty();
            match (line, section) {
                ("[http]" | "[server]" | "[compare]" | "[origin]" | "[cases]", _) => section = line,
                _ if is_comment => {}
                (_, "[http]") => push_line(&mut subject.http, line),
                (_, "[server]") => push_line(subject.server.get_or_insert_default(), line),
                (_, "[compare]") => subject.compare.push(line.to_owned()),
                (_, "[origin]") => {
                    let (name, script) = line.split_once(" = ").expect("NAME = SCRIPT");
                    subject
                        .scripts
                        .insert(name.to_owned(), parse_script(script));
                }
                (_, "[cases]") => subject.cases.push(Case::parse(line)),
                _ => panic!("{name}: a line before the first section: {line}"),
            }
        }
        subject
    }

    /// The scripts of the first upstream server, or of the second one.
    pub(crate) fn scripts_of(&self, is_second: bool) -> Scripts {
        let mut scripts = self.scripts.clone();
        let own = self.scripts.iter().filter(|_| is_second);
        let own = own.filter_map(|(name, script)| Some((name.strip_prefix("second:")?, script)));
        scripts.extend(own.map(|(name, script)| (name.to_owned(), script.clone())));
        scripts
    }
}

fn parse_script(text: &str) -> Script {
    let (is_early, text) = match text.strip_prefix('⇤') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let ends = [
        ('✂', ScriptEnd::Close),
        ('↯', ScriptEnd::Reset),
        ('⇄', ScriptEnd::Echo),
    ];
    let end = ends.iter().find(|(mark, _)| text.ends_with(*mark));
    let text = end.map_or(text, |(mark, _)| text.trim_end_matches(*mark));
    Script {
        is_early,
        is_late: false,
        parts: text.split('⏸').map(unescape).collect(),
        end: end.map_or(ScriptEnd::Keep, |(_, end)| *end),
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

impl Case {
    fn parse(line: &str) -> Self {
        let (differs, rest) = match line.strip_prefix("differs ") {
            Some(rest) => {
                let (id, rest) = rest.split_once(": ").expect("an id ends in a colon");
                (Some(id.to_owned()), rest)
            }
            None => (None, line),
        };
        let (once, rest) = match rest.strip_prefix("once ") {
            Some(rest) => {
                let (file, rest) = rest.split_once(": ").expect("a path ends in a colon");
                (Some(file.to_owned()), rest)
            }
            None => (None, rest),
        };
        let (leaves, rest) = match rest.strip_prefix("closes: ") {
            Some(rest) => (Leaves::Closes, rest),
            None => (Leaves::AtEnd, rest),
        };
        let written = match rest.strip_prefix("raw: ") {
            Some(raw) => raw.to_owned(),
            None => spell_out(rest),
        };
        Self {
            text: line.to_owned(),
            differs,
            once,
            sends: written.split('⏸').map(unescape).collect(),
            leaves,
        }
    }
}

/// Expands the short form of a request.
fn spell_out(line: &str) -> String {
    let mut parts = line.split(" | ").map(str::trim);
    let start = parts.next().unwrap_or_default();
    let words: Vec<&str> = start.split(' ').collect();
    let mut request = match words.as_slice() {
        [method, target] => format!("{method} {target} HTTP/1.1¶"),
        [_, _, _] => format!("{start}¶"),
        _ => panic!("not a request: {line}"),
    };
    let (mut host, mut connection) = (Some("Host: localhost"), Some("Connection: close"));
    let mut fields = Vec::new();
    let mut content = "";
    for part in parts {
        let lower = part.to_ascii_lowercase();
        match part {
            "-Host" => host = None,
            "-Connection" => connection = None,
            _ if part.starts_with("= ") => content = &part[2..],
            _ if lower.starts_with("host:") => host = Some(part),
            _ if lower.starts_with("connection:") => connection = Some(part),
            _ => fields.push(part.to_owned()),
        }
    }
    if !content.is_empty() {
        fields.push(format!("Content-Length: {}", unescape(content).len()));
    }
    let own = host.into_iter().chain(connection).map(str::to_owned);
    for field in own.chain(fields) {
        request.push_str(&field);
        request.push('¶');
    }
    request.push('¶');
    request.push_str(content);
    request
}

/// Replaces escapes and repetitions by their bytes.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        rest = match character {
            '¶' => {
                bytes.extend_from_slice(b"\r\n");
                after
            }
            '\\' => escape(after, &mut bytes),
            '{' => match repetition(after) {
                Some((unit, count, after)) => {
                    bytes.extend(unescape(unit).repeat(count));
                    after
                }
                None => {
                    bytes.push(b'{');
                    after
                }
            },
            character => {
                let mut buffer = [0; 4];
                bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
                after
            }
        };
    }
    bytes
}

/// Appends the byte of an escape; returns the rest.
fn escape<'t>(after: &'t str, bytes: &mut Vec<u8>) -> &'t str {
    let mut characters = after.chars();
    let byte = match characters.next() {
        Some('r') => b'\r',
        Some('n') => b'\n',
        Some('t') => b'\t',
        Some('0') => 0,
        Some('x') => {
            let digits = after.get(1..3).expect("two digits after \\x");
            bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal digits"));
            return &after[3..];
        }
        Some('\\') => b'\\',
        other => panic!("no such escape: {other:?}"),
    };
    bytes.push(byte);
    characters.as_str()
}

/// Parses `a*9000}`: the text, the number, and the rest.
fn repetition(after: &str) -> Option<(&str, usize, &str)> {
    let (inside, after) = after.split_once('}')?;
    let (unit, count) = inside.rsplit_once('*')?;
    Some((unit, count.parse().ok()?, after))
}

#[test]
fn a_short_case_is_spelled_out() {
    let check = |line: &str, expected: &str| {
        let sends = Case::parse(line).sends;
        let sends: Vec<_> = sends
            .iter()
            .map(|send| send.escape_ascii().to_string())
            .collect();
        assert_eq!(sends.join("<pause>"), expected, "{line}");
    };
    check(
        "GET /",
        r"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    check(
        "GET / HTTP/1.0 | -Host | -Connection",
        r"GET / HTTP/1.0\r\n\r\n",
    );
    check(
        "POST / | Host: a | = {ab*2}",
        r"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nabab",
    );
    check(r"raw: a\x00\t{x}⏸b", r"a\x00\t{x}<pause>b");
    assert_eq!(
        Case::parse("differs why: GET /").differs.as_deref(),
        Some("why")
    );
    assert_eq!(Case::parse("once a/b: GET /").once.as_deref(), Some("a/b"));
}
