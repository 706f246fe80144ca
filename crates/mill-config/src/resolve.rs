//! From statements to a [`Config`]: one pass in the order of the text, as in nginx, then inheritance once the `http`
//! block is complete.

mod arguments;
pub(crate) mod draft;
mod finish;
mod listeners;
mod passing;
mod probing;
mod recoding;
mod semicolon;
mod streams;
pub(crate) mod templates;
mod translated;
pub(crate) mod unsupported;
pub(crate) mod upstreams;
pub(crate) mod variables;

use std::ops::Range;
use std::sync::Arc;

use crate::Text;
use crate::config::{Config, LogLevel, Match};
use crate::diagnostic::{Diagnostic, Snippet, SourcePosition, Spot};
use crate::directive::{Apply, Contexts, Directive, Notice, STREAM_LEVELS, Value};
use crate::directives;
use crate::directives::upstream::BlockDraft;
use crate::lexer::{LexError, Lexer, SourceText, Statement, Token, Word};
use crate::load::Options;
use crate::source::Source;
use crate::{suggest, value};
use draft::{HttpDraft, LocationDraft, MainDraft, ServerDraft};
use unsupported::Unsupported;
use variables::VariableTable;

/// Success, or the error that refuses the configuration.
pub(crate) type Applied<T = ()> = Result<T, Box<Diagnostic>>;

/// Applies one entry of a `types` or `map` block, whose entries are not directives.
pub(crate) type EntryHandler = fn(&mut Resolver<'_>, &Statement) -> Applied;

/// Depth of nested includes: a cycle would not end otherwise.
const INCLUDE_DEPTH_MAX: usize = 64;

/// Depth of nested blocks: each level uses stack; nginx itself has no limit.
const BLOCK_DEPTH_MAX: usize = 100;

/// The state of one parse.
pub(crate) struct Resolver<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) options: &'a Options,
    /// Set while a `types` or `map` block is parsed.
    pub(crate) entry_handler: Option<EntryHandler>,
    pub(crate) context: Contexts,
    pub(crate) main: MainDraft,
    /// `Some` once an `http` block has begun. While the `stream` block is open, it and its variables are in the places of
    /// those of http: directives that both have work on the block that is open.
    pub(crate) http: Option<HttpDraft>,
    /// The same of the `stream` block.
    pub(crate) stream: Option<HttpDraft>,
    pub(crate) stream_variables: VariableTable,
    /// The innermost block that inherits: http, server, location, if.
    pub(crate) level: LocationDraft,
    /// The server whose block is open, or the defaults of the http block.
    pub(crate) server: ServerDraft,
    /// The `match` block that is open.
    pub(crate) open_match: Option<Match>,
    /// The group whose block is open.
    pub(crate) upstream: BlockDraft,
    pub(crate) variables: VariableTable,
    /// Warnings and notices, in order.
    pub(crate) remarks: Vec<Diagnostic>,
    /// Unsupported features, which refuse the configuration once all of it has been parsed.
    pub(crate) unsupported: Unsupported,
    /// Statements that are taken in the place of a text's, with the place of the last one in `lexer`.
    written: Option<std::vec::IntoIter<Token>>,
    lexer: Lexer,
    include_depth: usize,
    block_depth: usize,
}

/// What ends a sequence of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    File,
    Block,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(source: &'a dyn Source, options: &'a Options, shadows: &[Text]) -> Self {
        let text = Arc::new(SourceText {
            path: None,
            bytes: options.globals.clone(),
        });
        Self {
            source,
            options,
            entry_handler: None,
            context: Contexts::MAIN,
            main: MainDraft::default(),
            http: None,
            stream: None,
            stream_variables: VariableTable::default(),
            level: LocationDraft::default(),
            server: ServerDraft::default(),
            open_match: None,
            upstream: BlockDraft::default(),
            variables: VariableTable::new(shadows),
            remarks: Vec::new(),
            unsupported: Unsupported::default(),
            written: None,
            lexer: Lexer::new(text),
            include_depth: 0,
            block_depth: 0,
        }
    }

    /// Parses the text of `-g` and the main file.
    pub(crate) fn run(mut self) -> (Applied<Config>, Vec<Diagnostic>, Vec<Text>) {
        let path = self.options.conf_file();
        let parsed = self
            .statements(Extent::File)
            .and_then(|()| self.main_file(&path));
        let shadows = self.variables.late_shadows();
        let resolved = match (parsed, self.unsupported.diagnostic()) {
            (Ok(()), None) => finish::finish(&mut self),
            // The rest of the configuration would cause consequential errors, about variables for example.
            (Ok(()), Some(unsupported)) => Err(unsupported),
            (Err(error), unsupported) => {
                self.remarks
                    .extend(unsupported.map(|unsupported| *unsupported));
                Err(error)
            }
        };
        (resolved, self.remarks, shadows)
    }

    /// Parses a file in place; `from` is the statement that includes it.
    pub(crate) fn file(&mut self, path: &[u8], from: Option<&Statement>) -> Applied {
        let bytes = self.content(path, from)?;
        self.text(path, bytes, from)
    }

    /// Reads a file.
    fn content(&self, path: &[u8], from: Option<&Statement>) -> Applied<Vec<u8>> {
        self.source.read(path).map_err(|error| {
            let shown = String::from_utf8_lossy(path);
            let message = format!("open() \"{shown}\" failed ({}: {})", error.code, error.text);
            match from {
                Some(statement) => self.emerg(statement, statement.arg(1), message),
                None => Box::new(Diagnostic::new(
                    LogLevel::Emerg,
                    message,
                    SourcePosition::None,
                )),
            }
        })
    }

    /// Parses the content of a file.
    fn text(&mut self, path: &[u8], bytes: Vec<u8>, from: Option<&Statement>) -> Applied {
        if self.include_depth >= INCLUDE_DEPTH_MAX {
            let message = format!("more than {INCLUDE_DEPTH_MAX} files include each other");
            return Err(match from {
                Some(statement) => self.emerg(statement, statement.arg(1), message),
                None => Box::new(Diagnostic::new(
                    LogLevel::Emerg,
                    message,
                    SourcePosition::None,
                )),
            });
        }
        let text = Arc::new(SourceText {
            path: Some(Text::from(path)),
            bytes,
        });
        let outer = std::mem::replace(&mut self.lexer, Lexer::new(text));
        self.include_depth += 1;
        let parsed = self.statements(Extent::File);
        self.include_depth -= 1;
        self.lexer = outer;
        parsed
    }

    /// Parses the rest of a block whose `{` has been read, in a context.
    pub(crate) fn block(&mut self, statement: &Statement, context: Contexts) -> Applied {
        if self.block_depth >= BLOCK_DEPTH_MAX {
            let message = format!("more than {BLOCK_DEPTH_MAX} blocks in each other");
            return Err(self.emerg(statement, statement.name(), message));
        }
        let outer = std::mem::replace(&mut self.context, context);
        self.block_depth += 1;
        let parsed = self.statements(Extent::Block);
        self.block_depth -= 1;
        self.context = outer;
        parsed
    }

    /// Parses a block of entries instead of directives.
    pub(crate) fn entries(&mut self, statement: &Statement, handler: EntryHandler) -> Applied {
        let outer = self.entry_handler.replace(handler);
        let parsed = self.block(statement, self.context);
        self.entry_handler = outer;
        parsed
    }

    fn statements(&mut self, extent: Extent) -> Applied {
        loop {
            match self.next_token()? {
                Token::BlockEnd if extent == Extent::Block => return Ok(()),
                Token::BlockEnd => {
                    return Err(self.at_position("unexpected \"}\"", "no block is open here"));
                }
                Token::End if extent == Extent::File => return Ok(()),
                Token::End => return Err(self.unclosed_block()),
                Token::Statement(statement) => self.statement(&statement)?,
            }
        }
    }

    fn next_token(&mut self) -> Applied<Token> {
        if self.written.is_some() {
            return Ok(self.next_written());
        }
        let token = self.lexer.next_token();
        token.map_err(|error| self.lex_error(&error))
    }

    /// The place up to which the text has been read.
    pub(crate) fn position(&self) -> SourcePosition {
        place(&self.lexer.text, self.lexer.line)
    }

    /// Whether the `stream` block is open.
    pub(crate) fn is_in_stream(&self) -> bool {
        let inside = STREAM_LEVELS.and(Contexts::STREAM_UPSTREAM);
        inside.meets(self.context)
    }

    fn unclosed_block(&self) -> Box<Diagnostic> {
        self.at_position("unexpected end of file, expecting \"}\"", "")
    }

    fn statement(&mut self, statement: &Statement) -> Applied {
        if statement.opens_block && statement.text.path.is_none() {
            let message = "block directives are not supported in -g option";
            return Err(self.emerg(statement, statement.name(), message));
        }
        if let Some(handler) = self.entry_handler {
            if statement.opens_block {
                return Err(self.emerg(statement, statement.name(), "unexpected \"{\""));
            }
            return handler(self, statement);
        }
        let name = statement.name();
        let Some(directive) = directives::find(&name.bytes, self.context) else {
            return Err(self.unknown(statement));
        };
        self.check_place(directive, statement)?;
        if directive.is_block() && statement.opens_block {
            self.check(directive, statement)?;
            return self.apply(directive, statement);
        }
        let swallowed = self.swallowed(&statement.words, &statement.text);
        let applied = match directive.apply {
            Apply::NotYet(module) if swallowed.is_none() || !statement.opens_block => {
                self.directive_not_yet(directive.name, module, statement)
            }
            _ => self
                .check(directive, statement)
                .and_then(|()| self.apply(directive, statement)),
        };
        match (applied, swallowed) {
            (Err(_), Some(next)) => Err(self.unterminated(statement, next)),
            (Ok(()), Some(next)) => {
                self.warn_of_swallowed(statement, next);
                Ok(())
            }
            (applied, None) => applied,
        }
    }

    fn unknown(&self, statement: &Statement) -> Box<Diagnostic> {
        let name = statement.name();
        let message = format!("unknown directive \"{}\"", name.display());
        let mut error = self.emerg(statement, name, message);
        let here = directives::all().filter(|known| known.contexts.meets(self.context));
        let nearest = suggest::nearest(&name.bytes, here.map(|known| known.name))
            .or_else(|| suggest::nearest(&name.bytes, directives::all().map(|known| known.name)));
        error.help = nearest.map(|nearest| format!("did you mean \"{nearest}\"?"));
        error
    }

    /// Checks the context; this comes first, as in nginx.
    fn check_place(&self, directive: &'static Directive, statement: &Statement) -> Applied {
        if directive.contexts.meets(self.context) {
            return Ok(());
        }
        let message = format!("\"{}\" directive is not allowed here", directive.name);
        let mut error = self.emerg(statement, statement.name(), message);
        let places: Vec<&str> = directive.contexts.names().collect();
        error.help = Some(format!("it may stand in: {}", places.join(", ")));
        Err(error)
    }

    /// Checks end, number of arguments, and duplicates, in nginx's order.
    fn check(&mut self, directive: &'static Directive, statement: &Statement) -> Applied {
        let name = statement.name();
        if statement.opens_block && !directive.is_block() {
            let message = format!(
                "directive \"{}\" is not terminated by \";\"",
                directive.name
            );
            return Err(self.emerg(statement, name, message));
        }
        if !statement.opens_block && directive.is_block() {
            let message = format!("directive \"{}\" has no opening \"{{\"", directive.name);
            return Err(self.emerg(statement, name, message));
        }
        if !directive.arity.accepts(statement.args().len()) {
            let message = format!(
                "invalid number of arguments in \"{}\" directive",
                directive.name
            );
            return Err(self.emerg(statement, name, message));
        }
        if !directive.repeats && !self.level.note_use(directive.name) {
            return Err(self.refused(statement, "is duplicate"));
        }
        Ok(())
    }

    fn apply(&mut self, directive: &'static Directive, statement: &Statement) -> Applied {
        match directive.apply {
            Apply::Flag(slot) => {
                *slot(&mut self.level.settings) = Some(self.flag(statement)?);
            }
            Apply::Size(slot) => {
                *slot(&mut self.level.settings) = Some(self.read(statement, value::size)?);
            }
            Apply::Offset(slot) => {
                *slot(&mut self.level.settings) = Some(self.read(statement, value::offset)?);
            }
            Apply::Number(slot) => {
                *slot(&mut self.level.settings) = Some(self.number(statement)?);
            }
            Apply::Milliseconds(slot) => {
                *slot(&mut self.level.settings) = Some(self.read(statement, value::milliseconds)?);
            }
            Apply::Seconds(slot) => {
                *slot(&mut self.level.settings) = Some(self.read(statement, value::seconds)?);
            }
            Apply::With(function) | Apply::Block(function) => function(self, statement)?,
            Apply::WithoutEffect(kind, reason) => self.without_effect(statement, kind, reason)?,
            Apply::NotYet(_) => {}
        }
        if let Some((reason, Notice::Given)) = directive.unread {
            self.note_without_effect(statement, reason);
        }
        Ok(())
    }

    fn without_effect(&mut self, statement: &Statement, kind: Value, reason: &str) -> Applied {
        match kind {
            Value::Flag => {
                self.flag(statement)?;
            }
            Value::Size => {
                self.read(statement, value::size)?;
            }
            Value::Number => {
                self.number(statement)?;
            }
            Value::Buffers => {
                let count = value::number(&statement.arg(1).bytes).filter(|&count| count > 0);
                let size = value::size(&statement.arg(2).bytes).filter(|&size| size > 0);
                if count.is_none() || size.is_none() {
                    return Err(self.refused(statement, "invalid value"));
                }
            }
            Value::Text => {}
        }
        self.note_without_effect(statement, reason);
        Ok(())
    }

    pub(crate) fn note_without_effect(&mut self, statement: &Statement, reason: &str) {
        let name = statement.name();
        let message = format!("\"{}\" directive has no effect", name.display());
        self.notice(statement, name, message, reason);
    }
}

/// An absolute path as it is, another one after a directory that ends in a slash.
pub(crate) fn join(directory: &[u8], path: &[u8]) -> Text {
    if path.first() == Some(&b'/') {
        return Text::from(path);
    }
    Text::from([directory, path].concat())
}

/// Making diagnostics.
impl Resolver<'_> {
    /// An error about one word of a statement.
    pub(crate) fn emerg(
        &self,
        statement: &Statement,
        word: &Word,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
        self.diagnostic(LogLevel::Emerg, statement, word, message)
    }

    /// `"name" directive is duplicate` and the like.
    pub(crate) fn refused(&self, statement: &Statement, what: &str) -> Box<Diagnostic> {
        self.refused_at(statement, statement.name(), what)
    }

    pub(crate) fn refused_at(
        &self,
        statement: &Statement,
        word: &Word,
        what: &str,
    ) -> Box<Diagnostic> {
        let message = format!("\"{}\" directive {what}", statement.name().display());
        self.emerg(statement, word, message)
    }

    pub(crate) fn warn(&mut self, statement: &Statement, word: &Word, message: impl Into<String>) {
        let warning = *self.diagnostic(LogLevel::Warn, statement, word, message);
        self.remarks.push(warning);
    }

    pub(crate) fn notice(
        &mut self,
        statement: &Statement,
        word: &Word,
        message: impl Into<String>,
        help: &str,
    ) {
        let mut notice = *self.diagnostic(LogLevel::Notice, statement, word, message);
        notice.help = Some(String::from(help));
        self.remarks.push(notice);
    }

    pub(crate) fn diagnostic(
        &self,
        level: LogLevel,
        statement: &Statement,
        word: &Word,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
        let place = place(&statement.text, statement.line);
        let mut diagnostic = Diagnostic::new(level, message, place);
        diagnostic.snippet = Some(snippet(&statement.text, &word.span));
        Box::new(diagnostic)
    }

    fn lex_error(&self, error: &LexError) -> Box<Diagnostic> {
        let text = &self.lexer.text;
        if !error.words.is_empty() && text.path.is_some() {
            return self.unterminated_at(error, text);
        }
        let place = place(text, error.line);
        let mut diagnostic = Diagnostic::new(LogLevel::Emerg, error.message.clone(), place);
        diagnostic.snippet = Some(snippet(text, &error.span));
        Box::new(diagnostic)
    }

    /// An error at the lexer's position.
    pub(crate) fn at_position(&self, message: &str, help: &str) -> Box<Diagnostic> {
        let end = self.lexer.position();
        let error = LexError {
            message: String::from(message),
            line: self.lexer.line,
            span: end.saturating_sub(1)..end,
            words: Vec::new(),
        };
        let mut error = self.lex_error(&error);
        error.help = (!help.is_empty()).then(|| String::from(help));
        error
    }
}

pub(crate) fn place(text: &SourceText, line: u32) -> SourcePosition {
    match &text.path {
        None => SourcePosition::CommandLine,
        Some(path) => SourcePosition::File {
            path: path.clone(),
            line,
        },
    }
}

pub(crate) fn snippet(text: &SourceText, span: &Range<usize>) -> Snippet {
    Snippet::cut(&text.bytes, span.start, span.end)
}

/// The place of a word, for errors that are found outside.
pub(crate) fn spot(statement: &Statement, word: &Word) -> Spot {
    Spot {
        place: place(&statement.text, statement.line),
        snippet: snippet(&statement.text, &word.span),
    }
}
