//! The figures of a document, out of the text that a recipe has them in.

use super::Published;

/// One figure of a document's table.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedFigure {
    /// The value of the axis `lines`.
    pub line: String,
    /// The value of the axis `columns`.
    pub column: String,
    /// In the document's unit.
    pub value: f64,
}

/// Why a matrix does not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    #[error("the matrix is empty; its first line names values of `columns`")]
    Empty,
    #[error(
        "line {line} (`{name}`) has {found} figures for {expected} columns; write `-` for a gap"
    )]
    Width {
        line: usize,
        name: String,
        found: usize,
        expected: usize,
    },
    #[error("`{word}` in line {line} is no number; write `-` for a gap")]
    Number { line: usize, word: String },
    #[error("`{name}` begins two lines")]
    Twice { name: String },
}

impl Published {
    /// The figures line by line, without the gaps.
    pub fn matrix(&self) -> Result<Vec<PublishedFigure>, MatrixError> {
        let lines = self.figures.lines().enumerate();
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let (_, head) = lines.next().ok_or(MatrixError::Empty)?;
        let columns: Vec<&str> = head.split_whitespace().collect();
        let mut figures = Vec::new();
        let mut names = Vec::new();
        for (index, line) in lines {
            let line_number = index + 1;
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let words: Vec<&str> = words.collect();
            if words.len() != columns.len() {
                return Err(MatrixError::Width {
                    line: line_number,
                    name: String::from(name),
                    found: words.len(),
                    expected: columns.len(),
                });
            }
            if names.contains(&name) {
                return Err(MatrixError::Twice {
                    name: String::from(name),
                });
            }
            names.push(name);
            for (column, word) in columns.iter().zip(words).filter(|(_, word)| *word != "-") {
                let value: Option<f64> = word.parse().ok();
                let value = value.filter(|value| value.is_finite());
                figures.push(PublishedFigure {
                    line: String::from(name),
                    column: String::from(*column),
                    value: value.ok_or_else(|| MatrixError::Number {
                        line: line_number,
                        word: String::from(word),
                    })?,
                });
            }
        }
        if names.is_empty() {
            return Err(MatrixError::Empty);
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(figures: &str) -> Result<Vec<PublishedFigure>, MatrixError> {
        let published = Published {
            place: String::from("Table 2"),
            metric: String::from("requests_per_s"),
            unit: None,
            at: std::collections::BTreeMap::new(),
            lines: String::from("workers"),
            columns: String::from("system"),
            figures: String::from(figures),
            defect: None,
        };
        published.matrix()
    }

    #[test]
    fn lines_begin_with_their_value_and_dashes_are_gaps() {
        let figures =
            matrix("\n    kernel  balanced\n 1  35890.70 126007\n\n 2  -  198366\n").unwrap();
        let words: Vec<String> = figures
            .iter()
            .map(|figure| format!("{} {} {}", figure.line, figure.column, figure.value))
            .collect();
        assert_eq!(
            words,
            ["1 kernel 35890.7", "1 balanced 126007", "2 balanced 198366"]
        );
    }

    #[test]
    fn what_is_no_matrix_is_refused_with_its_line() {
        let check = |figures: &str, expected: &str| {
            assert_eq!(matrix(figures).unwrap_err().to_string(), expected);
        };
        let empty = "the matrix is empty; its first line names values of `columns`";
        check(" \n", empty);
        check("a b", empty);
        check(
            "a b\n1 2\n",
            "line 2 (`1`) has 1 figures for 2 columns; write `-` for a gap",
        );
        check(
            "a\n1 1.5k\n",
            "`1.5k` in line 2 is no number; write `-` for a gap",
        );
        check(
            "a\n1 nan\n",
            "`nan` in line 2 is no number; write `-` for a gap",
        );
        check("a\n1 2\n1 3\n", "`1` begins two lines");
    }
}
