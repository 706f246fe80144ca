//! Words, blocks and comments: nginx's grammar, byte for byte.
//!
//! A word ends at white space, `;` or `{`; a quoted word ends at its quote, and only white space, `;`, `{` or `)` may
//! follow it. `#` begins a comment only where a word could begin. `{` directly after `$` belongs to the word
//! (`${name}`). A backslash takes the next byte into the word, whatever it is; `\"`, `\'`, `\\`, `\t`, `\r` and `\n`
//! are translated, all other pairs are kept, backslash included.
//!
//! Public for programs that rewrite configurations, and for the fuzz target.

use std::ops::Range;
use std::sync::Arc;

use crate::Text;

/// A file, or the text of `-g`.
#[derive(Debug)]
pub struct SourceText {
    /// `None` is the command line.
    pub path: Option<Text>,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// One word of a statement.
#[derive(Debug, Clone)]
pub struct Word {
    /// After quotes and escapes.
    pub bytes: Vec<u8>,
    /// Its place, quotes included.
    pub span: Range<usize>,
}

impl Word {
    /// For messages.
    pub(crate) fn display(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// A directive with its arguments, up to `;` or `{`.
#[derive(Debug)]
pub struct Statement {
    /// Never empty.
    pub words: Vec<Word>,
    /// Ended by `{`.
    pub opens_block: bool,
    /// The line of that end.
    pub line: u32,
    /// The text that the spans of its words are in.
    pub text: Arc<SourceText>,
}

impl Statement {
    /// The argument with this index, from 1; the last word if there are fewer. (Arity is checked before a directive is
    /// applied.)
    pub(crate) fn arg(&self, index: usize) -> &Word {
        self.words
            .get(index)
            .or(self.words.last())
            .unwrap_or(&NO_WORD)
    }

    pub(crate) fn name(&self) -> &Word {
        self.arg(0)
    }

    /// All arguments.
    pub(crate) fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

static NO_WORD: Word = Word {
    bytes: Vec::new(),
    span: 0..0,
};

/// The tokens of the lexer.
#[derive(Debug)]
pub enum Token {
    /// A directive, or the head of a block.
    Statement(Statement),
    /// `}`.
    BlockEnd,
    /// The end of the text.
    End,
}

/// An error in the text, as nginx words it, and its place.
#[derive(Debug)]
pub struct LexError {
    /// nginx's message, without the place.
    pub message: String,
    /// The line that nginx names.
    pub line: u32,
    /// The bytes to mark; never beyond the text.
    pub span: Range<usize>,
    /// The words of the statement that was not ended by `;` or `{`.
    pub words: Vec<Word>,
}

/// Longest word in bytes: nginx reads files through a buffer of this size.
const WORD_LEN_MAX: usize = 4096;

/// A position in a text.
#[derive(Debug)]
pub struct Lexer {
    pub(crate) text: Arc<SourceText>,
    position: usize,
    pub(crate) line: u32,
}

impl Lexer {
    /// The beginning of a text.
    pub fn new(text: Arc<SourceText>) -> Self {
        Self {
            text,
            position: 0,
            line: 1,
        }
    }

    /// A place in a text whose statements come from somewhere else.
    pub(crate) fn at(text: Arc<SourceText>, position: usize, line: u32) -> Self {
        Self {
            text,
            position,
            line,
        }
    }

    /// Offset of the next byte.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next statement, the end of a block, or the end of the text.
    pub fn next_token(&mut self) -> Result<Token, LexError> {
        let text = Arc::clone(&self.text);
        let mut words = Vec::new();
        loop {
            self.skip_space(&text.bytes);
            let start = self.position;
            let Some(&byte) = text.bytes.get(start) else {
                if words.is_empty() {
                    return Ok(Token::End);
                }
                let error = self.end_of_text(start.saturating_sub(1)..start);
                return Err(LexError { words, ..error });
            };
            match byte {
                b';' | b'{' => {
                    self.position += 1;
                    if words.is_empty() {
                        return Err(self.unexpected(byte, start));
                    }
                    return Ok(self.statement(words, byte));
                }
                b'}' => {
                    self.position += 1;
                    if words.is_empty() {
                        return Ok(Token::BlockEnd);
                    }
                    let error = self.unexpected(byte, start);
                    return Err(LexError { words, ..error });
                }
                quote @ (b'"' | b'\'') => {
                    words.push(self.quoted(&text.bytes, quote)?);
                    match text.bytes.get(self.position) {
                        None => return Err(self.end_of_text(start..self.position)),
                        Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{') => {}
                        // nginx accepts `if ($a = "b")`: the parenthesis starts a word.
                        Some(b')') => {}
                        Some(&byte) => return Err(self.unexpected(byte, self.position)),
                    }
                }
                _ => match self.bare(&text.bytes) {
                    Ok(word) => words.push(word),
                    // The text ends in this word.
                    Err(error) if !error.words.is_empty() => {
                        words.extend(error.words);
                        return Err(LexError { words, ..error });
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    fn statement(&self, words: Vec<Word>, end: u8) -> Token {
        Token::Statement(Statement {
            words,
            opens_block: end == b'{',
            line: self.line,
            text: Arc::clone(&self.text),
        })
    }

    /// White space and comments.
    fn skip_space(&mut self, bytes: &[u8]) {
        let mut comment = false;
        while let Some(&byte) = bytes.get(self.position) {
            match byte {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    comment = false;
                }
                _ if comment => {}
                b' ' | b'\t' | b'\r' => {}
                b'#' => comment = true,
                _ => return,
            }
            self.position += 1;
        }
    }

    /// A word in quotes; the position is left after the closing one.
    fn quoted(&mut self, bytes: &[u8], quote: u8) -> Result<Word, LexError> {
        let start = self.position;
        let start_line = self.line;
        let mut at = start + 1;
        while let Some(&byte) = bytes.get(at) {
            if at - start > WORD_LEN_MAX {
                return Err(LexError {
                    message: format!(
                        "too long parameter, probably missing terminating \"{}\" character",
                        char::from(quote)
                    ),
                    line: start_line,
                    span: start..start + 1,
                    words: Vec::new(),
                });
            }
            match byte {
                b'\n' => self.line = self.line.saturating_add(1),
                b'\\' => {
                    at += 1;
                    if bytes.get(at) == Some(&b'\n') {
                        self.line = self.line.saturating_add(1);
                    }
                }
                byte if byte == quote => {
                    self.position = at + 1;
                    let raw = bytes.get(start + 1..at).unwrap_or_default();
                    return Ok(Word {
                        bytes: unescape(raw),
                        span: start..at + 1,
                    });
                }
                _ => {}
            }
            at += 1;
        }
        self.position = bytes.len();
        Err(self.end_of_text(start..start + 1))
    }

    /// A word without quotes; the position is left on the byte that ends it.
    fn bare(&mut self, bytes: &[u8]) -> Result<Word, LexError> {
        let start = self.position;
        let mut at = start;
        let mut after_dollar = false;
        while let Some(&byte) = bytes.get(at) {
            if at - start >= WORD_LEN_MAX {
                let head = bytes.get(start..start + 10).unwrap_or_default();
                return Err(LexError {
                    message: format!(
                        "too long parameter \"{}...\" started",
                        String::from_utf8_lossy(head)
                    ),
                    line: self.line,
                    span: start..start + 10,
                    words: Vec::new(),
                });
            }
            let is_name_brace = byte == b'{' && after_dollar;
            after_dollar = byte == b'$';
            match byte {
                b'{' if is_name_brace => after_dollar = true,
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' => {
                    self.position = at;
                    let raw = bytes.get(start..at).unwrap_or_default();
                    return Ok(Word {
                        bytes: unescape(raw),
                        span: start..at,
                    });
                }
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
        let words = vec![Word {
            bytes: unescape(bytes.get(start..).unwrap_or_default()),
            span: start..bytes.len(),
        }];
        let error = self.end_of_text(start..bytes.len());
        Err(LexError { words, ..error })
    }

    fn unexpected(&self, byte: u8, at: usize) -> LexError {
        let message = format!("unexpected \"{}\"", String::from_utf8_lossy(&[byte]));
        LexError {
            message,
            line: self.line,
            span: at..at + 1,
            words: Vec::new(),
        }
    }

    fn end_of_text(&self, span: Range<usize>) -> LexError {
        let message = match self.text.path {
            Some(_) => "unexpected end of file, expecting \";\" or \"}\"",
            None => "unexpected end of parameter, expecting \";\"",
        };
        LexError {
            message: message.into(),
            line: self.line,
            span,
            words: Vec::new(),
        }
    }
}

/// Translates the escapes of nginx.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    loop {
        rest = match rest {
            [b'\\', escaped @ (b'"' | b'\'' | b'\\'), after @ ..] => {
                out.push(*escaped);
                after
            }
            [b'\\', b't', after @ ..] => {
                out.push(b'\t');
                after
            }
            [b'\\', b'r', after @ ..] => {
                out.push(b'\r');
                after
            }
            [b'\\', b'n', after @ ..] => {
                out.push(b'\n');
                after
            }
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
            [] => return out,
        };
    }
}

#[cfg(test)]
mod tests;
