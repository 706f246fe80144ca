//! A recipe's text as a table with the place of each key, so that a mistake found much later is shown at its line.

use super::RecipeError;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys from the top down; places in lists by their number.
pub(super) type KeyPath = Vec<String>;

/// A table whose keys know where they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Source {
    pub(super) table: toml::Table,
    pub(super) places: Places,
}

/// The place of keys: `mine.toml:12:5`, or `--set duration=5s`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<KeyPath, String>);

impl Source {
    /// Reads a text; `file` is how messages call it.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, RecipeError> {
        let fail = |error: &toml::de::Error| RecipeError {
            place: match error.span() {
                Some(span) => place(file, text, span.start),
                None => String::from(file),
            },
            problem: String::from(error.message()),
        };
        let table = text.parse::<toml::Table>().map_err(|error| fail(&error))?;
        let spanned = DeTable::parse(text).map_err(|error| fail(&error))?;
        let mut places = BTreeMap::from([(Vec::new(), String::from(file))]);
        let mut note = |path: &KeyPath, offset: usize| {
            places.insert(path.clone(), place(file, text, offset));
        };
        note_table(spanned.get_ref(), &mut Vec::new(), &mut note);
        Ok(Self {
            table,
            places: Places(places),
        })
    }

    /// Lays another over this one: tables key by key, everything else as a whole.
    pub(super) fn lay(&mut self, above: Self) {
        let mut path = Vec::new();
        lay_table(
            &mut self.table,
            above.table,
            &mut path,
            &mut self.places,
            &above.places,
        );
    }

    /// Takes a table out, with its places; nothing if there is none.
    pub(super) fn take(&mut self, key: &str) -> Option<Self> {
        let toml::Value::Table(table) = self.table.remove(key)? else {
            return None;
        };
        let path = [String::from(key)];
        let places = self.places.below(&path);
        self.places.remove(&path);
        Some(Self { table, places })
    }

    /// A copy of the table at a path, with its places.
    pub(super) fn copy(&self, path: &[&str]) -> Option<Self> {
        let mut table = &self.table;
        for key in path {
            table = table.get(*key)?.as_table()?;
        }
        let path: KeyPath = path.iter().copied().map(String::from).collect();
        Some(Self {
            table: table.clone(),
            places: self.places.below(&path),
        })
    }

    /// Puts a table in the place of another.
    pub(super) fn put(&mut self, path: &[&str], inside: Self) {
        let Some((last, around)) = path.split_last() else {
            *self = inside;
            return;
        };
        let mut table = &mut self.table;
        for key in around {
            let empty = || toml::Value::Table(toml::Table::new());
            let entry = table.entry(*key).or_insert_with(empty);
            let Some(next) = entry.as_table_mut() else {
                return;
            };
            table = next;
        }
        table.insert(String::from(*last), toml::Value::Table(inside.table));
        let path: KeyPath = path.iter().copied().map(String::from).collect();
        self.places.remove(&path);
        for (rest, place) in inside.places.0 {
            self.places
                .0
                .insert([path.as_slice(), &rest].concat(), place);
        }
    }

    /// The place of what has no place of its own.
    pub(super) fn name(&mut self, place: String) {
        self.places.0.insert(Vec::new(), place);
    }

    /// An error at a key.
    pub(super) fn error(&self, path: &[&str], problem: impl Into<String>) -> RecipeError {
        let path: KeyPath = path.iter().copied().map(String::from).collect();
        RecipeError {
            place: self.places.of(&path),
            problem: problem.into(),
        }
    }
}

impl Places {
    /// All of one value at one place.
    pub(super) fn one(path: KeyPath, place: String) -> Self {
        Self(BTreeMap::from([(path, place)]))
    }

    /// Of a key, or of the nearest thing around it that has a place.
    pub(super) fn of(&self, path: &[String]) -> String {
        (0..=path.len())
            .rev()
            .find_map(|len| self.0.get(path.get(..len)?))
            .cloned()
            .unwrap_or_else(|| String::from("recipe"))
    }

    fn below(&self, path: &[String]) -> Self {
        let inside = self.0.range(path.to_vec()..);
        let inside = inside.map_while(|(key, place)| {
            let rest = key.strip_prefix(path)?;
            Some((rest.to_vec(), place.clone()))
        });
        Self(inside.collect())
    }

    fn remove(&mut self, path: &[String]) {
        self.0.retain(|key, _| !key.starts_with(path));
    }
}

fn lay_table(
    below: &mut toml::Table,
    above: toml::Table,
    path: &mut KeyPath,
    places: &mut Places,
    above_places: &Places,
) {
    for (key, value) in above {
        path.push(key.clone());
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => {
                if let Some(place) = above_places.0.get(path) {
                    places.0.insert(path.clone(), place.clone());
                }
                lay_table(old, new, path, places, above_places);
            }
            (_, value) => {
                places.remove(path);
                for (rest, place) in above_places.below(path).0 {
                    places.0.insert([path.as_slice(), &rest].concat(), place);
                }
                below.insert(key, value);
            }
        }
        path.pop();
    }
}

fn note_table(table: &DeTable<'_>, path: &mut KeyPath, note: &mut impl FnMut(&KeyPath, usize)) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        note(path, key.span().start);
        note_inside(value, path, note);
        path.pop();
    }
}

fn note_inside(
    value: &Spanned<DeValue<'_>>,
    path: &mut KeyPath,
    note: &mut impl FnMut(&KeyPath, usize),
) {
    match value.get_ref() {
        DeValue::Table(table) => note_table(table, path, note),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                note(path, item.span().start);
                note_inside(item, path, note);
                path.pop();
            }
        }
        _ => {}
    }
}

/// `file:line:column`, both from 1; columns are characters.
fn place(file: &str, text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(start..).unwrap_or("").chars().count() + 1;
    format!("{file}:{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::parse("a.toml", text).unwrap()
    }

    fn path(text: &str) -> KeyPath {
        text.split('/')
            .filter(|key| !key.is_empty())
            .map(String::from)
            .collect()
    }

    #[test]
    fn each_key_has_a_place_and_strangers_that_of_what_is_around() {
        let text =
            "title = \"x\"\n[load]\nargs = \"é\"\n[[probe]]\nkind = 1\n[size.smoke]\nload.x = 1\n";
        let check = |key: &str, expected: &str| {
            assert_eq!(source(text).places.of(&path(key)), expected, "{key}");
        };
        check("title", "a.toml:1:1");
        check("load/args", "a.toml:3:1");
        check("load/frogs", "a.toml:2:2");
        check("probe/0/kind", "a.toml:5:1");
        check("size/smoke/load/x", "a.toml:7:6");
        check("frogs", "a.toml");
    }

    #[test]
    fn tables_merge_and_lists_and_scalars_replace_with_their_places() {
        let mut below = source("a = 1\nlist = [1, 2, 3]\n[t]\nx = 1\ny = 2\n");
        let above = Source::parse("b.toml", "list = [9]\n\n[t]\ny = 3\n").unwrap();
        below.lay(above);
        assert_eq!(
            below.table,
            "a = 1\nlist = [9]\n[t]\nx = 1\ny = 3\n".parse().unwrap()
        );
        let check = |key: &str, expected: &str| assert_eq!(below.places.of(&path(key)), expected);
        check("t/x", "a.toml:4:1");
        check("t/y", "b.toml:4:1");
        check("list/0", "b.toml:1:9");
        check("list/2", "b.toml:1:1");
        check("", "a.toml");
    }

    #[test]
    fn a_text_that_is_no_toml_is_refused_in_its_line() {
        let error = Source::parse("a.toml", "title = \"x\"\nkind = \n").unwrap_err();
        assert_eq!(error.place, "a.toml:2:8");
    }
}
