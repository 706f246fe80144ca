//! An answer in its parts, without those that may differ: the date, the server's name, ports, boundaries, chunk sizes.

use flate2::read::GzDecoder;
use std::fmt::Write;
use std::io::Read;

/// One answer.
#[derive(Debug, Default)]
struct Answer {
    head: String,
    content: Vec<u8>,
    trailers: String,
    /// Bytes of all of it.
    len: usize,
    /// It ended where its framing says.
    is_whole: bool,
}

/// The methods of all requests in these bytes, to know which answers have no content.
pub(crate) fn requested_methods(sent: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(sent);
    let lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let requests = lines.filter(|line| line.contains(" HTTP/1.") && !line.contains(": "));
    requests
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect()
}

/// Whether every request has its whole answer.
pub(crate) fn are_complete(received: &[u8], methods: &[String]) -> bool {
    let answers = take_apart(received, methods);
    let is_final = |answer: &&Answer| answer.is_whole && !answer.head.starts_with("HTTP/1.1 1");
    answers.iter().filter(is_final).count() >= methods.len().max(1)
}

/// The answers as text, for comparing and for showing.
pub(crate) fn show(received: &[u8], methods: &[String], port: u16) -> String {
    let mut shown = String::new();
    for answer in take_apart(received, methods) {
        shown.push_str(&without_names(&answer.show(), port));
    }
    shown
}

/// Removes the server's name and its port.
pub(crate) fn without_names(text: &str, port: u16) -> String {
    let mut text = text.replace(&format!(":{port}"), ":PORT");
    for name in [
        "nginx/1.22.1",
        concat!("millstream/", env!("CARGO_PKG_VERSION")),
    ] {
        text = text.replace(name, "SERVER/VERSION");
    }
    for name in ["nginx", "millstream"] {
        text = text.replace(
            &format!("<center>{name}</center>"),
            "<center>SERVER</center>",
        );
        text = text.replace(&format!("Server: {name}\n"), "Server: SERVER\n");
    }
    text
}

fn take_apart(mut bytes: &[u8], methods: &[String]) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut methods = methods.iter();
    let mut method = methods.next();
    while !bytes.is_empty() {
        let is_head = method.is_some_and(|method| method == "HEAD");
        let answer = Answer::parse(bytes, is_head);
        bytes = bytes.get(answer.len..).unwrap_or_default();
        if !answer.head.starts_with("HTTP/1.1 1") {
            method = methods.next();
        }
        answers.push(answer);
    }
    answers
}

impl Answer {
    fn parse(bytes: &[u8], is_head: bool) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end.filter(|_| bytes.starts_with(b"HTTP/")) else {
            return Self {
                content: bytes.to_vec(),
                len: bytes.len(),
                ..Self::default()
            };
        };
        let (head, rest) = (&bytes[..end], &bytes[end + 4..]);
        let head = String::from_utf8_lossy(head).replace("\r\n", "\n");
        let mut answer = Self {
            head,
            is_whole: true,
            ..Self::default()
        };
        let status = answer.head.split(' ').nth(1).unwrap_or_default();
        let is_bare = is_head || status.starts_with('1') || matches!(status, "204" | "304");
        let content_len = if is_bare {
            0
        } else if answer
            .field("transfer-encoding")
            .is_some_and(|coding| coding == "chunked")
        {
            answer.parse_chunks(rest)
        } else {
            let announced = answer
                .field("content-length")
                .and_then(|len| len.parse().ok());
            let len = announced.unwrap_or(rest.len());
            answer.is_whole = announced.is_some() && len <= rest.len();
            answer.content = rest.get(..len).unwrap_or(rest).to_vec();
            answer.content.len()
        };
        answer.len = end + 4 + content_len;
        answer
    }

    fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    /// Decodes chunked content; returns its length with the framing.
    fn parse_chunks(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some((size, next)) = line(bytes, at) {
            let size = size.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                break;
            };
            if size == 0 {
                return self.parse_trailers(bytes, next);
            }
            let Some(chunk) = bytes.get(next..next + size) else {
                break;
            };
            self.content.extend_from_slice(chunk);
            at = next + size + 2;
        }
        self.is_whole = false;
        bytes.len()
    }

    fn parse_trailers(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some((trailer, next)) = line(bytes, at) {
            at = next;
            if trailer.is_empty() {
                return at;
            }
            let _ = writeln!(self.trailers, "{trailer}");
        }
        self.is_whole = false;
        bytes.len()
    }

    /// The status line, then the field lines by name: only the order of lines with equal names means something
    /// (RFC 9110 5.3).
    fn sorted_head(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.head.lines().collect();
        let name_of = |line: &&str| line.split(':').next().map(str::to_ascii_lowercase);
        if let Some((_, fields)) = lines.split_first_mut() {
            fields.sort_by_key(name_of);
        }
        lines
    }

    /// Whether the server's name is in the content: in generated pages. An answer to HEAD does not show its content,
    /// but files have a date.
    fn names_server(&self) -> bool {
        let content = String::from_utf8_lossy(&self.content);
        let name = self.field("server").unwrap_or_default();
        let is_error = !self.head.starts_with("HTTP/1.1 2");
        let is_hidden_page = self.content.is_empty() && is_error;
        content.contains(&format!("<center>{name}</center>"))
            || is_hidden_page && self.field("last-modified").or(self.field("etag")).is_none()
    }

    /// A length without that of the server's name.
    fn show_len(&self, len: &str) -> String {
        let len: usize = len.parse().unwrap_or(0);
        let name = self.field("server").unwrap_or_default();
        format!(
            "Content-Length: {} and the name",
            len.saturating_sub(name.len())
        )
    }

    fn show(&self) -> String {
        let mut shown = String::new();
        let boundary = self
            .field("content-type")
            .and_then(|kind| kind.split_once("boundary="));
        let boundary = boundary.map(|(_, boundary)| boundary.to_owned());
        for line in self.sorted_head() {
            let line = match line.split_once(": ") {
                Some(("Date", date)) if is_date(date) => String::from("Date: DATE"),
                Some(("Expires", date)) if is_date(date) => show_expires(date),
                Some(("Content-Length", len)) if self.names_server() => self.show_len(len),
                _ => line.to_owned(),
            };
            let _ = writeln!(shown, "{line}");
        }
        shown.push('\n');
        let is_gzip = self
            .field("content-encoding")
            .is_some_and(|coding| coding == "gzip");
        if is_gzip && !self.content.is_empty() {
            let mut plain = Vec::new();
            match GzDecoder::new(self.content.as_slice()).read_to_end(&mut plain) {
                Ok(_) => shown.push_str(&show_content(&plain)),
                Err(error) => {
                    let _ = writeln!(shown, "(not gzip: {error})");
                }
            }
        } else {
            shown.push_str(&show_content(&self.content));
        }
        shown.push_str(&self.trailers);
        if !self.is_whole {
            shown.push_str("(to the end of the connection)\n");
        }
        match boundary {
            Some(boundary) => shown.replace(&boundary, "BOUNDARY"),
            None => shown,
        }
    }
}

/// The line that begins at `at`, without its end, and where the next one begins.
fn line(bytes: &[u8], at: usize) -> Option<(String, usize)> {
    let rest = bytes.get(at..)?;
    let len = rest.windows(2).position(|window| window == b"\r\n")?;
    Some((
        String::from_utf8_lossy(&rest[..len]).into_owned(),
        at + len + 2,
    ))
}

fn is_date(value: &str) -> bool {
    value.len() == 29 && value.ends_with(" GMT")
}

/// Dates of the distant past and future are fixed; others depend on the clock.
fn show_expires(date: &str) -> String {
    if date.contains(" 1970 ") || date.contains(" 2037 ") {
        format!("Expires: {date}")
    } else {
        String::from("Expires: DATE")
    }
}

/// Lines if it is text, else each byte; long content by its length and a sum over all bytes.
pub(crate) fn show_content(content: &[u8]) -> String {
    if content.len() > CONTENT_SHOWN_MAX {
        let step = |sum: u64, &byte: &u8| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        let sum = content.iter().fold(7, step);
        return format!("({} bytes, sum {sum:x})\n", content.len());
    }
    let mut shown = content.escape_ascii().to_string().replace("\\n", "\n");
    if !shown.is_empty() {
        shown.push('\n');
    }
    shown
}

/// Bytes of content that are compared as text.
const CONTENT_SHOWN_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &str, methods: &[&str]) -> String {
        let methods: Vec<String> = methods.iter().map(|&method| method.to_owned()).collect();
        show(bytes.as_bytes(), &methods, 8080)
    }

    #[test]
    fn chunks_are_joined_and_names_taken_out() {
        let bytes = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 02:06:26 GMT\r\n\
                     Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        let expected = "HTTP/1.1 200 OK\nDate: DATE\nServer: SERVER/VERSION\n\
                        Transfer-Encoding: chunked\n\nabc\n";
        assert_eq!(shown(bytes, &["GET"]), expected);
    }

    #[test]
    fn an_answer_to_head_has_no_content_and_the_next_one_follows() {
        let bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        let expected = "HTTP/1.1 200 OK\nContent-Length: 5\n\nHTTP/1.1 204 No Content\n\n";
        assert_eq!(shown(bytes, &["HEAD", "GET"]), expected);
        let methods = [String::from("HEAD"), String::from("GET")];
        assert!(are_complete(bytes.as_bytes(), &methods));
        assert!(!are_complete(&bytes.as_bytes()[..40], &methods));
    }

    #[test]
    fn different_content_is_shown_differently() {
        let answer = |content: &str| {
            let len = content.len();
            shown(
                &format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{content}"),
                &["GET"],
            )
        };
        let (one, other) = ("a".repeat(9000), format!("{}b", "a".repeat(8999)));
        assert_ne!(answer(&one), answer(&other));
        assert_ne!(answer("a"), answer("b"));
        assert_ne!(answer("a\n"), answer("a\\n"));
    }

    #[test]
    fn the_length_of_the_servers_name_does_not_count() {
        let answer = |name: &str, method: &str| {
            let content = format!("<hr><center>{name}</center>");
            let head = format!(
                "HTTP/1.1 404 Not Found\r\nServer: {name}\r\nContent-Length: {}\r\n\r\n",
                content.len()
            );
            let content = if method == "HEAD" { "" } else { &content };
            shown(&format!("{head}{content}"), &[method])
        };
        let millstream = concat!("millstream/", env!("CARGO_PKG_VERSION"));
        for method in ["GET", "HEAD"] {
            assert_eq!(answer("nginx/1.22.1", method), answer(millstream, method));
            assert_eq!(answer("nginx", method), answer("millstream", method));
        }
    }

    #[test]
    fn methods_are_those_of_request_lines() {
        let sent =
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.0\r\nX: GET / HTTP/1.1\r\n\r\n";
        assert_eq!(requested_methods(sent), ["GET", "HEAD"]);
    }
}
