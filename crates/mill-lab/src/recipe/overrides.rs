//! `--set key=value`: the command line laid over a recipe.

use super::axes::value_name;
use super::source::{KeyPath, Places, Source};
use super::{RecipeError, TOP_LEVEL};
use mill_config::suggest::nearest;

/// Tables whose keys contain dots: what follows them is one key, quoted or not.
const DOTTED: [&str; 3] = ["sysctl", "server_sysctl", "client_sysctl"];

/// Lays one `key=value` over the recipe.
///
/// The key is dotted as in TOML. A single word that is no key of the recipe is a variable or an axis; `system` is the axis.
/// The value is TOML, or else a word; for an axis it may be a list without brackets: `workers=1,2`.
pub(super) fn lay(source: &mut Source, set: &str) -> Result<(), RecipeError> {
    let place = format!("--set {set}");
    let fail = |problem: String| RecipeError {
        place: place.clone(),
        problem,
    };
    let (key, text) = set.split_once('=').ok_or_else(|| {
        fail(String::from(
            "give a key and a value, as in `--set repeat.blocks=3`",
        ))
    })?;
    let path = key_path(key)
        .ok_or_else(|| fail(format!("`{key}` is no key; keys are words joined by dots")))?;
    let path = meant(source, path).map_err(fail)?;
    let value = match path.as_slice() {
        [first, axis] if first == "for" => axis_values(source, axis, text).map_err(fail)?,
        _ => toml_value(text).unwrap_or_else(|| toml::Value::String(String::from(text))),
    };
    let places = Places::one(path.clone(), place.clone());
    let nested = path.into_iter().rev().fold(value, |inner, key| {
        toml::Value::Table(toml::Table::from_iter([(key, inner)]))
    });
    if let toml::Value::Table(table) = nested {
        source.lay(Source { table, places });
    }
    Ok(())
}

/// The keys of a dotted key, by TOML's own rules.
fn key_path(key: &str) -> Option<KeyPath> {
    let document = format!("{key} = 0").parse::<toml::Table>().ok()?;
    let mut path = KeyPath::new();
    let mut value = toml::Value::Table(document);
    while let toml::Value::Table(table) = value {
        let (key, inner) = table.into_iter().next()?;
        path.push(key);
        value = inner;
    }
    Some(path)
}

/// Where a key belongs, or why nowhere.
fn meant(source: &Source, path: KeyPath) -> Result<KeyPath, String> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["system"] => Ok(axis_path("system")),
        [word] if in_table(source, "for", word) => Ok(axis_path(word)),
        [word] if in_table(source, "vars", word) => Ok(["vars", word].map(String::from).to_vec()),
        ["size" | "parent" | "id", ..] => Err(String::from(
            "sizes, parents and ids are not set on the command line; name a size with `--size`",
        )),
        [first, ..] if !TOP_LEVEL.contains(first) => Err(unknown(source, first, words.len() == 1)),
        ["for", "system"] => Ok(path),
        [table @ ("for" | "vars" | "system"), name, ..] if !in_table(source, table, name) => {
            Err(unknown_in(source, table, name))
        }
        ["tune", table, _, _, ..] if DOTTED.contains(table) => Ok(vec![
            String::from("tune"),
            String::from(*table),
            words.get(2..).unwrap_or_default().join("."),
        ]),
        _ => Ok(path),
    }
}

fn axis_path(axis: &str) -> KeyPath {
    ["for", axis].map(String::from).to_vec()
}

fn keys<'a>(source: &'a Source, table: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let table = source.table.get(table).and_then(toml::Value::as_table);
    table
        .into_iter()
        .flat_map(|table| table.keys().map(String::as_str))
}

fn in_table(source: &Source, table: &str, key: &str) -> bool {
    keys(source, table).any(|known| known == key)
}

fn unknown(source: &Source, word: &str, alone: bool) -> String {
    let own = keys(source, "vars").chain(keys(source, "for"));
    let candidates = TOP_LEVEL.into_iter().chain(own.filter(|_| alone));
    let advice = nearest(word.as_bytes(), candidates)
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    if alone {
        format!("`{word}` is no key, no variable and no axis of this recipe{advice}")
    } else {
        format!("`{word}` is no key of a recipe{advice}")
    }
}

fn unknown_in(source: &Source, table: &str, name: &str) -> String {
    let what = match table {
        "for" => "axis",
        "vars" => "variable",
        _ => "system",
    };
    match nearest(name.as_bytes(), keys(source, table)) {
        Some(near) => format!("this recipe has no {what} `{name}`; did you mean `{near}`?"),
        None => {
            let known: Vec<&str> = keys(source, table).collect();
            format!(
                "this recipe has no {what} `{name}`; there are: {}",
                known.join(", ")
            )
        }
    }
}

/// The values of an axis. Where the recipe's own are tables, or systems, they are chosen by name.
fn axis_values(source: &Source, axis: &str, text: &str) -> Result<toml::Value, String> {
    let given = match toml_value(text) {
        Some(toml::Value::Array(items)) => items,
        Some(one) => vec![one],
        None => text.split(',').map(|item| scalar(item.trim())).collect(),
    };
    let axes = source.table.get("for").and_then(toml::Value::as_table);
    let own = axes
        .and_then(|axes| axes.get(axis))
        .and_then(toml::Value::as_array);
    let tables: Vec<&toml::Value> = own
        .into_iter()
        .flatten()
        .filter(|value| value.is_table())
        .collect();
    let chosen = given.into_iter().map(|value| {
        if value.is_table() {
            return Ok(value);
        }
        let name = value_name(&value);
        if let Some(table) = tables.iter().find(|table| value_name(table) == name) {
            return Ok((*table).clone());
        }
        if axis == "system" && !in_table(source, "system", &name) {
            return Err(unknown_in(source, "system", &name));
        }
        if tables.is_empty() || axis == "system" {
            return Ok(value);
        }
        let names: Vec<String> = tables.iter().map(|table| value_name(table)).collect();
        Err(
            match nearest(name.as_bytes(), names.iter().map(String::as_str)) {
                Some(near) => {
                    format!("the axis `{axis}` has no value `{name}`; did you mean `{near}`?")
                }
                None => format!(
                    "the axis `{axis}` has no value `{name}`; there are: {}",
                    names.join(", ")
                ),
            },
        )
    });
    Ok(toml::Value::Array(chosen.collect::<Result<_, _>>()?))
}

/// A value as TOML writes it; dates become text.
fn toml_value(text: &str) -> Option<toml::Value> {
    let mut document = format!("value = {text}").parse::<toml::Table>().ok()?;
    let value = document.remove("value")?;
    let plain = document.is_empty() && !value.is_datetime();
    plain.then_some(value)
}

fn scalar(text: &str) -> toml::Value {
    toml_value(text).unwrap_or_else(|| toml::Value::String(String::from(text)))
}
