//! Text with variables, compiled; regular expressions, with their named captures.

use std::sync::Arc;

use crate::config::{Part, Pattern, Template};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::{Text, suggest};

/// Whether text has variables.
pub(crate) fn has_variables(text: &[u8]) -> bool {
    text.contains(&b'$')
}

impl Resolver<'_> {
    /// Compiles text that stands in a word (or is a part of it).
    pub(crate) fn template(
        &mut self,
        text: &[u8],
        statement: &Statement,
        word: &Word,
    ) -> Applied<Template> {
        self.compile(text, statement, word, true)
    }

    /// Compiles a piece of a `log_format`, where `$1` is no capture.
    pub(crate) fn log_template(
        &mut self,
        text: &[u8],
        statement: &Statement,
        word: &Word,
    ) -> Applied<Template> {
        self.compile(text, statement, word, false)
    }

    fn compile(
        &mut self,
        text: &[u8],
        statement: &Statement,
        word: &Word,
        captures: bool,
    ) -> Applied<Template> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            let (literal, from_dollar) = rest.split_at(at);
            parts.push(Part::Literal(Text::from(literal)));
            let after = from_dollar.get(1..).unwrap_or_default();
            if captures && let Some((digit @ b'1'..=b'9', after)) = after.split_first() {
                parts.push(Part::Capture(digit - b'0'));
                rest = after;
                continue;
            }
            let (name, after) = self.variable_name(after, statement, word)?;
            parts.push(Part::Variable(self.variable(name, statement, word)));
            rest = after;
        }
        parts.push(Part::Literal(Text::from(rest)));
        Ok(Template::from_parts(parts))
    }

    /// A name after `$`, with or without braces, and the rest.
    fn variable_name<'t>(
        &self,
        after: &'t [u8],
        statement: &Statement,
        word: &Word,
    ) -> Applied<(&'t [u8], &'t [u8])> {
        let (braced, inner) = match after.strip_prefix(b"{") {
            Some(inner) => (true, inner),
            None => (false, after),
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let len = inner.iter().take_while(|byte| is_name(byte)).count();
        let (name, mut rest) = inner.split_at(len);
        if braced {
            rest = rest.strip_prefix(b"}").ok_or_else(|| {
                let shown = String::from_utf8_lossy(name);
                let message = format!("the closing bracket in \"{shown}\" variable is missing");
                self.emerg(statement, word, message)
            })?;
        }
        if name.is_empty() {
            let mut error = self.emerg(statement, word, "invalid variable name");
            error.help = Some(String::from(
                "a literal \"$\" cannot be written in this language",
            ));
            return Err(error);
        }
        Ok((name, rest))
    }

    /// Compiles a regular expression and defines its named captures.
    pub(crate) fn pattern(
        &mut self,
        source: &[u8],
        caseless: bool,
        statement: &Statement,
        word: &Word,
    ) -> Applied<Pattern> {
        let mut pattern = Pattern::parse(source, caseless).map_err(|reason| {
            let shown = String::from_utf8_lossy(source);
            let message = format!("pcre2_compile() failed: {reason} in \"{shown}\"");
            self.emerg(statement, word, message)
        })?;
        let mut named = Vec::new();
        for (capture, name) in pattern.capture_names() {
            if let crate::config::Variable::User(index) =
                self.define(name.as_bytes(), statement, word)?
            {
                named.push((capture, index));
            }
        }
        pattern.bind(named);
        Ok(pattern)
    }

    /// The same, shared.
    pub(crate) fn shared_pattern(
        &mut self,
        source: &[u8],
        caseless: bool,
        statement: &Statement,
        word: &Word,
    ) -> Applied<Arc<Pattern>> {
        Ok(Arc::new(self.pattern(source, caseless, statement, word)?))
    }
}

/// The help for an unknown variable.
pub(crate) fn nearest_variable(name: &[u8]) -> Option<String> {
    let nearest = suggest::nearest(name, crate::config::variable::names())?;
    Some(format!("did you mean \"${nearest}\"?"))
}
