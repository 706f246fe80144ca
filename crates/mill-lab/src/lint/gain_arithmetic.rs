//! Published gains that do not follow from the figures beside them. A table of gains has `unit = "% over COLUMN"` and stands beside a
//! table of the same metric, `at` and lines; its columns are gained over that column.

use super::matrix::{Cell, cells};
use super::warning;
use crate::findings::Warning;
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
            Some(warning(
                "gain-arithmetic",
                text,
                "Compute gains from the figures that are printed, to / from - 1.",
            ))
        })
        .collect()
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
            let ratio = at(&gain.line, &gain.column)?
                .figure
                .over(at(&gain.line, base)?.figure)?
                .times(100.0);
            let expected = ratio.value - 100.0;
            let allowed = ratio.half_width + gain.figure.half_width + ROUNDING;
            let is_wrong = (gain.figure.value - expected).abs() > allowed;
            is_wrong.then(|| {
                format!(
                    "{} at {} says {} %, it is {expected:.2} %",
                    gain.column, gain.line, gain.figure.value
                )
            })
        })
        .collect()
}

/// Percentage points that arithmetic in doubles may add.
const ROUNDING: f64 = 1e-6;
