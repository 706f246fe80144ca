//! What two runs of one server could differ in, and the length of the server's name.

use super::text::{CONTINUE, LENGTH_OF_100, SENT, with_any, without_lines};
use crate::server::Program;
use crate::trial::with_column;
use std::fmt::Write;

/// Makes equal what two runs of one server could differ in, and the length of the server's name.
pub(crate) fn level(nginx: &mut String, other: &mut String, program: Program) {
    let is_named = program == Program::Millstream;
    for text in [&mut *nginx, other] {
        *text = number_of_file(text);
        // The number of chunks, and so of bytes, depends on the moments in which content came.
        if text.contains("\nTransfer-Encoding: chunked\n")
            || text.contains("\nContent-Encoding: gzip\n")
        {
            *text = with_column(text, 2, |_| String::from("some"));
        }
        if text.contains("\n  Transfer-Encoding: chunked\n") {
            *text = with_any(text, SENT);
        }
        // It depends on how fast the client reads.
        *text = without_lines(text, |line| {
            line.contains("an upstream response is buffered to a temporary file")
        });
    }
    if is_named && other.contains(PAGE) && nginx.contains(PAGE) {
        let is_log = |line: &&str| line.starts_with("log |");
        let length = |line: &str| line.split('|').nth(2)?.parse::<usize>().ok();
        let mut expected = nginx.lines().filter(is_log).map(length);
        let lines = other.lines().map(|line| {
            let is_shorter = is_log(&line)
                && expected.next().is_some_and(|expected| {
                    expected.is_some_and(|len| {
                        let without_100 = len.saturating_sub(LENGTH_OF_100);
                        let page = length(line).and_then(|len| len.checked_sub(NAME_LONGER));
                        page == Some(len)
                            || nginx.starts_with(CONTINUE) && page == Some(without_100)
                    })
                });
            let less = |sent: usize| (sent - NAME_LONGER).to_string();
            if is_shorter {
                with_column(line, 2, less)
            } else {
                format!("{line}\n")
            }
        });
        *other = lines.collect();
    }
    if is_named {
        level_length(nginx, other);
    }
}

/// The length of a content that an answer to HEAD does not show: of a page with the server's name, or of another one.
fn level_length(nginx: &mut String, other: &str) {
    const LINE: (&str, &str) = ("Content-Length: ", " and the name\n");
    let length = |text: &str| -> Option<usize> {
        let (_, rest) = text.split_once(LINE.0)?;
        rest.split_once(LINE.1)?.0.parse().ok()
    };
    if let (Some(ours), Some(theirs)) = (length(other), length(nginx))
        && theirs.saturating_sub(NAME_LONGER) == ours
    {
        let line = |length: usize| format!("{}{length}{}", LINE.0, LINE.1);
        *nginx = nginx.replace(&line(theirs), &line(ours));
    }
}

/// Bytes.
const NAME_LONGER: usize = "millstream".len() - "nginx".len();

/// What a page of the server's own has.
const PAGE: &str = "<center>SERVER</center>";

/// Replaces the number in the name of a temporary file.
fn number_of_file(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let found = ["OUT/body/", "OUT/proxy/"]
            .iter()
            .find_map(|name| line.find(name).map(|at| at + name.len()));
        match found {
            Some(at) => {
                let digits = line[at..]
                    .find(|byte: char| !(byte.is_ascii_digit() || byte == '/'))
                    .unwrap_or(0);
                let _ = writeln!(shown, "{}N{}", &line[..at], &line[at + digits..]);
            }
            None => {
                let _ = writeln!(shown, "{line}");
            }
        }
    }
    shown
}
