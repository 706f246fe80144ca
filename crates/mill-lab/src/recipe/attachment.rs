//! `config = "@conf/nginx.conf"`: the text of a file instead of its name, so that a stored recipe needs nothing besides.

use super::inherit::Home;
use super::source::{KeyPath, Source};
use super::{RecipeError, embedded};

/// Puts texts where configurations and files of systems name them, also inside `[size.…]`.
pub(super) fn fill(source: &mut Source, home: &Home) -> Result<(), RecipeError> {
    let mut errors = Vec::new();
    let places = &source.places;
    let mut read = |path: &KeyPath, value: &mut String| {
        let Some(name) = value.strip_prefix('@') else {
            return;
        };
        match text(name, home) {
            Ok(text) => *value = text,
            Err(problem) => errors.push(RecipeError {
                place: places.of(path),
                problem,
            }),
        }
    };
    walk(&mut source.table, &mut Vec::new(), &mut read);
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Beside the recipe, or in the program.
fn text(name: &str, home: &Home) -> Result<String, String> {
    if let Home::Folder(folder) = home {
        let path = folder.join(name);
        if path.is_file() {
            return std::fs::read_to_string(&path)
                .map_err(|error| format!("the file {} can't be read: {error}", path.display()));
        }
    }
    let missing = || {
        let beside = match home {
            Home::Folder(folder) => format!(
                "neither {} nor a file that comes with Millstream",
                folder.join(name).display()
            ),
            Home::Embedded => String::from("no file that comes with Millstream"),
        };
        format!("`@{name}` is {beside}")
    };
    embedded::file(name).map(String::from).ok_or_else(missing)
}

/// All strings in `system.NAME.config` and `system.NAME.start.files.FILE`.
fn walk(table: &mut toml::Table, path: &mut KeyPath, read: &mut impl FnMut(&KeyPath, &mut String)) {
    for (key, value) in table.iter_mut() {
        path.push(key.clone());
        match value {
            toml::Value::Table(inner) => walk(inner, path, read),
            toml::Value::String(text) if holds_text(path) => read(path, text),
            _ => {}
        }
        path.pop();
    }
}

fn holds_text(path: &KeyPath) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let path = match path.as_slice() {
        ["size", _, rest @ ..] => rest,
        whole => whole,
    };
    matches!(
        path,
        ["system", _, "config"] | ["system", _, "start", "files", _]
    )
}
