//! docs/lab.md has every key and every word that a recipe may use, every column of the index, and an example that works.

use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../docs/lab.md");
const SOURCES: [&str; 2] = [
    include_str!("../src/recipe/model.rs"),
    include_str!("../src/recipe/setup.rs"),
];
const INDEX: &str = include_str!("../src/store/schema.sql");

/// Types that describe a recipe after it was read: their fields are no keys.
const NO_KEYS: [&str; 2] = ["Axis", "AxisValue"];

/// Words in backticks: `a`, and the parts of `a.b` and of `[a.b]`, also where one pair has several.
fn documented() -> BTreeSet<&'static str> {
    let inside = DOCUMENT.split('`').skip(1).step_by(2);
    let edge = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == ' ');
    inside
        .flat_map(|code| code.split(edge).chain([code]))
        .map(str::trim)
        .collect()
}

fn kebab(word: &str) -> String {
    let mut text = String::new();
    for (index, letter) in word.char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Fields of structs and variants of enums that derive Deserialize, as TOML spells them.
fn words_of(source: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut read = false;
    let mut inside = "";
    let mut renamed: Option<&str> = None;
    for line in source.lines() {
        if line.starts_with("#[derive(") {
            read = line.contains("Deserialize");
        } else if let Some(rest) = line
            .strip_prefix("pub struct ")
            .or_else(|| line.strip_prefix("pub enum "))
        {
            let name = rest.split(' ').next().unwrap_or(rest);
            inside = if read && !NO_KEYS.contains(&name) {
                name
            } else {
                ""
            };
        } else if line == "}" {
            inside = "";
        } else if inside.is_empty() {
            continue;
        } else if line.trim_start().starts_with("#[serde(") {
            let name = line
                .split_once("rename = \"")
                .and_then(|(_, rest)| rest.split('"').next());
            renamed = name.or(renamed);
        } else if let Some(field) = line.strip_prefix("    pub ") {
            let name = field.split(':').next().unwrap_or(field);
            words.push(
                renamed
                    .take()
                    .map_or_else(|| name.to_owned(), str::to_owned),
            );
        } else if line.starts_with("    ")
            && line
                .trim_start()
                .starts_with(|c: char| c.is_ascii_uppercase())
        {
            let name = line.trim().split([',', '(']).next().unwrap_or(line);
            words.push(renamed.take().map_or_else(|| kebab(name), str::to_owned));
        }
    }
    words
}

#[test]
fn every_key_of_a_recipe_is_documented() {
    let documented = documented();
    let words: Vec<String> = SOURCES.iter().flat_map(|source| words_of(source)).collect();
    for known in [
        "for",
        "blocks_max",
        "vm-exits",
        "millstream wrk",
        "nofile",
        "defect",
    ] {
        assert!(
            words.iter().any(|word| word == known),
            "{known} was not found in the source"
        );
    }
    let missing: Vec<&String> = words
        .iter()
        .filter(|word| !documented.contains(word.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/lab.md lacks {missing:?}");
}

#[test]
fn every_column_of_the_index_is_documented() {
    let documented = documented();
    let columns: Vec<&str> = INDEX
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, rest)| {
            ["TEXT", "INTEGER", "REAL"]
                .iter()
                .any(|kind| rest.trim_start().starts_with(kind))
        })
        .map(|(name, _)| name)
        .collect();
    assert!(columns.contains(&"revision") && columns.contains(&"metric"));
    let missing: Vec<&&str> = columns
        .iter()
        .filter(|name| !documented.contains(**name))
        .collect();
    assert!(missing.is_empty(), "docs/lab.md lacks {missing:?}");
}

#[test]
fn the_example_is_a_recipe_without_mistakes() {
    let (_, rest) = DOCUMENT.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    for size in mill_lab::recipe::SIZES {
        let resolved = mill_lab::recipe::Resolved::parse("lab.md", example, size).unwrap();
        assert_eq!(resolved.points().len(), 4);
        assert_eq!(mill_lab::recipe::check(&resolved), []);
    }
}
