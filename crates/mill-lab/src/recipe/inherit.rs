//! `parent = "other"`: a recipe laid over the one it names, and that one over its own parent.

use super::source::Source;
use super::{RecipeError, attachment, embedded};
use mill_config::suggest::nearest;
use std::path::{Path, PathBuf};

/// More than this is not a family but a mistake.
const PARENTS_MAX: usize = 8;

/// A recipe's text, what messages call it, and where the names in it are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) id: String,
    label: String,
    text: String,
    pub(super) home: Home,
}

/// The place of a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In the program.
    Embedded,
    Folder(PathBuf),
}

/// Reads a recipe with all its parents below it; `size` is still inside.
pub(super) fn read(document: &Document) -> Result<Source, RecipeError> {
    let mut layers = Vec::new();
    let mut next = Some(document.clone());
    while let Some(document) = next.take() {
        let mut source = Source::parse(&document.label, &document.text)?;
        if let Some(parent) = source.table.remove("parent") {
            next = Some(parent_of(&document, &parent, &source, layers.len())?);
        }
        if !layers.is_empty() {
            source.table.remove("id");
        }
        attachment::fill(&mut source, &document.home)?;
        layers.push(source);
    }
    let mut whole = Source::default();
    for layer in layers.into_iter().rev() {
        whole.lay(layer);
    }
    whole.name(document.label.clone());
    Ok(whole)
}

fn parent_of(
    document: &Document,
    parent: &toml::Value,
    source: &Source,
    depth: usize,
) -> Result<Document, RecipeError> {
    let fail = |problem: String| Err(source.error(&["parent"], problem));
    let Some(name) = parent.as_str() else {
        return fail(String::from(
            "`parent` is the id of a recipe or the path of a file, in quotes",
        ));
    };
    if depth >= PARENTS_MAX {
        return fail(format!(
            "more than {PARENTS_MAX} parents: does `{name}` name its own descendant?"
        ));
    }
    match Document::open(name, &document.home, Some(&document.label)) {
        Ok(parent) if parent.label == document.label => {
            fail(String::from("a recipe can't be its own parent"))
        }
        Ok(parent) => Ok(parent),
        Err(problem) => fail(problem),
    }
}

impl Document {
    /// A recipe of the command line: an id, or the path of a file from the working folder.
    pub(super) fn named(name: &str) -> Result<Self, RecipeError> {
        let opened = if is_path(name) {
            Self::file(Path::new(name))
        } else {
            Self::embedded(name)
        };
        opened.map_err(|problem| RecipeError {
            place: String::from(name),
            problem,
        })
    }

    /// A text without a place.
    pub(super) fn text(label: &str, text: &str) -> Self {
        Self {
            id: stem(Path::new(label)),
            label: String::from(label),
            text: String::from(text),
            home: Home::Folder(PathBuf::from(".")),
        }
    }

    /// Relative to another recipe: beside it first, then among those in the program.
    fn open(name: &str, home: &Home, except: Option<&str>) -> Result<Self, String> {
        let Home::Folder(folder) = home else {
            return Self::embedded(name);
        };
        if is_path(name) {
            return Self::file(&folder.join(name));
        }
        let beside = folder.join(format!("{name}.toml"));
        if beside.is_file() && except != Some(&beside.display().to_string()) {
            return Self::file(&beside);
        }
        Self::embedded(name)
    }

    fn embedded(id: &str) -> Result<Self, String> {
        let label = format!("{id}.toml");
        let Some(text) = embedded::file(&label) else {
            return Err(unknown_id(id));
        };
        Ok(Self {
            id: String::from(id),
            label,
            text: String::from(text),
            home: Home::Embedded,
        })
    }

    fn file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("the file {} can't be read: {error}", path.display()))?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        Ok(Self {
            id: stem(path),
            label: path.display().to_string(),
            text,
            home: Home::Folder(folder.to_path_buf()),
        })
    }
}

fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml")
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn unknown_id(id: &str) -> String {
    match nearest(id.as_bytes(), embedded::ids()) {
        Some(near) => format!("no recipe is called `{id}`; did you mean `{near}`?"),
        None => format!(
            "no recipe is called `{id}`; `millstream lab list` names them, and a file of your own is given by its path, `./{id}.toml`"
        ),
    }
}

#[cfg(test)]
mod tests;
