//! Tests of paths in an order of their own, as rows of `map`s: one of these compares equal texts first and expressions
//! then, so that what stands in another order needs several.

use super::pattern;
use super::site::{PathTest, Pattern, Test};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;

/// A key, what follows from it, and its place.
pub(super) type Row<T> = (Vec<u8>, T, Origin);

/// The rows of each map, in the order in which the maps are asked.
pub(super) struct Order<T> {
    pub(super) runs: Vec<Vec<Row<T>>>,
    /// What a test says that takes all paths.
    pub(super) rest: Option<T>,
}

/// Puts the tests into as few maps as keep their order; the first one that matches counts.
pub(super) fn order<T>(items: Vec<(&PathTest, T)>) -> Applied<Order<T>> {
    let mut runs: Vec<Vec<Row<T>>> = Vec::new();
    let mut has_regex = false;
    for (path, value) in items {
        if path.test == Test::Any {
            return Ok(Order {
                runs,
                rest: Some(value),
            });
        }
        let pattern = pattern::of_path(path)?;
        let is_regex = matches!(pattern, Pattern::Regex(_));
        if has_regex && !is_regex || runs.is_empty() {
            runs.push(Vec::new());
        }
        has_regex = is_regex;
        let key = key_of(&pattern);
        if let Some(run) = runs.last_mut()
            && !run.iter().any(|(known, ..)| *known == key)
        {
            run.push((key, value, path.text.origin.clone()));
        }
    }
    Ok(Order { runs, rest: None })
}

/// The key of a `map`: words with a meaning of their own there get a backslash.
pub(super) fn key_of(pattern: &Pattern) -> Vec<u8> {
    match pattern {
        Pattern::Regex(key) => key.clone(),
        Pattern::Exact(text) => {
            let text = text.to_ascii_lowercase();
            let special: [&[u8]; 4] = [b"default", b"hostnames", b"include", b"volatile"];
            if special.contains(&text.as_slice()) || matches!(text.first(), Some(b'~' | b'\\')) {
                return [b"\\", &text[..]].concat();
            }
            text
        }
    }
}
