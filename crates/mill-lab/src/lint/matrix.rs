//! Published figures as a matrix.

use crate::output::quantity::Quantity;
use crate::recipe::{Published, Recipe};

/// One figure of a published table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) line: String,
    pub(super) column: String,
    /// As printed, with what its rounding leaves open.
    pub(super) figure: Quantity,
}

/// All figures of a table, line by line; what is no number is a gap.
pub(super) fn cells(published: &Published) -> Vec<Cell> {
    let mut lines = published
        .figures
        .lines()
        .filter(|line| !line.trim().is_empty());
    let columns: Vec<&str> = lines
        .next()
        .map_or(Vec::new(), |head| head.split_whitespace().collect());
    lines
        .flat_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or("");
            columns.iter().zip(words).filter_map(move |(column, word)| {
                Some(Cell {
                    line: String::from(name),
                    column: String::from(*column),
                    figure: Quantity::plain(word.trim_end_matches('%'))?,
                })
            })
        })
        .collect()
}

/// Cells of two tables in the same place: (of the first, of the second).
pub(super) fn pairs(one: &[Cell], other: &[Cell]) -> Vec<(Cell, Cell)> {
    one.iter()
        .filter_map(|cell| {
            let partner = other
                .iter()
                .find(|known| known.line == cell.line && known.column == cell.column)?;
            Some((cell.clone(), partner.clone()))
        })
        .collect()
}

/// Bytes of the object of a table: `at` names a file of `[content]`, or its size.
pub(super) fn object_bytes(recipe: &Recipe, published: &Published) -> Option<f64> {
    published.at.iter().find_map(|(axis, value)| {
        let name = crate::recipe::value_name(value);
        let axis = recipe
            .axes()
            .into_iter()
            .find(|known| known.name == *axis)?;
        let value = axis.values.into_iter().find(|known| known.name == name)?;
        value.vars.iter().find_map(|(variable, value)| match value {
            toml::Value::String(file) => content_bytes(recipe, file.trim_start_matches('/')),
            toml::Value::Integer(bytes) if variable == "bytes" => plain(*bytes),
            _ => None,
        })
    })
}

fn content_bytes(recipe: &Recipe, file: &str) -> Option<f64> {
    plain(recipe.content.get(file)?.get("bytes")?.as_integer()?)
}

fn plain(bytes: i64) -> Option<f64> {
    Quantity::plain(&bytes.to_string()).map(|bytes| bytes.value)
}
