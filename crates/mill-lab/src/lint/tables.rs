//! Tables of figures in a text: rows of cells between tabs, bars or wide gaps, under a row of headings.
//!
//! ```text
//! Workers   Kernel   Other    Other gain     headings; no cell of theirs is a number
//! 1         100.00   120.00   20.00%         the name of a row, then figures; all rows have as many cells
//! ```

use crate::output::quantity::Quantity;

/// A table of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    /// The place of its headings.
    pub(super) place: String,
    /// Of the columns of figures, without that of the names.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// One a column; none where it is no number.
    pub(super) cells: Vec<Option<Cell>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) figure: Quantity,
    /// It was printed with a percent sign.
    pub(super) is_percent: bool,
}

/// All tables of a text; `name` is the file, for the places.
pub(super) fn of(name: &str, text: &str) -> Vec<Table> {
    let lines: Vec<Vec<&str>> = text.lines().map(cells).collect();
    let mut tables = Vec::new();
    let mut index = 0;
    while let Some(head) = lines.get(index) {
        index += 1;
        if head.len() < CELLS_MIN || head.iter().any(|cell| figure(cell).is_some()) {
            continue;
        }
        let body = lines.get(index..).unwrap_or_default();
        // A line of dashes may come between.
        let skipped = usize::from(body.first().is_some_and(|line| is_rule(line)));
        let rows: Vec<Row> = body
            .iter()
            .skip(skipped)
            .map_while(|line| row(line, head.len()))
            .collect();
        if !rows.is_empty() {
            let place = format!("{name}:{index}");
            index += skipped + rows.len();
            let columns = head.iter().skip(1).map(|cell| String::from(*cell));
            tables.push(Table {
                place,
                columns: columns.collect(),
                rows,
            });
        }
    }
    tables
}

impl Table {
    /// The column's figures, row by row.
    pub(super) fn column(&self, index: usize) -> impl Iterator<Item = Option<Cell>> + '_ {
        self.rows
            .iter()
            .map(move |row| row.cells.get(index).copied().flatten())
    }

    /// Columns of figures that are no shares.
    pub(super) fn plain_columns(&self) -> Vec<usize> {
        (0..self.columns.len())
            .filter(|index| {
                let mut cells = self.column(*index).flatten().peekable();
                cells.peek().is_some() && cells.all(|cell| !cell.is_percent)
            })
            .collect()
    }
}

fn row(line: &[&str], columns: usize) -> Option<Row> {
    if line.len() != columns {
        return None;
    }
    let (name, cells) = line.split_first()?;
    let cells: Vec<Option<Cell>> = cells.iter().map(|cell| figure(cell)).collect();
    let numbers = cells.iter().flatten().count();
    (numbers > 0 && numbers * 2 >= cells.len()).then(|| Row {
        name: String::from(*name),
        cells,
    })
}

fn figure(cell: &str) -> Option<Cell> {
    let cell = cell.trim_matches(['*', '`', ' ']);
    let (number, is_percent) = match cell.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (cell, false),
    };
    let figure = Quantity::plain(number)?;
    Some(Cell { figure, is_percent })
}

/// The cells of a line: between bars, else between tabs, else between gaps of two blanks and more.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let parts: Vec<&str> = if line.contains('|') {
        line.trim_matches('|').split('|').collect()
    } else if line.contains('\t') {
        line.split('\t').collect()
    } else {
        line.split("  ")
            .filter(|cell| !cell.trim().is_empty())
            .collect()
    };
    parts.into_iter().map(str::trim).collect()
}

fn is_rule(line: &[&str]) -> bool {
    let mut marks = line.iter().flat_map(|cell| cell.chars()).peekable();
    marks.peek().is_some() && marks.all(|mark| matches!(mark, '-' | ':' | '+' | '=' | ' '))
}

/// A table has a column of names and two of figures at least.
const CELLS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, columns: &[&str], rows: &[(&str, &[Option<f64>])]) {
        let tables = of("page", text);
        let [table] = tables.as_slice() else {
            panic!("{tables:#?}")
        };
        assert_eq!(table.columns, columns);
        let read: Vec<(&str, Vec<Option<f64>>)> = table
            .rows
            .iter()
            .map(|row| {
                let value = |cell: &Option<Cell>| cell.map(|cell| cell.figure.value);
                (row.name.as_str(), row.cells.iter().map(value).collect())
            })
            .collect();
        let rows: Vec<(&str, Vec<Option<f64>>)> = rows
            .iter()
            .map(|(name, cells)| (*name, cells.to_vec()))
            .collect();
        assert_eq!(read, rows);
    }

    #[test]
    fn a_table_is_read_in_each_way_of_writing_it() {
        let rows: [(&str, &[Option<f64>]); 2] = [
            ("1", &[Some(100.0), Some(20.0)]),
            ("16", &[Some(2100.5), None]),
        ];
        let columns = ["One server", "Gain"];
        check(
            "n\tOne server\tGain\n1\t100\t20%\n16\t2,100.5\t-\nend",
            &columns,
            &rows,
        );
        check(
            "| n | One server | Gain |\n|---|---:|---:|\n| 1 | 100 | 20 % |\n| 16 | 2100.5 | n/a |\n",
            &columns,
            &rows,
        );
        check(
            "text\n n    One server   Gain\n 1      100   20%\n 16     2100.5   x\n\nn",
            &columns,
            &rows,
        );
    }

    #[test]
    fn what_is_no_table_is_none() {
        for text in [
            "",
            "a b c\n1 2 3",
            "a  b  c\nno numbers here",
            "1\t2\t3\n4\t5\t6",
            "a\tb\tc\n1\t2",
        ] {
            assert!(of("page", text).is_empty(), "{text}");
        }
    }
}
