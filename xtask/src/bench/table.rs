//! A table for the terminal. The first columns hold words, the others figures.

#[derive(Clone, Debug)]
pub(super) struct Table {
    header: Vec<&'static str>,
    /// How many columns are aligned to the left.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(words: usize, header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            words,
            rows: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.header.len());
        self.rows.push(row);
    }

    pub(super) fn emit_text(&self) -> String {
        let widths = self.widths();
        let header = self.header.iter().map(|name| (*name).to_owned());
        let mut text = self.line(&header.collect::<Vec<_>>(), &widths);
        for row in &self.rows {
            text += &self.line(row, &widths);
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |text: &str| text.chars().count();
        let columns = self.header.iter().enumerate().map(|(index, name)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            cells.map(|cell| width(cell)).fold(width(name), usize::max)
        });
        columns.collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(index, (cell, width))| {
                if index < self.words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        let line = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table() -> Table {
        let mut table = Table::new(1, &["case", "µs"]);
        table.push(vec!["a".to_owned(), "10.25".to_owned()]);
        table.push(vec!["longer".to_owned(), "9".to_owned()]);
        table
    }

    #[test]
    fn text_is_aligned_by_characters() {
        let expected = "case       µs\na       10.25\nlonger      9\n";
        assert_eq!(table().emit_text(), expected);
    }
}
