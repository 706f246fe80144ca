//! Statements of nginx's language that stand for directives of Tempesta FW, at the places of these.

use std::sync::Arc;

use super::lexer::Term;
use crate::lexer::{Statement, Token, Word};
use crate::resolve::draft::Origin;

/// One statement while it is made: words, each with its place or with that of the whole.
#[derive(Clone)]
pub(super) struct Phrase {
    words: Vec<(Vec<u8>, Option<Origin>)>,
    origin: Origin,
}

impl Phrase {
    /// Words with spaces between them, at one place.
    pub(super) fn new(origin: &Origin, words: &str) -> Self {
        let words = words
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| (word.as_bytes().to_vec(), None))
            .collect();
        Self {
            words,
            origin: origin.clone(),
        }
    }

    /// One more word, at the place of the whole.
    #[must_use]
    pub(super) fn word(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.words.push((bytes.into(), None));
        self
    }

    /// More words with spaces between them.
    #[must_use]
    pub(super) fn word_list(self, words: &str) -> Self {
        words
            .split(' ')
            .fold(self, |phrase, word| phrase.word(word))
    }

    /// One more word that stands for another one, at its place.
    #[must_use]
    pub(super) fn at(mut self, bytes: impl Into<Vec<u8>>, term: &Term) -> Self {
        self.words.push((bytes.into(), Some(term.origin.clone())));
        self
    }

    fn statement(self, opens_block: bool) -> Statement {
        let text = self.origin.text;
        let words = self.words.into_iter().map(|(bytes, origin)| {
            let own = origin.filter(|origin| Arc::ptr_eq(&origin.text, &text));
            let span = own.map_or_else(|| self.origin.span.clone(), |origin| origin.span);
            Word { bytes, span }
        });
        Statement {
            words: words.collect(),
            opens_block,
            line: self.origin.line,
            text: Arc::clone(&text),
        }
    }
}

/// The statements that have been written.
#[derive(Default)]
pub(super) struct Writer {
    tokens: Vec<Token>,
}

impl Writer {
    /// A statement that ends in `;`.
    pub(super) fn end(&mut self, phrase: Phrase) {
        self.tokens.push(Token::Statement(phrase.statement(false)));
    }

    /// The head of a block.
    pub(super) fn open(&mut self, phrase: Phrase) {
        self.tokens.push(Token::Statement(phrase.statement(true)));
    }

    /// The end of a block.
    pub(super) fn close(&mut self) {
        self.tokens.push(Token::BlockEnd);
    }

    /// Words with spaces between them as a statement.
    pub(super) fn say(&mut self, origin: &Origin, words: &str) {
        self.end(Phrase::new(origin, words));
    }

    pub(super) fn into_tokens(self) -> Vec<Token> {
        self.tokens
    }
}

/// A template of nginx's language for a text as it is. A `$` has no escape there: a variable that `geo` makes stands for
/// it, [`DOLLAR`].
pub(super) fn literal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'$' => out.extend_from_slice(b"${tempesta_dollar}"),
            byte => out.push(byte),
        }
    }
    out
}

/// The variable of a dollar sign.
pub(super) const DOLLAR: &str = "$tempesta_dollar";

/// The statements as text.
pub(super) fn emit(tokens: &[Token]) -> String {
    let mut out = Vec::new();
    let mut depth: usize = 0;
    for token in tokens {
        match token {
            Token::Statement(statement) => {
                out.extend(b"    ".repeat(depth));
                for (index, word) in statement.words.iter().enumerate() {
                    if index > 0 {
                        out.push(b' ');
                    }
                    emit_word(&word.bytes, &mut out);
                }
                if statement.opens_block {
                    depth += 1;
                    out.extend_from_slice(b" {\n");
                } else {
                    out.extend_from_slice(b";\n");
                }
            }
            Token::BlockEnd => {
                depth = depth.saturating_sub(1);
                out.extend(b"    ".repeat(depth));
                out.extend_from_slice(b"}\n");
            }
            Token::End => {}
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A word so that nginx's lexer gives the same bytes again.
fn emit_word(word: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| !b" \t\r\n;{}\"'\\#".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        out.extend_from_slice(word);
        return;
    }
    out.push(b'"');
    for &byte in word {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}
