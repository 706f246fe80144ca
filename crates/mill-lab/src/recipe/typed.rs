//! A table as a type, with serde's errors in readable form: the place of the mistake, and a suggestion.

use super::RecipeError;
use super::source::KeyPath;
use mill_config::suggest::nearest;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use std::collections::BTreeSet;

/// More mistakes than this are not listed.
const MISTAKES_MAX: usize = 32;

/// Reads a type, or collects what is wrong: a wrong part is noted, taken out, and the rest is read on.
/// `at` knows how a key is written in the recipe, and where; values in `loose` came from a variable and may become text
/// where text is wanted.
pub(super) fn read<T: DeserializeOwned>(
    table: toml::Table,
    loose: &BTreeSet<KeyPath>,
    at: impl Fn(&[String]) -> (KeyPath, String),
) -> Result<T, Vec<RecipeError>> {
    let mut value = toml::Value::Table(table);
    let mut errors = Vec::new();
    let mut loose = loose.clone();
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(value.clone()) {
            Ok(typed) if errors.is_empty() => return Ok(typed),
            Ok(_) => return Err(errors),
            Err(error) => error,
        };
        let path = keys(error.path());
        if loose.remove(&path) && make_text(&mut value, &path) {
            continue;
        }
        let message = String::from(error.inner().message());
        let path = with_unknown(path, &message);
        let (written, place) = at(&path);
        errors.push(RecipeError {
            place,
            problem: explain(&written, &message),
        });
        let on = errors.len() < MISTAKES_MAX && take_out(&mut value, &path, &message);
        if !on {
            return Err(errors);
        }
    }
}

fn keys(path: &Path) -> KeyPath {
    let segments = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    segments.collect()
}

fn find<'a>(value: &'a mut toml::Value, path: &[String]) -> Option<&'a mut toml::Value> {
    path.iter().try_fold(value, |value, key| match value {
        toml::Value::Table(table) => table.get_mut(key),
        toml::Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

fn make_text(value: &mut toml::Value, path: &[String]) -> bool {
    let Some(found) = find(value, path) else {
        return false;
    };
    let scalar = !found.is_str() && !found.is_table() && !found.is_array();
    if scalar {
        *found = toml::Value::String(super::value_name(found));
    }
    scalar
}

/// Names of a message between backticks: the wrong one, then the known ones.
fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

fn is_unknown_field(message: &str) -> bool {
    message.starts_with("unknown field")
}

/// The path of an unknown field ends in it.
fn with_unknown(mut path: KeyPath, message: &str) -> KeyPath {
    if is_unknown_field(message)
        && let Some(field) = quoted(message).first()
        && path.last().map(String::as_str) != Some(*field)
    {
        path.push(String::from(*field));
    }
    path
}

fn explain(path: &[String], message: &str) -> String {
    let words = quoted(message);
    let (inside, last) = match path.split_last() {
        Some((last, inside)) => (inside.join("."), last.as_str()),
        None => (String::new(), ""),
    };
    if is_unknown_field(message) {
        let inside = if inside.is_empty() {
            String::new()
        } else {
            format!(" in `{inside}`")
        };
        return format!("unknown key `{last}`{inside}{}", advice(&words));
    }
    if message.starts_with("unknown variant") {
        let wrong = words.first().copied().unwrap_or_default();
        return format!("`{}` can't be `{wrong}`{}", path.join("."), advice(&words));
    }
    if message.starts_with("missing field") {
        let missing = words.first().copied().unwrap_or_default();
        return match path.join(".") {
            whole if whole.is_empty() => format!("`{missing}` is missing"),
            inside => format!("`{missing}` is missing in `{inside}`"),
        };
    }
    let plain = in_plain_words(message);
    match path.join(".") {
        whole if whole.is_empty() => plain,
        whole => format!("`{whole}`: {plain}"),
    }
}

fn advice(words: &[&str]) -> String {
    let Some((wrong, known)) = words.split_first() else {
        return String::new();
    };
    match nearest(wrong.as_bytes(), known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// Authors of recipes need not know Rust's names of types.
fn in_plain_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return String::from(message);
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    format!("{found}, expected {expected}")
}

/// Removes what is wrong, as little as makes the rest readable; false if the rest can't be.
fn take_out(value: &mut toml::Value, path: &[String], message: &str) -> bool {
    if is_unknown_field(message) {
        return remove(value, path);
    }
    // A part that may be left out goes as a whole: one item of a list, or one section.
    let section = match path {
        [list, index, ..] if index.parse::<usize>().is_ok() => vec![list.clone(), index.clone()],
        [section, ..] if !REQUIRED.contains(&section.as_str()) => vec![section.clone()],
        _ => return false,
    };
    remove(value, &section)
}

/// Without these nothing can be read on.
const REQUIRED: [&str; 4] = ["title", "question", "system", "load"];

fn remove(value: &mut toml::Value, path: &[String]) -> bool {
    let Some((last, around)) = path.split_last() else {
        return false;
    };
    match find(value, around) {
        Some(toml::Value::Table(table)) => table.remove(last).is_some(),
        // The places of later items must stay: the wrong one is replaced by its neighbour.
        Some(toml::Value::Array(items)) => {
            let Ok(index) = last.parse::<usize>() else {
                return false;
            };
            replace_item(items, index)
        }
        _ => false,
    }
}

fn replace_item(items: &mut Vec<toml::Value>, index: usize) -> bool {
    if index >= items.len() {
        return false;
    }
    if index > 0 {
        let good = items.first().cloned();
        if let (Some(good), Some(item)) = (good, items.get_mut(index)) {
            *item = good;
        }
    } else if items.len() == 1 {
        items.clear();
    } else {
        return false;
    }
    true
}
