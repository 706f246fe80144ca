//! A shorter form of a table: what cannot be measured here keeps its place, and its reason is stated once instead of
//! in every cell.

use crate::findings::{Cell, Grid};

/// The table in its shorter form. One without any figure is its notes alone; a column with the same reason in all its
/// cells has it in the first; so does a row; long reasons are below.
pub(super) fn quiet(grid: &Grid) -> Grid {
    let mut out = grid.clone();
    let reasons = reasons(grid);
    if reasons.is_empty() {
        return out;
    }
    let figures = grid.rows.iter().flat_map(|row| row.iter().skip(1));
    // Rows of several axes begin with words, which are no figures.
    if !figures
        .clone()
        .any(|cell| cell.number && !cell.text.is_empty())
    {
        out.rows.clear();
        out.notes = vec![format!("No figure in this table: {}.", reasons.join("; "))];
        return out;
    }
    for column in 1..grid.head.len() {
        hush(&mut out.rows, |row| row.get_mut(column));
    }
    for row in &mut out.rows {
        let mut said: Option<String> = None;
        for cell in row.iter_mut().filter(|cell| is_empty(cell)) {
            if said.is_some() && said == cell.mark {
                dash(cell);
            } else if cell.mark.is_some() {
                said.clone_from(&cell.mark);
            }
        }
    }
    let mut below: Vec<String> = Vec::new();
    for cell in out.rows.iter_mut().flatten().filter(|cell| is_empty(cell)) {
        if let Some(mark) = &cell.mark
            && mark.chars().count() > MARK_MAX
            && let Some((short, _)) = mark.split_once(": ")
        {
            if !below.contains(mark) {
                below.push(mark.clone());
            }
            cell.mark = Some(String::from(short));
        }
    }
    if !below.is_empty() {
        out.notes.push(format!("In full: {}.", below.join("; ")));
    }
    out
}

/// Letters of a reason that a cell holds in two lines.
const MARK_MAX: usize = 30;

/// Dashes below the first cell, if all have the same text.
fn hush<'a>(rows: &'a mut [Vec<Cell>], of: impl Fn(&'a mut Vec<Cell>) -> Option<&'a mut Cell>) {
    let mut cells: Vec<&mut Cell> = rows.iter_mut().filter_map(of).collect();
    let first = cells.first().and_then(|cell| cell.mark.clone());
    let same = |cell: &&mut Cell| is_empty(cell) && cell.mark.is_some() && cell.mark == first;
    if cells.iter().all(same) {
        cells.iter_mut().skip(1).for_each(|cell| dash(cell));
    }
}

fn is_empty(cell: &Cell) -> bool {
    cell.text.is_empty()
}

fn dash(cell: &mut Cell) {
    cell.mark = None;
    cell.text = String::from("–");
}

/// Why cells are empty, each reason once.
fn reasons(grid: &Grid) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    let cells = grid.rows.iter().flatten().filter(|cell| is_empty(cell));
    for mark in cells.filter_map(|cell| cell.mark.as_ref()) {
        if !reasons.contains(mark) {
            reasons.push(mark.clone());
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as `word|figure|!reason`.
    fn grid(rows: &[&str]) -> Grid {
        let cell = |(index, text): (usize, &str)| match text.strip_prefix('!') {
            Some(reason) => Cell {
                mark: Some(reason.to_owned()),
                number: true,
                ..Cell::default()
            },
            None => Cell {
                text: text.to_owned(),
                number: index > 0,
                ..Cell::default()
            },
        };
        Grid {
            title: String::from("Rates"),
            head: vec![String::new(); rows[0].split('|').count()],
            rows: rows
                .iter()
                .map(|row| row.split('|').enumerate().map(cell).collect())
                .collect(),
            notes: vec![String::from("One trial each.")],
        }
    }

    fn check(rows: &[&str], expected: &[&str], notes: &[&str]) {
        let quiet = quiet(&grid(rows));
        let cell = |cell: &Cell| match &cell.mark {
            Some(mark) => format!("!{mark}"),
            None => cell.text.clone(),
        };
        let found: Vec<String> = quiet
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|"))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(quiet.notes, notes);
    }

    #[test]
    fn what_holds_everywhere_is_said_once() {
        check(&["1|5|6"], &["1|5|6"], &["One trial each."]);
        check(
            &[
                "1|5|!not built yet: Millstream's own stack",
                "2|!needs 3 cores|!not built yet: Millstream's own stack",
            ],
            &["1|5|!not built yet", "2|!needs 3 cores|–"],
            &[
                "One trial each.",
                "In full: not built yet: Millstream's own stack.",
            ],
        );
        check(
            &["1|5|6", "2|!needs 3 cores|!needs 3 cores"],
            &["1|5|6", "2|!needs 3 cores|–"],
            &["One trial each."],
        );
        check(
            &["1|!needs 3 cores|!absent", "2|!needs 3 cores|!absent"],
            &[],
            &["No figure in this table: needs 3 cores; absent."],
        );
    }

    #[test]
    fn reasons_that_differ_stay_where_they_are() {
        check(
            &[
                "1|5|!failed: stolen",
                "2|6|!failed: others took 14 % of the CPU time",
            ],
            &["1|5|!failed: stolen", "2|6|!failed"],
            &[
                "One trial each.",
                "In full: failed: others took 14 % of the CPU time.",
            ],
        );
    }
}
