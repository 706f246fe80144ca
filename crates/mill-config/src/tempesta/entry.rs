//! Entries of Tempesta FW's language: directives with values, parameters and blocks, and rules of chains.

use std::sync::Arc;

use super::lexer::{Kind, Lexer, Term, Token};
use crate::Text;
use crate::diagnostic::Diagnostic;
use crate::lexer::SourceText;
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, join};
use crate::source::Source;

/// Deepest folder below that of `!include`: what lies deeper is not looked for.
const INCLUDE_DEPTH_MAX: usize = 8;

/// Depth of nested blocks; Tempesta FW's own go to three.
const BLOCK_DEPTH_MAX: usize = 16;

/// One directive or rule.
#[derive(Debug)]
pub(super) enum Entry {
    Directive(Directive),
    /// In a box: it is the rarer and the larger one.
    Rule(Box<Rule>),
}

/// `name value… key=value… ;` or `{ … }`.
#[derive(Debug)]
pub(super) struct Directive {
    pub(super) name: Term,
    pub(super) values: Vec<Term>,
    pub(super) parameters: Vec<(Term, Term)>,
    /// What is in its block.
    pub(super) children: Option<Vec<Entry>>,
}

/// `field [name] == value -> action [= argument];`, or `-> action;`.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) condition: Option<Condition>,
    pub(super) action: Term,
    pub(super) argument: Option<Term>,
    /// Its first token.
    pub(super) origin: Origin,
}

/// What a rule asks.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) field: Term,
    pub(super) name: Option<Term>,
    pub(super) operator: Operator,
    pub(super) value: Term,
}

/// `==`, `!=` or `~`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Matches,
}

/// A parse: entries of one file and of those it includes.
pub(super) struct Parser<'a> {
    source: &'a dyn Source,
    /// Directory that `!include` is relative to.
    prefix: Text,
    lexer: Lexer,
    /// The next token.
    token: Token,
    included: bool,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Parses a whole text.
    pub(super) fn parse(
        source: &'a dyn Source,
        prefix: Text,
        text: Arc<SourceText>,
    ) -> Applied<Vec<Entry>> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        let mut parser = Self {
            source,
            prefix,
            lexer,
            token,
            included: false,
            depth: 0,
        };
        parser.entries(None)
    }

    /// Entries up to `}`, or to the end if no block is open.
    fn entries(&mut self, block: Option<&Term>) -> Applied<Vec<Entry>> {
        let mut entries = Vec::new();
        loop {
            match (self.token.kind, block) {
                (Kind::End, None) => return Ok(entries),
                (Kind::End, Some(name)) => {
                    let mut error = self.unexpected("\"}\"");
                    error.details = vec![format!(
                        "\"{}\" in line {} is open",
                        name.display(),
                        name.origin.line
                    )];
                    return Err(error);
                }
                (Kind::Close, Some(_)) => {
                    self.advance()?;
                    return Ok(entries);
                }
                (Kind::Close, None) => {
                    let mut error = self.token.term.error("unexpected \"}\"");
                    error.help = Some(String::from("no block is open here"));
                    return Err(error);
                }
                (Kind::Literal, _)
                    if self.token.is_bare && self.token.term.bytes == b"!include" =>
                {
                    entries.extend(self.include()?);
                }
                _ => entries.push(self.entry()?),
            }
        }
    }

    /// `!include PATH`: a line, not a directive; every *.conf below the path.
    fn include(&mut self) -> Applied<Vec<Entry>> {
        let word = self.token.term.clone();
        if self.included {
            let message = "\"!include\" is not allowed in an included file";
            return Err(word.error(message));
        }
        let path = self.lexer.rest_of_line();
        self.advance()?;
        if path.bytes.is_empty() {
            return Err(word.error("\"!include\" has no path"));
        }
        let mut entries = Vec::new();
        for file in self.files_below(&path)? {
            let bytes = self.source.read(&file).map_err(|error| {
                let shown = String::from_utf8_lossy(&file);
                path.error(format!(
                    "open() \"{shown}\" failed ({}: {})",
                    error.code, error.text
                ))
            })?;
            let text = Arc::new(SourceText {
                path: Some(Text::from(file.as_slice())),
                bytes,
            });
            let mut lexer = Lexer::new(text);
            let token = lexer.next()?;
            let outer = (
                std::mem::replace(&mut self.lexer, lexer),
                std::mem::replace(&mut self.token, token),
            );
            self.included = true;
            let parsed = self.entries(None);
            self.included = false;
            (self.lexer, self.token) = outer;
            entries.extend(parsed?);
        }
        Ok(entries)
    }

    /// The path itself if it is such a file, and those in its folders.
    fn files_below(&self, path: &Term) -> Applied<Vec<Vec<u8>>> {
        let root = join(&self.prefix, &path.bytes).to_vec();
        let root = root.strip_suffix(b"/").unwrap_or(&root).to_vec();
        let mut files = Vec::new();
        for depth in 0..=INCLUDE_DEPTH_MAX {
            let pattern = match depth {
                0 => root.clone(),
                _ => [&root[..], &b"/*".repeat(depth), b".conf"].concat(),
            };
            let found = self.source.glob(&pattern).map_err(|error| {
                let shown = String::from_utf8_lossy(&pattern);
                path.error(format!(
                    "glob() \"{shown}\" failed ({}: {})",
                    error.code, error.text
                ))
            })?;
            files.extend(found.into_iter().filter(|file| file.ends_with(b".conf")));
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    fn entry(&mut self) -> Applied<Entry> {
        let origin = self.token.term.origin.clone();
        if self.token.kind == Kind::Arrow {
            self.advance()?;
            return self.action(None, origin);
        }
        let first = self.literal("a directive")?;
        let operator = match self.token.kind {
            Kind::Equal => Operator::Equal,
            Kind::Unequal => Operator::Unequal,
            Kind::Matches => Operator::Matches,
            _ => return self.directive_or_long_rule(first, origin),
        };
        let sign = self.advance()?;
        if operator == Operator::Matches && first.bytes == b"location" {
            // `location ~ "/pattern/" { … }`
            let regex = Term {
                bytes: b"regex".to_vec(),
                raw: b"regex".to_vec(),
                ..sign
            };
            return self.directive(first, vec![regex]);
        }
        self.condition(first, None, operator, origin)
    }

    /// After the first word: a second one decides.
    fn directive_or_long_rule(&mut self, first: Term, origin: Origin) -> Applied<Entry> {
        if self.token.kind != Kind::Literal {
            return self.directive(first, Vec::new());
        }
        let second = self.advance()?;
        let operator = match self.token.kind {
            Kind::Equal => Operator::Equal,
            Kind::Unequal => Operator::Unequal,
            Kind::Matches => Operator::Matches,
            _ => return self.directive(first, vec![second]),
        };
        self.advance()?;
        self.condition(first, Some(second), operator, origin)
    }

    fn condition(
        &mut self,
        field: Term,
        name: Option<Term>,
        operator: Operator,
        origin: Origin,
    ) -> Applied<Entry> {
        let value = self.literal("a value")?;
        if self.token.kind != Kind::Arrow {
            return Err(self.unexpected("\"->\""));
        }
        self.advance()?;
        let condition = Condition {
            field,
            name,
            operator,
            value,
        };
        self.action(Some(condition), origin)
    }

    fn action(&mut self, condition: Option<Condition>, origin: Origin) -> Applied<Entry> {
        let action = self.literal("an action")?;
        let argument = match self.token.kind {
            Kind::Assign => {
                self.advance()?;
                Some(self.literal("a value")?)
            }
            _ => None,
        };
        if self.token.kind != Kind::Semicolon {
            return Err(self.unexpected("\";\""));
        }
        self.advance()?;
        Ok(Entry::Rule(Box::new(Rule {
            condition,
            action,
            argument,
            origin,
        })))
    }

    /// The rest of a directive whose first values have been read already.
    fn directive(&mut self, name: Term, mut values: Vec<Term>) -> Applied<Entry> {
        if !is_identifier(&name.bytes) {
            return Err(name.error(format!("unexpected \"{}\"", name.display())));
        }
        let mut parameters = Vec::new();
        loop {
            match self.token.kind {
                Kind::Literal => {
                    let value = self.advance()?;
                    values.push(value);
                }
                Kind::Assign => {
                    // The word before it was a key.
                    let Some(key) = values.pop() else {
                        return Err(self.unexpected("a value"));
                    };
                    self.advance()?;
                    let value = self.literal("a value")?;
                    parameters.push((key, value));
                }
                Kind::Semicolon => {
                    self.advance()?;
                    return Ok(Entry::Directive(Directive {
                        name,
                        values,
                        parameters,
                        children: None,
                    }));
                }
                Kind::Open => {
                    self.advance()?;
                    let children = Some(self.block(&name)?);
                    return Ok(Entry::Directive(Directive {
                        name,
                        values,
                        parameters,
                        children,
                    }));
                }
                _ => return Err(self.unexpected("\";\" or \"{\"")),
            }
        }
    }

    fn block(&mut self, name: &Term) -> Applied<Vec<Entry>> {
        if self.depth >= BLOCK_DEPTH_MAX {
            let message = format!("more than {BLOCK_DEPTH_MAX} blocks in each other");
            return Err(name.error(message));
        }
        self.depth += 1;
        let entries = self.entries(Some(name));
        self.depth -= 1;
        entries
    }

    fn literal(&mut self, what: &str) -> Applied<Term> {
        if self.token.kind != Kind::Literal {
            return Err(self.unexpected(what));
        }
        self.advance()
    }

    /// Takes the token and reads the next one.
    fn advance(&mut self) -> Applied<Term> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next).term)
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let term = &self.token.term;
        let message = match self.token.kind {
            Kind::End => format!("unexpected end of file, expecting {expected}"),
            _ => format!("unexpected \"{}\", expecting {expected}", term.display()),
        };
        term.error(message)
    }
}

/// A letter, then letters, digits, `_` and `-`.
fn is_identifier(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_alphabetic)
        && name
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
