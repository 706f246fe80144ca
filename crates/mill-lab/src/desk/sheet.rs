//! Columns of text on a terminal.

/// Lines with columns as wide as their widest cell; the last is not filled up. Columns named in `right` hold numbers.
pub fn sheet(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            if column > 0 {
                line.push_str("  ");
            }
            if right.contains(&column) {
                line.push_str(&gap);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&gap);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The text of a cell.
pub fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [
            row(["run", "n", "µ"]),
            row(["a", "100", ""]),
            row(["long", "5", "x"]),
        ];
        let expected = "run     n  µ\na     100\nlong    5  x\n";
        assert_eq!(sheet(&rows, &[1]), expected);
    }
}
