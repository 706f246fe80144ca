//! `${name}` in the strings and keys of a setup, replaced by the variables and axes of a point.
//!
//! A string that is nothing but `${name}` takes the value as it is: a number stays one. Machine variables stay for the
//! rig; `$$` is a `$`; a `$` without a brace is nginx's own.

use super::MACHINE_VARIABLES;
use super::source::KeyPath;
use mill_config::suggest::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// The variables of a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Variables(pub(super) BTreeMap<String, toml::Value>);

/// What substitution did to a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// Problems, by the path of the key as it is written.
    pub(super) problems: Vec<(KeyPath, String)>,
    /// Values that were nothing but `${name}`, by their new path.
    pub(super) whole: BTreeSet<KeyPath>,
    /// New path to written path, where a key changed.
    pub(super) renamed: BTreeMap<KeyPath, KeyPath>,
}

impl Variables {
    /// A value with everything in it replaced. `path` is its own, before and after alike.
    pub(super) fn replace(
        &self,
        value: &toml::Value,
        path: &[String],
        trace: &mut Trace,
    ) -> toml::Value {
        let mut walk = Walk {
            variables: self,
            written: path.to_vec(),
            new: path.to_vec(),
            trace,
        };
        walk.value(value)
    }

    fn expand(&self, text: &str, around: &mut Vec<String>) -> Result<toml::Value, String> {
        if let Some(name) = only_name(text)
            && !MACHINE_VARIABLES.contains(&name)
        {
            return self.value_of(name, around);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some(inside) = after.strip_prefix('{') {
                let Some((name, after)) = inside.split_once('}') else {
                    return Err(String::from(
                        "`${` without its `}`; write `$${` for the characters themselves",
                    ));
                };
                out.push_str(&self.text_of(name, around)?);
                rest = after;
            } else {
                out.push('$');
                rest = after;
            }
        }
        out.push_str(rest);
        Ok(toml::Value::String(out))
    }

    fn text_of(&self, name: &str, around: &mut Vec<String>) -> Result<String, String> {
        if MACHINE_VARIABLES.contains(&name) {
            return Ok(format!("${{{name}}}"));
        }
        match self.value_of(name, around)? {
            toml::Value::Array(_) | toml::Value::Table(_) => Err(format!(
                "`${{{name}}}` is a list or a table and can't stand inside a text"
            )),
            scalar => Ok(super::value_name(&scalar)),
        }
    }

    fn value_of(&self, name: &str, around: &mut Vec<String>) -> Result<toml::Value, String> {
        let Some(value) = self.0.get(name) else {
            return Err(self.unknown(name));
        };
        if around.iter().any(|outer| outer == name) {
            around.push(String::from(name));
            return Err(format!(
                "variables go round in a circle: {}",
                around.join(" -> ")
            ));
        }
        let toml::Value::String(text) = value else {
            return Ok(value.clone());
        };
        around.push(String::from(name));
        let value = self.expand(text, around)?;
        around.pop();
        Ok(value)
    }

    fn unknown(&self, name: &str) -> String {
        let known = self.0.keys().map(String::as_str);
        match nearest(name.as_bytes(), known.chain(MACHINE_VARIABLES)) {
            Some(near) => format!("there is no variable `{name}`; did you mean `${{{near}}}`?"),
            None => format!(
                "there is no variable `{name}`; add it to [vars], or write `$${{{name}}}` for the characters themselves"
            ),
        }
    }
}

/// `name` of `${name}`, if there is nothing else.
fn only_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    (!name.contains(['$', '{', '}'])).then_some(name)
}

struct Walk<'a> {
    variables: &'a Variables,
    written: KeyPath,
    new: KeyPath,
    trace: &'a mut Trace,
}

impl Walk<'_> {
    fn value(&mut self, value: &toml::Value) -> toml::Value {
        match value {
            toml::Value::String(text) => self.text(text),
            toml::Value::Array(items) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    let index = index.to_string();
                    self.inside(&index, &index, item)
                });
                toml::Value::Array(items.collect())
            }
            toml::Value::Table(table) => {
                let mut replaced = toml::Table::new();
                for (key, inner) in table {
                    let new = self.key(key);
                    let inner = self.inside(key, &new, inner);
                    replaced.insert(new, inner);
                }
                toml::Value::Table(replaced)
            }
            other => other.clone(),
        }
    }

    fn inside(&mut self, written: &str, new: &str, value: &toml::Value) -> toml::Value {
        self.written.push(String::from(written));
        self.new.push(String::from(new));
        if self.written != self.new {
            self.trace
                .renamed
                .insert(self.new.clone(), self.written.clone());
        }
        let replaced = self.value(value);
        self.written.pop();
        self.new.pop();
        replaced
    }

    fn text(&mut self, text: &str) -> toml::Value {
        match self.variables.expand(text, &mut Vec::new()) {
            Ok(value) => {
                if !value.is_str() {
                    self.trace.whole.insert(self.new.clone());
                }
                value
            }
            Err(problem) => {
                self.trace.problems.push((self.written.clone(), problem));
                toml::Value::String(String::from(text))
            }
        }
    }

    fn key(&mut self, key: &str) -> String {
        match self.variables.expand(key, &mut Vec::new()) {
            Ok(value) => super::value_name(&value),
            Err(problem) => {
                let mut path = self.written.clone();
                path.push(String::from(key));
                self.trace.problems.push((path, problem));
                String::from(key)
            }
        }
    }
}
