//! Published gains that do not follow from the figures beside them. A table of gains has `unit = "% over COLUMN"` and
//! belongs to a table of the same metric, `at` and lines; its columns are gains over that column.

use super::changes;
use super::matrix::{Cell, cells};
use super::tables::Table;
use super::warning;
use crate::findings::Warning;
use crate::output::quantity::Quantity;
use crate::recipe::{Published, Recipe};

pub(super) fn of_published(recipe: &Recipe) -> Vec<Warning> {
    recipe
        .published
        .iter()
        .filter_map(|gains| {
            let base = gains.unit.as_deref()?.strip_prefix("% over ")?;
            let rates = recipe.published.iter().find(|table| {
                table.metric == gains.metric
                    && table.at == gains.at
                    && table.lines == gains.lines
                    && table
                        .unit
                        .as_deref()
                        .is_none_or(|unit| !unit.starts_with("% over "))
            })?;
            let wrong = wrong(gains, rates, base);
            if wrong.is_empty() {
                return None;
            }
            let text = format!(
                "{}: {} of {} gains do not follow from {}: {}.",
                gains.place,
                wrong.len(),
                cells(gains).len(),
                rates.place,
                wrong.join("; ")
            );
            Some(warning("gain-arithmetic", text, ADVICE))
        })
        .collect()
}

/// Gains in a text: columns of tables that are called gains, and `from A to B (+C%)`.
pub(super) fn of_text(name: &str, text: &str, read: &[Table]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = read.iter().flat_map(of_table).collect();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = changes::of_line(line).and_then(|change| change.wrong_gain());
        if let Some(wrong) = wrong {
            let text = format!("{name}:{number}: {wrong}.");
            warnings.push(warning("gain-arithmetic", text, ADVICE));
        }
    }
    warnings
}

/// The columns of a table that say by how much another one is more than the first. If most of a column does not follow from
/// the figures it is a gain over something else, of which we know nothing.
fn of_table(table: &Table) -> Vec<Warning> {
    let plain = table.plain_columns();
    let Some(&base) = plain.first() else {
        return Vec::new();
    };
    let columns = table.columns.iter().enumerate();
    columns
        .filter_map(|(index, heading)| {
            let gained = gained_column(heading, table, &plain)?;
            let rows = table.rows.iter().filter_map(|row| {
                let cell = |index: usize| row.cells.get(index).copied().flatten();
                let (from, to, gain) = (cell(base)?, cell(gained)?, cell(index)?);
                let expected = gain_of(from.figure, to.figure)?;
                Some((row.name.as_str(), gain.figure, expected))
            });
            let rows: Vec<(&str, Quantity, Quantity)> = rows.collect();
            let wrong: Vec<String> = rows
                .iter()
                .filter(|(_, said, expected)| !fits(*said, *expected))
                .map(|(name, said, expected)| {
                    format!("{name} says {} %, it is {:.2} %", said.value, expected.value)
                })
                .collect();
            if wrong.is_empty() || wrong.len() * 2 > rows.len() {
                return None;
            }
            let text = format!(
                "{}: {} of {} gains of \"{heading}\" do not follow from the figures beside them: {}.",
                table.place,
                wrong.len(),
                rows.len(),
                wrong.join("; ")
            );
            Some(warning("gain-arithmetic", text, ADVICE))
        })
        .collect()
}

/// The column that a column of gains is about: the one whose heading it repeats, or the second of two.
fn gained_column(heading: &str, table: &Table, plain: &[usize]) -> Option<usize> {
    let heading = heading.to_lowercase();
    let word = GAIN_WORDS.iter().find(|word| heading.contains(**word))?;
    let rest = heading.replacen(word, "", 1);
    let rest = rest.trim();
    let named = plain.iter().skip(1).copied().find(|index| {
        table
            .columns
            .get(*index)
            .is_some_and(|it| it.to_lowercase() == rest)
    });
    let second = || match plain {
        [_, second] => Some(*second),
        _ => None,
    };
    named.or_else(second)
}

/// In percent, with what the rounding of both figures leaves open.
pub(super) fn gain_of(from: Quantity, to: Quantity) -> Option<Quantity> {
    let ratio = to.over(from)?.times(100.0);
    Some(Quantity {
        value: ratio.value - 100.0,
        half_width: ratio.half_width,
    })
}

fn fits(said: Quantity, expected: Quantity) -> bool {
    let allowed = expected.half_width + said.half_width + ROUNDING;
    (said.value - expected.value).abs() <= allowed
}

/// Gains further from to/from - 1 than the rounding of all three can make them.
fn wrong(gains: &Published, rates: &Published, base: &str) -> Vec<String> {
    let rates = cells(rates);
    let at = |line: &str, column: &str| -> Option<&Cell> {
        rates
            .iter()
            .find(|cell| cell.line == line && cell.column == column)
    };
    cells(gains)
        .iter()
        .filter_map(|gain| {
            let (from, to) = (at(&gain.line, base)?, at(&gain.line, &gain.column)?);
            let expected = gain_of(from.figure, to.figure)?;
            (!fits(gain.figure, expected)).then(|| {
                format!(
                    "{} at {} says {} %, it is {:.2} %",
                    gain.column, gain.line, gain.figure.value, expected.value
                )
            })
        })
        .collect()
}

const ADVICE: &str = "Compute gains from the figures that are printed, to / from - 1.";

/// Words that mark a column of gains.
const GAIN_WORDS: [&str; 4] = ["gain", "improvement", "increase", "speedup"];

/// Percentage points that arithmetic in doubles may add.
const ROUNDING: f64 = 1e-6;
