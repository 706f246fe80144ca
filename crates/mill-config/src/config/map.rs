//! `map`: a variable whose value is looked up by another value.

use super::{Captures, Pattern, Template};
use crate::Text;

/// One `map SOURCE $NAME { … }`.
///
/// Lookup order: the exact value, the longest wildcard (only with `hostnames`: `.example.org`
/// and `*.example.org`, then `example.*`), the regular expressions in their order, `default`.
#[derive(Debug)]
pub struct Map {
    /// The value that is looked up, case-insensitively except by regular expressions.
    pub source: Template,
    /// Index into [`super::Http::user_variables`] of the variable it defines.
    pub variable: usize,
    /// Lower-cased values and their results, sorted by value.
    pub exact: Vec<(Text, MapValue)>,
    /// `*.example.org` as `example.org` (and only below it), sorted; `hostnames` only.
    pub suffixes: Vec<(Text, MapValue)>,
    /// `www.example.*` as `www.example`, sorted; `hostnames` only.
    pub prefixes: Vec<(Text, MapValue)>,
    /// Regular expressions in their order.
    pub patterns: Vec<(Pattern, MapValue)>,
    /// `default`; if absent, the empty string.
    pub default: Option<MapValue>,
    /// `hostnames`.
    pub hostnames: bool,
    /// `volatile`: evaluated at each use, not kept for the request.
    pub volatile: bool,
}

impl Map {
    /// The entry for a value; `None` yields the empty string. `captures` receives the captures if a regular expression
    /// decides.
    pub fn find(&self, value: &[u8], captures: &mut Captures) -> Option<&MapValue> {
        let name = match value.strip_suffix(b".") {
            Some(name) if self.hostnames => name,
            _ => value,
        };
        if let Some(found) = lookup(&self.exact, name) {
            return Some(found);
        }
        let mut rest = if self.suffixes.is_empty() { &[] } else { name };
        while let Some(dot) = rest.iter().position(|&byte| byte == b'.') {
            rest = rest.get(dot + 1..).unwrap_or_default();
            if let Some(found) = lookup(&self.suffixes, rest) {
                return Some(found);
            }
        }
        let mut rest = if self.prefixes.is_empty() { &[] } else { name };
        while let Some(dot) = rest.iter().rposition(|&byte| byte == b'.') {
            rest = rest.get(..dot).unwrap_or_default();
            if let Some(found) = lookup(&self.prefixes, rest) {
                return Some(found);
            }
        }
        let found = self
            .patterns
            .iter()
            .find(|(pattern, _)| pattern.captures(value, captures));
        found.map(|(_, value)| value).or(self.default.as_ref())
    }
}

fn lookup<'a>(table: &'a [(Text, MapValue)], value: &[u8]) -> Option<&'a MapValue> {
    let order = |known: &Text| {
        known
            .iter()
            .copied()
            .cmp(value.iter().map(u8::to_ascii_lowercase))
    };
    let index = table.binary_search_by(|(known, _)| order(known)).ok()?;
    table.get(index).map(|(_, value)| value)
}

/// The value of a map entry.
#[derive(Debug, Clone)]
pub struct MapValue(
    /// Evaluated when looked up; captures refer to the entry's regular expression.
    pub Template,
);
