//! What must hold of any bytes given to the lexer of configurations. Used by the fuzz target and
//! by the ordinary test that replays the corpus.

use std::sync::Arc;

use mill_config::Text;
use mill_config::lexer::{LexError, Lexer, SourceText, Statement, Token};

/// Panics if the lexer breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    for path in [None, Some(Text::from("/nginx.conf"))] {
        let mut lexer = lexer(path, input);
        // Every token takes a byte at least, so that a text has no more tokens than bytes.
        for _ in 0..=input.len() {
            let before = lexer.position();
            match lexer.next_token() {
                Ok(Token::End) => {
                    assert_eq!(lexer.position(), input.len());
                    break;
                }
                Ok(Token::BlockEnd) => {
                    assert_eq!(input.get(lexer.position() - 1), Some(&b'}'));
                    assert!(lexer.position() > before);
                }
                Ok(Token::Statement(statement)) => {
                    words_stand_where_they_say(&statement, input, before..lexer.position());
                    written_again_it_says_the_same(&statement);
                }
                Err(error) => {
                    error_points_into_the_text(&error, input);
                    break;
                }
            }
            assert!(lexer.position() <= input.len());
        }
    }
}

fn lexer(path: Option<Text>, text: &[u8]) -> Lexer {
    Lexer::new(Arc::new(SourceText {
        path,
        bytes: text.to_vec(),
    }))
}

fn words_stand_where_they_say(statement: &Statement, input: &[u8], extent: std::ops::Range<usize>) {
    assert!(!statement.words.is_empty());
    let end = if statement.opens_block { b'{' } else { b';' };
    assert_eq!(input.get(extent.end - 1), Some(&end));
    assert_eq!(statement.line, line_at(input, extent.end));
    let mut after = extent.start;
    for word in &statement.words {
        assert!(word.span.start >= after && word.span.start < word.span.end);
        // Escapes shorten a word, nothing lengthens it.
        assert!(word.bytes.len() <= word.span.len());
        after = word.span.end;
        let written = &input[word.span.clone()];
        let is_plain = written
            .iter()
            .all(|byte| !matches!(byte, b'\\' | b'"' | b'\''));
        if is_plain {
            assert_eq!(written, word.bytes);
            assert!(!written.iter().any(|byte| b" \t\r\n;".contains(byte)));
        }
    }
    assert!(after < extent.end);
}

/// Quoting every word of a statement changes none of them.
fn written_again_it_says_the_same(statement: &Statement) {
    let mut text = Vec::new();
    for word in &statement.words {
        if word.bytes.len() > QUOTABLE_LEN_MAX {
            return;
        }
        text.push(b'"');
        for &byte in &word.bytes {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend_from_slice(b"\" ");
    }
    text.push(if statement.opens_block { b'{' } else { b';' });
    let Ok(Token::Statement(again)) = lexer(None, &text).next_token() else {
        panic!("no statement: {}", text.escape_ascii());
    };
    assert_eq!(again.opens_block, statement.opens_block);
    assert_eq!(again.words.len(), statement.words.len());
    for (again, word) in again.words.iter().zip(&statement.words) {
        assert_eq!(again.bytes, word.bytes);
    }
}

/// Bytes of a word that stays below the lexer's 4096 when each of them is escaped.
const QUOTABLE_LEN_MAX: usize = 2000;

fn error_points_into_the_text(error: &LexError, input: &[u8]) {
    assert!(error.span.start <= error.span.end && error.span.end <= input.len());
    assert!((1..=line_at(input, input.len())).contains(&error.line));
    assert!(!error.message.is_empty());
}

/// The number of the line that `position` is in.
fn line_at(input: &[u8], position: usize) -> u32 {
    let ends = input[..position].iter().filter(|byte| **byte == b'\n');
    u32::try_from(1 + ends.count()).expect("an input has fewer lines")
}
