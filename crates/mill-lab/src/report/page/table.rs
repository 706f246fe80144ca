//! A table of the findings, as the template takes it.

use crate::findings::{Cell, Grid};
use crate::report::number::grouped;
use crate::report::quiet::quiet;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct TableView {
    title: String,
    head: Vec<Head>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Head {
    text: String,
    number: bool,
}

impl TableView {
    pub(super) fn of(grid: &Grid, rows_max: usize) -> Self {
        let grid = &quiet(grid);
        let number = |column: usize| {
            let mut cells = grid.rows.iter().filter_map(|row| row.get(column));
            cells.any(|cell| cell.number)
        };
        let mut notes = grid.notes.clone();
        if grid.rows.len() > rows_max {
            notes.push(format!(
                "{} further rows are in the CSV file.",
                grid.rows.len() - rows_max
            ));
        }
        Self {
            title: grid.title.clone(),
            head: grid
                .head
                .iter()
                .enumerate()
                .map(|(column, head)| Head {
                    text: head.clone(),
                    // The first column names rows and is aligned left, numbers or not.
                    number: column > 0 && number(column),
                })
                .collect(),
            rows: grid
                .rows
                .iter()
                .take(rows_max)
                .map(|row| {
                    let cells = row.iter().enumerate();
                    cells
                        .map(|(column, cell)| view(column, cell, number(column)))
                        .collect()
                })
                .collect(),
            notes,
        }
    }
}

/// The first column names its row and stays as it is.
fn view(column: usize, cell: &Cell, among_numbers: bool) -> Cell {
    Cell {
        text: if column > 0 || cell.number {
            grouped(&cell.text)
        } else {
            cell.text.clone()
        },
        // A missing figure's text is in the number's place.
        number: cell.number || (among_numbers && cell.text.is_empty()),
        ..cell.clone()
    }
}
