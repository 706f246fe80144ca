//! What is shown of a request: its parts, and the same without one of them.

use crate::trial::with_column;

pub(super) fn without_lines(text: &str, is_left_out: impl Fn(&str) -> bool) -> String {
    let lines = text.lines().filter(|line| !is_left_out(line));
    lines.map(|line| format!("{line}\n")).collect()
}

pub(super) const CONTINUE: &str = "HTTP/1.1 100 Continue\n\n";

pub(super) const LENGTH_OF_100: usize = "HTTP/1.1 100 Continue\r\n\r\n".len();

/// nginx counts the bytes of 100 as content.
pub(super) fn without_length_of_100(text: &str) -> String {
    let Some(at) = text.find("\nlog |") else {
        return text.to_owned();
    };
    let end = text[at + 1..]
        .find('\n')
        .map_or(text.len(), |len| at + 1 + len + 1);
    let less = |len: usize| len.saturating_sub(LENGTH_OF_100).to_string();
    let line = with_column(&text[at + 1..end], 2, less);
    format!("{}{line}{}", &text[..=at], &text[end..])
}

/// Leaves out what exactly is wrong with the head of an answer.
pub(super) fn without_reason(text: &str) -> String {
    const TEXT: &str = "upstream sent invalid header";
    let lines = text.lines().map(|line| {
        let (at, end) = (line.find(TEXT), line.find(" while reading response header"));
        match (at, end) {
            (Some(at), Some(end)) => format!("{}{}\n", &line[..at + TEXT.len()], &line[end..]),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// That of the answer.
pub(super) fn content_type(text: &str) -> Option<String> {
    let mut lines = text.lines().take_while(|line| !line.is_empty());
    let kind = lines.find_map(|line| line.strip_prefix("Content-Type: "));
    kind.map(str::to_owned)
}

/// Leaves out a line of the answer's head.
pub(super) fn without_in_head(text: &mut String, line: &str) {
    let end = text.find("\n\n").map_or(0, |end| end + 1);
    let head = text[..end].replacen(&format!("\n{line}\n"), "\n", 1);
    text.replace_range(..end, &head);
}

/// The bytes of requests that all tries have sent, if the log says so.
pub(super) fn sent(text: &str) -> Option<usize> {
    let tries = column(text, SENT)
        .split([',', ':', ' '])
        .filter(|part| !part.is_empty());
    tries.map(|sent| sent.parse::<usize>().ok()).sum()
}

/// What is shown of an answer that the end of the connection cuts, or ends.
pub(super) const CUT: &str = "\n(to the end of the connection)\n";

/// `$upstream_response_length`.
pub(super) const LENGTH: usize = 5;

/// `$upstream_bytes_sent`.
pub(super) const SENT: usize = 6;

/// `$upstream_bytes_received`.
pub(super) const RECEIVED: usize = 7;

pub(super) fn column(text: &str, column: usize) -> &str {
    let mut lines = text.lines().filter(|line| line.starts_with("log |"));
    lines
        .next()
        .and_then(|line| line.split('|').nth(column))
        .unwrap_or_default()
}

/// An answer that is cut, or none at all.
pub(super) fn is_cut(text: &str) -> bool {
    text.contains(CUT) || text.starts_with('(')
}

/// Leaves out the content, how it ended, and its length in the log.
pub(super) fn without_content(text: &str) -> String {
    let head = text.find("\n\n").filter(|_| !text.starts_with('('));
    let end = text.find(CUT).map_or(0, |at| at + CUT.len());
    let text = head.map_or_else(
        || text.to_owned(),
        |head| format!("{}\n{}", &text[..head], &text[end..]),
    );
    let text = without_lines(&text, |line| line.starts_with("Content-Length: "));
    let text = text.replacen("(Reset)\n", "(Closed)\n", 1);
    // nginx may read on behind what is wrong, and says at which moment it saw that.
    let text = text.replace(
        "response while reading response header from",
        "response while reading",
    );
    let text = text.replace(
        "while reading response header from upstream, client",
        "while reading upstream, client",
    );
    [2, LENGTH, RECEIVED]
        .iter()
        .fold(text, |text, &index| with_any(&text, index))
}

/// The same with `some` in this column.
pub(super) fn with_any(text: &str, index: usize) -> String {
    let lines = text.lines().map(|line| {
        let mut columns: Vec<&str> = line.split('|').collect();
        if line.starts_with("log |") {
            columns[index] = "some";
        }
        columns.join("|") + "\n"
    });
    lines.collect()
}
