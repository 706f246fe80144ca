//! Tables for spreadsheets and scripts: plain numbers, the small print in columns of its own.

use super::escape::{csv as field, slug};
use crate::findings::{Compared, Findings, Grid};

/// (file name, text) of each table, and of the comparisons.
pub(super) fn files(findings: &Findings) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = findings
        .tables
        .iter()
        .enumerate()
        .map(|(index, grid)| {
            let name = format!("table-{}-{}.csv", index + 1, slug(&grid.title));
            (name, table(grid))
        })
        .collect();
    if !findings.comparisons.is_empty() {
        out.push((
            String::from("comparisons.csv"),
            comparisons(&findings.comparisons),
        ));
    }
    out
}

/// A column of small print follows its column where any cell has some.
fn table(grid: &Grid) -> String {
    let columns = grid.columns();
    let small: [(&str, SmallPrint); 3] = [
        ("spread", |cell| cell.spread.as_deref()),
        ("published", |cell| cell.published.as_deref()),
        ("mark", |cell| cell.mark.as_deref()),
    ];
    let mut lines = vec![Vec::new(); grid.rows.len() + 1];
    for column in 0..columns {
        let head = grid.head.get(column).map_or("", String::as_str);
        lines[0].push(field(head));
        for (line, row) in lines[1..].iter_mut().zip(&grid.rows) {
            line.push(field(row.get(column).map_or("", |cell| cell.text.as_str())));
        }
        for (word, of) in small {
            let cells = || grid.rows.iter().map(|row| row.get(column).and_then(of));
            if cells().all(|cell| cell.is_none()) {
                continue;
            }
            lines[0].push(field(format!("{head} {word}").trim()));
            for (line, cell) in lines[1..].iter_mut().zip(cells()) {
                line.push(field(cell.unwrap_or("")));
            }
        }
    }
    emit(&lines)
}

type SmallPrint = fn(&crate::findings::Cell) -> Option<&str>;

fn comparisons(all: &[Compared]) -> String {
    let head = [
        "comparison",
        "factor",
        "metric",
        "at",
        "from",
        "to",
        "from_figure",
        "to_figure",
        "ratio",
        "low",
        "high",
        "covers",
        "pairs",
        "p_value",
        "verdict",
        "words",
        "caution",
    ];
    let mut lines = vec![head.map(String::from).to_vec()];
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for compared in all {
        lines.push(vec![
            field(&compared.title),
            field(&compared.factor),
            field(&compared.metric),
            field(&compared.at),
            field(&compared.from),
            field(&compared.to),
            number(Some(compared.from_figure)),
            number(Some(compared.to_figure)),
            number(Some(compared.ratio)),
            number(compared.interval.map(|(low, _)| low)),
            number(compared.interval.map(|(_, high)| high)),
            number(compared.covers),
            compared.pairs.to_string(),
            number(compared.p_value),
            String::from(compared.verdict.tone().word()),
            field(&compared.words),
            field(compared.caution.as_deref().unwrap_or("")),
        ]);
    }
    emit(&lines)
}

fn emit(lines: &[Vec<String>]) -> String {
    lines
        .iter()
        .map(|line| line.join(",") + "\n")
        .collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_table_has_plain_numbers_and_its_small_print() {
        let files = files(&example::jemalloc());
        let (name, text) = &files[0];
        assert_eq!(name, "table-1-ab-n-800000-as-the-document-prints-it.csv");
        assert_eq!(
            text,
            "metric,glibc,glibc spread,glibc published,jemalloc,jemalloc spread,jemalloc published,jemalloc mark,change\n\
             Requests/s,33585.56,± 0.8 %,0.31 of the document's,36120.88,± 1.1 %,0.33 of the document's,,from 33585.56 to 36120.88 (+7.5 %)\n\
             \"Time per request, mean\",2.977,± 0.8 %,1.00 of the document's,2.768,± 1.1 %,,,from 2.977 to 2.768 (-7.0 %)\n\
             dTLB misses,,,,,,,absent: no hardware counters,\n"
        );
    }

    #[test]
    fn comparisons_have_every_figure() {
        let files = files(&example::jemalloc());
        let (name, text) = files.last().expect("there are comparisons");
        assert_eq!(name, "comparisons.csv");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "jemalloc : glibc at -c 100,allocator,requests_per_s,-c 100,glibc,jemalloc,33585.56,36120.88,1.0754,1.052,1.098,0.961,12,0.00049,better,\
             \"faster by 7.5 % [5.2, 9.8], 12 pairs, p = 0.00049\","
        );
    }
}
