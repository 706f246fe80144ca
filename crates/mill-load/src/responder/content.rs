//! Answers as bytes, correct or faulty.

use super::head::Connection;
use core::fmt::Write;
use mill_runtime::payload::Shared;
use std::ops::Range;

/// How a responder misbehaves, for tests of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sends bytes that are not HTTP.
    Garbage,
    /// Reads, and never answers.
    Silence,
    /// Closes after so many bytes of the answer.
    CloseAfter(usize),
    /// Announces a content of so many bytes, whatever its length.
    Length(usize),
    /// Resets the connection instead of answering.
    Reset,
}

impl Fault {
    /// Parses `garbage`, `silence`, `close-after:N`, `length:N`, `reset`; the error is a message.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "\"{text}\" is no fault; use garbage, silence, close-after:BYTES, length:BYTES or reset"
            )
        };
        let number = |digits: &str| digits.parse().map_err(|_| refused());
        match text.split_once(':') {
            None if text == "garbage" => Ok(Self::Garbage),
            None if text == "silence" => Ok(Self::Silence),
            None if text == "reset" => Ok(Self::Reset),
            Some(("close-after", digits)) => Ok(Self::CloseAfter(number(digits)?)),
            Some(("length", digits)) => Ok(Self::Length(number(digits)?)),
            _ => Err(refused()),
        }
    }
}

/// The rendered answers: one for each value of `Connection`.
#[derive(Debug)]
pub(super) struct RenderedAnswers {
    persistent: Answer,
    keep_alive: Answer,
    close: Answer,
}

#[derive(Debug)]
struct Answer {
    bytes: Shared,
    head_bytes: usize,
}

impl RenderedAnswers {
    pub(super) fn new(content_bytes: usize, fault: Option<Fault>) -> Self {
        let answer = |field: &str| Answer::new(content_bytes, fault, field);
        Self {
            persistent: answer(""),
            keep_alive: answer("Connection: keep-alive\r\n"),
            close: answer("Connection: close\r\n"),
        }
    }

    /// The bytes to send, and which of them.
    pub(super) fn pick(&self, connection: Connection, is_head: bool) -> (Shared, Range<usize>) {
        let answer = match connection {
            Connection::Persistent => &self.persistent,
            Connection::KeepAlive => &self.keep_alive,
            Connection::Close => &self.close,
        };
        let end = if is_head {
            answer.head_bytes
        } else {
            answer.bytes.len()
        };
        (Shared::clone(&answer.bytes), 0..end)
    }
}

impl Answer {
    fn new(content_bytes: usize, fault: Option<Fault>, field: &str) -> Self {
        if fault == Some(Fault::Garbage) {
            return Self {
                bytes: Shared::from(GARBAGE),
                head_bytes: GARBAGE.len(),
            };
        }
        let length = match fault {
            Some(Fault::Length(length)) => length,
            _ => content_bytes,
        };
        let mut head = String::from("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n");
        // Writing into a string never fails.
        let _ = write!(head, "Content-Length: {length}\r\n{field}\r\n");
        let head_bytes = head.len();
        let mut bytes = head.into_bytes();
        bytes.extend(CONTENT.iter().cycle().take(content_bytes));
        if let Some(Fault::CloseAfter(most)) = fault {
            bytes.truncate(most);
        }
        Self {
            head_bytes: head_bytes.min(bytes.len()),
            bytes: Shared::from(bytes),
        }
    }
}

/// The content is this, repeated.
const CONTENT: &[u8] = b"hello\n";

/// A line of another protocol (RFC 5321).
const GARBAGE: &[u8] = b"220 mail.example ESMTP\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fault: Option<Fault>, connection: Connection, is_head: bool) -> String {
        let (bytes, range) = RenderedAnswers::new(8, fault).pick(connection, is_head);
        String::from_utf8(bytes[range].to_vec()).unwrap()
    }

    #[test]
    fn an_answer_has_its_length_and_the_connections_persistence() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n";
        let check = |connection, is_head, rest: &str| {
            assert_eq!(text(None, connection, is_head), format!("{head}{rest}"));
        };
        check(Connection::Persistent, false, "\r\nhello\nhe");
        check(Connection::Persistent, true, "\r\n");
        check(
            Connection::KeepAlive,
            false,
            "Connection: keep-alive\r\n\r\nhello\nhe",
        );
        check(
            Connection::Close,
            false,
            "Connection: close\r\n\r\nhello\nhe",
        );
    }

    #[test]
    fn faults_are_in_the_bytes() {
        let check = |fault: &str, expected: &str| {
            let fault = Fault::parse(fault).unwrap();
            let text = text(Some(fault), Connection::Persistent, false);
            assert!(text.contains(expected), "{fault:?}: {text}");
        };
        check("garbage", "220 ");
        check("length:100", "Content-Length: 100\r\n\r\nhello\nhe");
        let cut = text(Some(Fault::CloseAfter(9)), Connection::Persistent, false);
        assert_eq!(cut, "HTTP/1.1 ");
    }

    #[test]
    fn malformed_faults_are_quoted() {
        for word in [
            "",
            "garbag",
            "reset:1",
            "length:",
            "length:x",
            "close-after",
        ] {
            let error = Fault::parse(word).unwrap_err();
            assert!(
                error.starts_with(&format!("\"{word}\" is no fault")),
                "{error}"
            );
        }
    }
}
