//! Columns that are aligned.

/// A table of text.
#[derive(Clone, Debug)]
pub struct Columns {
    heads: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    /// For numbers.
    Right,
}

impl Columns {
    pub fn new(heads: &[(&'static str, Side)]) -> Self {
        Self {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text, a line feed at the end of each line.
    pub fn render(&self) -> String {
        let heads: Vec<String> = self
            .heads
            .iter()
            .map(|(head, _)| (*head).to_owned())
            .collect();
        let all = || [&heads].into_iter().chain(&self.rows);
        let width = |column: usize| {
            let cells = all().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let mut text = String::new();
        for row in all() {
            let mut line = String::new();
            for ((cell, width), (_, side)) in row.iter().zip(&widths).zip(&self.heads) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                match side {
                    Side::Left => line.push_str(&format!("{cell:<width$}")),
                    Side::Right => line.push_str(&format!("{cell:>width$}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut columns =
            Columns::new(&[("NAME", Side::Left), ("N", Side::Right), ("", Side::Left)]);
        assert!(columns.is_empty());
        columns.push(vec![String::from("a"), String::from("1")]);
        columns.push(vec![
            String::from("é-long"),
            String::from("1234"),
            String::from("x"),
        ]);
        let expected = "NAME       N\na          1\né-long  1234  x\n";
        assert_eq!(columns.render(), expected);
    }
}
