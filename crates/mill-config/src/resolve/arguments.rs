//! Reading the arguments of statements.

use super::draft::ClaimedPath;
use super::{Applied, Resolver, join, place};
use crate::lexer::{Statement, Word};
use crate::{Text, value};

impl Resolver<'_> {
    /// `on` or `off`, the first argument.
    pub(crate) fn flag(&self, statement: &Statement) -> Applied<bool> {
        let word = statement.arg(1);
        match word.bytes.to_ascii_lowercase().as_slice() {
            b"on" => Ok(true),
            b"off" => Ok(false),
            _ => {
                let message = format!(
                    "invalid value \"{}\" in \"{}\" directive, it must be \"on\" or \"off\"",
                    word.display(),
                    statement.name().display()
                );
                Err(self.emerg(statement, word, message))
            }
        }
    }

    /// The first argument, read by a function; `invalid value` if it fails.
    pub(crate) fn read<T>(
        &self,
        statement: &Statement,
        reader: fn(&[u8]) -> Option<T>,
    ) -> Applied<T> {
        let word = statement.arg(1);
        reader(&word.bytes).ok_or_else(|| self.refused_at(statement, word, "invalid value"))
    }

    pub(crate) fn number(&self, statement: &Statement) -> Applied<u64> {
        let word = statement.arg(1);
        value::number(&word.bytes).ok_or_else(|| self.refused_at(statement, word, "invalid number"))
    }

    /// One of a list of words, compared without case; else `invalid value "x"`.
    pub(crate) fn choice<T: Copy>(
        &self,
        statement: &Statement,
        word: &Word,
        choices: &[(&'static str, T)],
    ) -> Applied<T> {
        let found = choices
            .iter()
            .find(|(name, _)| word.bytes.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let message = format!("invalid value \"{}\"", word.display());
            let mut error = self.emerg(statement, word, message);
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            error.help = Some(format!("one of: {}", names.join(", ")));
            error
        })
    }

    /// A path joined to the prefix.
    pub(crate) fn full_name(&self, path: &[u8]) -> Text {
        join(&self.options.paths.prefix, path)
    }

    /// Notes a directory of temporary files or of a cache; a cache has its directory for itself.
    pub(crate) fn claim_path(
        &mut self,
        statement: &Statement,
        word: &Word,
        path: &Text,
        is_cache: bool,
    ) -> Applied {
        let known = self.http.iter().flat_map(|http| &http.paths);
        let mut same = known.filter(|known| known.path == *path);
        if let Some(known) = same.find(|known| known.is_cache || is_cache) {
            let (shown, place) = (path.display(), &known.place);
            let message = format!("the same path name \"{shown}\" used in {place} and");
            return Err(self.emerg(statement, word, message));
        }
        if let Some(http) = &mut self.http {
            http.paths.push(ClaimedPath {
                path: path.clone(),
                is_cache,
                place: place(&statement.text, statement.line),
            });
        }
        Ok(())
    }
}
