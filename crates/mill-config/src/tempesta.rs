//! Tempesta FW's configuration language, read as it stands and resolved into the same [`Config`](crate::Config).
//!
//! The way: tokens (`lexer`) → entries, `!include` done (`entry`) → checks against the table of directives
//! (`specification`) and by meaning (`checking`) → a typed site (`site`) → tables that find the way of a request
//! (`routing`) → statements of nginx's language (`translation`) at the places of the directives they stand for, which the
//! resolver takes as if a file had them. So errors of both stages have a line and a caret in the text that was written.
//!
//! What has no meaning outside the kernel is checked as Tempesta FW does, and is a notice. docs/tempesta.md lists each
//! directive.

mod checking;
mod detection;
mod entry;
mod lexer;
mod notes;
mod ordering;
mod pattern;
mod policies;
mod routing;
mod site;
mod specification;
mod translation;
mod value;
mod writing;

use std::sync::Arc;

use crate::Text;
use crate::diagnostic::Diagnostic;
use crate::lexer::{SourceText, Token};
use crate::load::{Failure, Options};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;
use crate::source::Source;

pub use detection::Sign;
pub(crate) use notes::Notes;

/// A translation: statements of nginx's language, and what is to be said about the text.
pub(crate) struct Translated {
    pub(crate) tokens: Applied<Vec<Token>>,
    pub(crate) notes: Notes,
}

/// Translates a text that has been read; `given` are names of directives of the main context that are set already.
pub(crate) fn translate(
    source: &dyn Source,
    options: &Options,
    text: Arc<SourceText>,
    given: &[&'static str],
) -> Translated {
    let origin = Origin {
        text: Arc::clone(&text),
        span: 0..0,
        line: 1,
    };
    let entries = entry::Parser::parse(source, options.conf_prefix(), text);
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            return Translated {
                tokens: Err(error),
                notes: Notes::default(),
            };
        }
    };
    let (checked, mut notes) = checking::check(entries, origin);
    let tokens = checked.and_then(|site| translation::translate(&site, &mut notes, options, given));
    Translated { tokens, notes }
}

/// The configuration file of `options` in nginx's language, for users and for tests. It is what is resolved, without
/// places.
pub fn nginx_text(source: &dyn Source, options: &Options) -> Result<String, Box<Failure>> {
    let path = options.conf_file();
    let failed = |error: Diagnostic, remarks| Box::new(Failure { error, remarks });
    let bytes = source.read(&path).map_err(|error| {
        let message = format!(
            "open() \"{}\" failed ({}: {})",
            path.display(),
            error.code,
            error.text
        );
        let nowhere = crate::diagnostic::SourcePosition::None;
        let error = Diagnostic::new(crate::config::LogLevel::Emerg, message, nowhere);
        failed(error, Vec::new())
    })?;
    let text = Arc::new(SourceText {
        path: Some(Text::from(&*path)),
        bytes,
    });
    let Translated { tokens, notes } = translate(source, options, text, &[]);
    match tokens {
        Ok(tokens) => Ok(writing::emit(&tokens)),
        Err(error) => Err(failed(*error, notes.remarks)),
    }
}

/// Whether a text is in Tempesta FW's language, by its first sign of it; `None` if it is not, or can't be told.
pub fn sign(text: &[u8]) -> Option<Sign> {
    detection::sign(text)
}
