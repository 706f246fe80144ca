//! Names of variables: they may be used before they are defined, which shows only at the end of the text.

use crate::Text;
use crate::config::{UserVariable, Variable};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Statement, Word};
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver};

/// User variables by index, and their definitions.
#[derive(Default)]
pub(crate) struct VariableTable {
    entries: Vec<Entry>,
    /// Built-in names of open families (`http_x`) that the configuration defines itself, known from an earlier pass
    /// over the same text.
    shadows: Vec<Text>,
    /// Such names that were used as built-in before their definition.
    used_as_builtin: Vec<Text>,
}

struct Entry {
    name: Text,
    map: Option<usize>,
    defined: bool,
    first_use: Option<Origin>,
}

/// nginx's own names that begin like the open families, so that `set` may not define them.
const FIXED_FIELDS: &[&str] = &[
    "http_cookie",
    "http_host",
    "http_referer",
    "http_user_agent",
    "http_via",
    "http_x_forwarded_for",
    "sent_http_cache_control",
    "sent_http_connection",
    "sent_http_content_length",
    "sent_http_content_type",
    "sent_http_keep_alive",
    "sent_http_last_modified",
    "sent_http_link",
    "sent_http_location",
    "sent_http_transfer_encoding",
];

impl VariableTable {
    pub(crate) fn new(shadows: &[Text]) -> Self {
        Self {
            shadows: shadows.to_vec(),
            ..Self::default()
        }
    }

    fn index(&mut self, name: &Text) -> usize {
        if let Some(index) = self.entries.iter().position(|entry| entry.name == *name) {
            return index;
        }
        let name = name.clone();
        self.entries.push(Entry {
            name,
            map: None,
            defined: false,
            first_use: None,
        });
        self.entries.len() - 1
    }

    fn is_user(&self, name: &Text) -> bool {
        self.shadows.contains(name)
            || self
                .entries
                .iter()
                .any(|entry| entry.name == *name && entry.defined)
    }

    /// Names that were used as built-in although the text defines them later: parse again with these.
    pub(crate) fn late_shadows(&self) -> Vec<Text> {
        let defined = self.entries.iter().filter(|entry| entry.defined);
        let late = defined.filter(|entry| self.used_as_builtin.contains(&entry.name));
        late.map(|entry| entry.name.clone())
            .filter(|name| !self.shadows.contains(name))
            .collect()
    }

    /// The table for [`crate::config::Http`], or the first use of an undefined name.
    pub(crate) fn finish(&mut self) -> Result<Vec<UserVariable>, (Text, Option<Origin>)> {
        let mut finished = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            if !entry.defined {
                return Err((entry.name, entry.first_use));
            }
            finished.push(UserVariable {
                name: entry.name,
                map: entry.map,
            });
        }
        Ok(finished)
    }
}

impl Resolver<'_> {
    /// The built-in variable of a name (lower case) where the text is read.
    fn builtin(&self, name: &[u8]) -> Option<Variable> {
        match self.is_in_stream() {
            true => Variable::builtin_in_stream(name),
            false => Variable::builtin(name),
        }
    }

    /// The variable of a name (any case, without `$`) used in a statement.
    pub(crate) fn variable(&mut self, name: &[u8], statement: &Statement, word: &Word) -> Variable {
        let name = Text::from(name.to_ascii_lowercase());
        if !self.variables.is_user(&name)
            && let Some(builtin) = self.builtin(&name)
        {
            if is_open_family(&builtin) && !self.variables.used_as_builtin.contains(&name) {
                self.variables.used_as_builtin.push(name);
            }
            return builtin;
        }
        let index = self.variables.index(&name);
        if let Some(entry) = self.variables.entries.get_mut(index)
            && entry.first_use.is_none()
        {
            entry.first_use = Some(Origin::of(statement, word));
        }
        Variable::User(index)
    }

    /// Defines a variable that is written `$name`: the target of `set`, `map` or a named
    /// capture (without `$` then).
    pub(crate) fn define(
        &mut self,
        name: &[u8],
        statement: &Statement,
        word: &Word,
    ) -> Applied<Variable> {
        if name.is_empty() {
            let message = format!("invalid variable name \"{}\"", word.display());
            return Err(self.emerg(statement, word, message));
        }
        let name = Text::from(name.to_ascii_lowercase());
        if !self.variables.is_user(&name)
            && let Some(builtin) = self.builtin(&name)
        {
            let fixed = FIXED_FIELDS.iter().any(|fixed| name == *fixed);
            if fixed || !builtin.is_assignable() {
                return Err(self.duplicate_variable(&name, statement, word));
            }
            if matches!(builtin, Variable::Args | Variable::LimitRate) {
                return Ok(builtin);
            }
        }
        let index = self.variables.index(&name);
        if let Some(entry) = self.variables.entries.get_mut(index) {
            entry.defined = true;
        }
        Ok(Variable::User(index))
    }

    /// Records that a map defines a variable's value.
    pub(crate) fn bind_map(&mut self, variable: usize, map: usize) {
        if let Some(entry) = self.variables.entries.get_mut(variable) {
            entry.map = Some(map);
        }
    }

    fn duplicate_variable(
        &self,
        name: &Text,
        statement: &Statement,
        word: &Word,
    ) -> Box<Diagnostic> {
        let message = format!("the duplicate \"{}\" variable", name.display());
        let mut error = self.emerg(statement, word, message);
        error.help = Some(String::from(
            "this variable is built in and cannot be assigned to",
        ));
        error
    }
}

fn is_open_family(variable: &Variable) -> bool {
    matches!(
        variable,
        Variable::Http(_)
            | Variable::SentHttp(_)
            | Variable::SentTrailer(_)
            | Variable::Arg(_)
            | Variable::Cookie(_)
            | Variable::UpstreamHttp(_)
            | Variable::UpstreamTrailer(_)
            | Variable::UpstreamCookie(_)
            | Variable::ProxyProtocolTlv(_)
    )
}
