//! Tokens of Tempesta FW's language, byte for byte as its tokenizer takes them (fw/cfg.c), with their places.
//!
//! A literal ends at white space, `"`, `#`, `{`, `}`, `;`, `=`, and before `!=` and `->`; a backslash takes the next byte
//! into it. Only `"` quotes. `~` is a token where a literal could begin, and a byte of it elsewhere. A backslash at the
//! end of a line joins the next one.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::lexer::SourceText;
use crate::resolve::draft::Origin;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, quoted or not.
    Literal,
    /// `{`
    Open,
    /// `}`
    Close,
    /// `;`
    Semicolon,
    /// `=`
    Assign,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `~`
    Matches,
    /// `->`
    Arrow,
    /// The end of the text.
    End,
}

/// One word of a directive, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Term {
    /// Without quotes and backslashes.
    pub(super) bytes: Vec<u8>,
    /// Without quotes, with backslashes: patterns of rules give them a meaning of their own.
    pub(super) raw: Vec<u8>,
    /// Its place, quotes included.
    pub(super) origin: Origin,
}

impl Term {
    /// For messages.
    pub(super) fn display(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether it is this keyword; Tempesta FW compares them without regard to case.
    pub(super) fn is(&self, word: &str) -> bool {
        self.bytes.eq_ignore_ascii_case(word.as_bytes())
    }

    /// An error about it.
    pub(super) fn error(&self, message: impl Into<String>) -> Box<Diagnostic> {
        self.origin.error(message)
    }
}

/// A token with its text.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) term: Term,
    /// It was written without quotes.
    pub(super) is_bare: bool,
}

/// A position in a text.
#[derive(Debug)]
pub(super) struct Lexer {
    text: Arc<SourceText>,
    position: usize,
    line: u32,
}

impl Lexer {
    /// The beginning of a text.
    pub(super) fn new(text: Arc<SourceText>) -> Self {
        Self {
            text,
            position: 0,
            line: 1,
        }
    }

    /// The next token; an error if a quote is not closed.
    pub(super) fn next(&mut self) -> Result<Token, Box<Diagnostic>> {
        let text = Arc::clone(&self.text);
        let bytes = text.bytes.as_slice();
        self.skip_space(bytes);
        let start = self.position;
        let (first, second) = (bytes.get(start), bytes.get(start + 1));
        let (kind, len) = match (first, second) {
            (None, _) => (Kind::End, 0),
            (Some(b'{'), _) => (Kind::Open, 1),
            (Some(b'}'), _) => (Kind::Close, 1),
            (Some(b';'), _) => (Kind::Semicolon, 1),
            (Some(b'='), Some(b'=')) => (Kind::Equal, 2),
            (Some(b'='), _) => (Kind::Assign, 1),
            (Some(b'!'), Some(b'=')) => (Kind::Unequal, 2),
            (Some(b'-'), Some(b'>')) => (Kind::Arrow, 2),
            (Some(b'~'), _) => (Kind::Matches, 1),
            (Some(b'"'), _) => return self.quoted(bytes),
            _ => return Ok(self.bare(bytes)),
        };
        self.position += len;
        let raw = bytes.get(start..self.position).unwrap_or_default();
        Ok(self.token(kind, raw, start, self.line))
    }

    /// The rest of the line after the last token, for `!include`.
    pub(super) fn rest_of_line(&mut self) -> Term {
        let text = Arc::clone(&self.text);
        let rest = text.bytes.get(self.position..).unwrap_or_default();
        let len = rest.iter().position(|&byte| byte == b'\n');
        let line = rest.get(..len.unwrap_or(rest.len())).unwrap_or_default();
        let blank = line.iter().take_while(|byte| byte.is_ascii_whitespace());
        let start = self.position + blank.count();
        // Its first word is the path.
        let path = line.trim_ascii();
        let end = path.iter().position(u8::is_ascii_whitespace);
        let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
        self.position += line.len();
        self.token(Kind::Literal, path, start, self.line).term
    }

    /// White space, comments, and joined lines.
    fn skip_space(&mut self, bytes: &[u8]) {
        let mut comment = false;
        while let Some(&byte) = bytes.get(self.position) {
            let joined = joined_line(bytes.get(self.position..).unwrap_or_default());
            match byte {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    comment = false;
                }
                _ if comment => {}
                b'#' => comment = true,
                b'\\' if joined > 0 => {
                    self.position += joined - 1;
                    self.line = self.line.saturating_add(1);
                }
                _ if is_space(byte) => {}
                _ => return,
            }
            self.position += 1;
        }
    }

    /// A literal without quotes.
    fn bare(&mut self, bytes: &[u8]) -> Token {
        let start = self.position;
        let line = self.line;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1);
            let ends = match byte {
                b'"' | b'#' | b'{' | b'}' | b';' | b'=' => true,
                b'-' => next == Some(&b'>'),
                b'!' => next == Some(&b'='),
                b'\\' => joined_line(bytes.get(at..).unwrap_or_default()) > 0,
                _ => is_space(byte),
            };
            if ends {
                break;
            }
            at += 1 + usize::from(byte == b'\\');
        }
        self.position = at.min(bytes.len());
        let raw = bytes.get(start..self.position).unwrap_or_default();
        let mut token = self.token(Kind::Literal, raw, start, line);
        token.is_bare = true;
        token
    }

    /// A literal in quotes; line breaks are part of it.
    fn quoted(&mut self, bytes: &[u8]) -> Result<Token, Box<Diagnostic>> {
        let start = self.position;
        let line = self.line;
        let mut at = start + 1;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    self.position = at + 1;
                    let raw = bytes.get(start + 1..at).unwrap_or_default();
                    return Ok(self.token(Kind::Literal, raw, start, line));
                }
                b'\n' => self.line = self.line.saturating_add(1),
                b'\\' => {
                    at += 1;
                    if bytes.get(at) == Some(&b'\n') {
                        self.line = self.line.saturating_add(1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        self.position = bytes.len();
        let token = self.token(Kind::Literal, b"\"", start, line);
        let mut error = token
            .term
            .error("unexpected end of file, expecting a closing quote");
        error.label = Some(String::from("the quote that is open"));
        Err(error)
    }

    fn token(&self, kind: Kind, raw: &[u8], start: usize, line: u32) -> Token {
        // Only of a literal's bytes is the place longer than the text: by quotes.
        let end = match kind {
            Kind::End => start,
            _ => self.position.max(start + 1).min(self.text.bytes.len()),
        };
        let span = start.min(end)..end;
        Token {
            kind,
            term: Term {
                bytes: unescape(raw),
                raw: raw.to_vec(),
                origin: Origin {
                    text: Arc::clone(&self.text),
                    span,
                    line,
                },
            },
            is_bare: false,
        }
    }
}

/// C's isspace().
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Length of a backslash with the line end after it, 0 if there is none.
fn joined_line(bytes: &[u8]) -> usize {
    match bytes {
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}

/// Takes the backslashes away.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut escaped = false;
    for &byte in raw {
        if byte == b'\\' && !escaped {
            escaped = true;
            continue;
        }
        escaped = false;
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;

    fn lexer(text: &str) -> Lexer {
        Lexer::new(Arc::new(SourceText {
            path: Some(Text::from("/t")),
            bytes: text.as_bytes().to_vec(),
        }))
    }

    /// The tokens with `|` between them; literals in their final form.
    fn check(text: &str, expected: &str) {
        let mut lexer = lexer(text);
        let mut shown = Vec::new();
        loop {
            let token = lexer.next().unwrap();
            if token.kind == Kind::End {
                break;
            }
            shown.push(token.term.display());
        }
        assert_eq!(shown.join("|"), expected, "{text}");
    }

    #[test]
    fn tokens_are_cut_as_tempesta_cuts_them() {
        check("listen 80;", "listen|80|;");
        check(
            "listen [::0]:80 proto=h2,https;",
            "listen|[::0]:80|proto|=|h2,https|;",
        );
        check("a\\ b \"c d\" e\"f\"", "a b|c d|e|f");
        check("\"a \\\" \\\\ b\"", "a \" \\ b");
        check(
            "cache_fulfill * *; # all; of it\n}",
            "cache_fulfill|*|*|;|}",
        );
        check("host == \"a\" -> b;", "host|==|a|->|b|;");
        check("hdr X-A!=b->mark=3;", "hdr|X-A|!=|b|->|mark|=|3|;");
        check("uri ~ \"/a/i\" -> a-b;", "uri|~|/a/i|->|a-b|;");
        check("a~b !x -y", "a~b|!x|-y");
        check("a \\\n b\\\r\nc", "a|b|c");
        check("a\\;b{", "a;b|{");
    }

    #[test]
    fn places_count_lines_also_within_quotes_and_joined_lines() {
        let mut lexer = lexer("a \\\n\"x\ny\" # c\n b");
        let lines: Vec<u32> = (0..3)
            .map(|_| lexer.next().unwrap().term.origin.line)
            .collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[test]
    fn an_open_quote_is_an_error_at_the_quote() {
        let error = lexer("a\n \"b").next().and_then(|_| {
            let mut lexer = lexer("a\n \"b");
            lexer.next()?;
            lexer.next()
        });
        let error = error.unwrap_err();
        assert_eq!(
            error.line(),
            "[emerg] unexpected end of file, expecting a closing quote in /t:2"
        );
    }
}
