//! One subject from start to verdict.

use crate::answer;
use crate::cases::{Case, Subject};
use crate::content::{self, Directory};
use crate::exchange::exchange;
use crate::server::{Program, Server};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

/// nginx and another server with the same configuration and files.
#[derive(Debug)]
pub(crate) struct Pair {
    servers: [Server; 2],
    /// Removed at the end.
    _directory: Directory,
}

impl Pair {
    pub(crate) fn start(subject: &Subject, other: Program) -> Self {
        let directory = Directory::new();
        // The servers may run as another user.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = directory.path().join("files");
        fs::create_dir(&root).unwrap();
        content::make(&root);
        let start =
            |program, name| Server::start(program, subject, &root, &directory.path().join(name));
        Self {
            servers: [start(Program::Nginx, "first"), start(other, "second")],
            _directory: directory,
        }
    }

    /// Both answers, requested at the same time.
    pub(crate) fn answers(&self, case: &Case) -> [String; 2] {
        thread::scope(|scope| {
            let asked = self.servers.each_ref().map(|server| {
                let address = server.address;
                scope.spawn(move || {
                    if let Some(file) = &case.once {
                        server.await_file(file);
                    }
                    let received = exchange(address, &case.sends, case.leaves);
                    let methods = answer::requested_methods(&case.sends.concat());
                    let mut shown = answer::show(&received.bytes, &methods, address.port());
                    let _ = writeln!(shown, "({:?})", received.end);
                    server.without_names(&(shown + &server.take_seen()))
                })
            });
            asked.map(|thread| thread.join().unwrap())
        })
    }

    /// Ends all connections to upstream servers: what was kept says nothing about the next case. Returns what the
    /// upstream servers have been asked meanwhile.
    pub(crate) fn close_connections(&self) -> [String; 2] {
        self.servers.each_ref().map(|server| {
            server.close_connections();
            server.without_names(&server.take_seen())
        })
    }

    /// Ends both, so that their logs are complete.
    pub(crate) fn stop(&mut self) {
        for server in &mut self.servers {
            server.stop();
        }
    }

    /// The same file of both, if it is a log without the parts that may differ.
    pub(crate) fn log(&self, name: &str) -> [String; 2] {
        self.servers.each_ref().map(|server| log_of(server, name))
    }
}

/// Runs all cases of a subject against nginx and against `other`. Returns the failures, one text a case, with both
/// answers where they differ.
pub(crate) fn run(subject: &Subject, other: Program) -> Vec<String> {
    let mut pair = Pair::start(subject, other);
    let mut verdict = Vec::new();
    for case in &subject.cases {
        let [expected, found] = pair.answers(case);
        match &case.differs {
            Some(_) if other == Program::Millstream && expected == found => {
                verdict.push(format!("=== no difference any more: {}\n", case.text));
            }
            Some(id) if other == Program::Millstream => {
                if let Some(unlike) = unlike_beyond(id, &expected, &found) {
                    verdict.push(difference(&case.text, &expected, &found) + unlike);
                }
            }
            _ if expected != found => verdict.push(difference(&case.text, &expected, &found)),
            _ => {}
        }
    }
    pair.stop();
    for name in &subject.compare {
        let [expected, found] = pair.log(name);
        if expected != found {
            verdict.push(difference(name, &expected, &found));
        }
    }
    verdict
}

/// Known differences that are limited to lines with these beginnings; all other lines have to be equal.
const CONFINED: &[(&str, &[&str])] = &[
    ("half-close-while-lingering", &["(Open)", "(Closed)"]),
    ("one-etag", &["ETag: "]),
];

/// The message if answers differ in more than their known difference.
fn unlike_beyond(id: &str, expected: &str, found: &str) -> Option<&'static str> {
    let (_, prefixes) = CONFINED.iter().find(|(known, _)| *known == id)?;
    let others = |text: &str| -> Vec<String> {
        let is_other = |line: &&str| !prefixes.iter().any(|prefix| line.starts_with(prefix));
        text.lines().filter(is_other).map(str::to_owned).collect()
    };
    (others(expected) != others(found)).then_some("they differ in more than is known\n")
}

/// A log without the parts that may differ: time, process, number of the connection.
fn log_of(server: &Server, name: &str) -> String {
    let (file, all_levels) = match name.strip_suffix(" info") {
        Some(file) => (file, true),
        None => (name, false),
    };
    let text = fs::read(server.out.join(file)).unwrap_or_default();
    let text = legible(&text).replace(server.out.to_str().unwrap(), "OUT");
    let text = server.without_names(&text);
    if file != "error.log" {
        return text;
    }
    // 2026/11/21 01:30:00 [error] 123#124: *1 open() …
    let mut lines = String::new();
    for line in text.lines() {
        let level = line.split(' ').nth(2).unwrap_or_default();
        if level == "[info]" && !all_levels {
            continue;
        }
        if let Some((_, message)) = line.split_once(": *")
            && let Some((_, message)) = message.split_once(' ')
        {
            let _ = writeln!(lines, "{level} {message}");
        }
    }
    lines
}

/// Text with escaped control bytes and invalid UTF-8, as Millstream writes error logs and nginx does not
/// (COMPLIANCE.md, `escapes-in-error-logs`).
fn legible(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match u8::try_from(character) {
                Ok(byte) if byte.is_ascii_control() && byte != b'\n' => {
                    let _ = write!(text, "\\x{byte:02X}");
                }
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

/// The text with another number in this column, counted from 0, of its lines of an access log.
pub(crate) fn with_column(text: &str, column: usize, change: impl Fn(usize) -> String) -> String {
    let mut changed = String::new();
    for line in text.lines() {
        let mut columns: Vec<String> = line.split('|').map(str::to_owned).collect();
        if line.starts_with("log |")
            && let Ok(number) = columns[column].parse()
        {
            columns[column] = change(number);
        }
        let _ = writeln!(changed, "{}", columns.join("|"));
    }
    changed
}

/// nginx's lines (-) and the other's (+), around the equal ones. Of long texts only the differences are shown.
pub(crate) fn difference(name: &str, expected: &str, found: &str) -> String {
    let mut text = format!("=== {name}\n");
    let expected: Vec<&str> = expected.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    let common = common_lines(&expected, &found);
    let shows_all = expected.len().max(found.len()) <= LINES_SHOWN_MAX;
    let (mut i, mut j) = (0, 0);
    while i < expected.len() || j < found.len() {
        if i < expected.len() && j < found.len() && expected[i] == found[j] {
            if shows_all {
                let _ = writeln!(text, "  {}", expected[i]);
            }
            (i, j) = (i + 1, j + 1);
        } else if j == found.len() || (i < expected.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(text, "- {}", expected[i]);
            i += 1;
        } else {
            let _ = writeln!(text, "+ {}", found[j]);
            j += 1;
        }
    }
    text
}

/// A text of at most so many lines is shown whole: more than any answer has.
const LINES_SHOWN_MAX: usize = 100;

/// How many lines the texts from line `i` and from line `j` on have in common, at `[i][j]`.
fn common_lines(expected: &[&str], found: &[&str]) -> Vec<Vec<u32>> {
    let mut common = vec![vec![0; found.len() + 1]; expected.len() + 1];
    for i in (0..expected.len()).rev() {
        for j in (0..found.len()).rev() {
            common[i][j] = if expected[i] == found[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    common
}

#[test]
fn a_known_difference_hides_no_other() {
    let check = |expected: &str, found: &str, is_known: bool| {
        let unlike = unlike_beyond("one-etag", expected, found);
        assert_eq!(unlike.is_none(), is_known, "{expected} {found}");
    };
    check("a\nETag: x\nb\n", "a\nb\n", true);
    check("a\nETag: x\nb\n", "a\nc\n", false);
}

#[test]
fn bytes_that_are_not_text_are_escaped() {
    assert_eq!(legible(b"a\t\xffb\n\xc3\xa9"), "a\\x09\\xFFb\n\u{e9}");
}

#[test]
fn a_difference_shows_both_sides() {
    let expected = "=== name\n  a\n- b\n+ B\n  c\n+ d\n";
    assert_eq!(difference("name", "a\nb\nc\n", "a\nB\nc\nd\n"), expected);
    let long = "same\n".repeat(200);
    let (one, other) = (format!("{long}a\n{long}"), format!("{long}b\n{long}"));
    assert_eq!(difference("name", &one, &other), "=== name\n- a\n+ b\n");
}
