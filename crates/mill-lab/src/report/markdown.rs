//! The report for a repository: GitHub-flavoured Markdown, pictures in files beside it.

use super::chart::{ChartTarget, draw};
use super::comparison::{Row, bars};
use super::escape::{code, fenced, markdown as text, markup, slug};
use super::legend::legend;
use super::number::grouped;
use super::quiet::quiet;
use super::words;
use crate::findings::{Cell, Drawing, Findings, Grid, Picture};
use std::fmt::Write;

/// The text, and (file name, SVG).
pub(super) fn emit(findings: &Findings) -> (String, Vec<(String, String)>) {
    let mut page = Page {
        out: String::new(),
        files: Vec::new(),
        prefix: slug(&findings.run.recipe),
    };
    page.top(findings);
    page.comparisons(findings);
    page.tables(findings);
    page.charts("Charts", findings, false);
    page.blocks(findings);
    page.charts("Profiles", findings, true);
    page.cautions(findings);
    page.machine(findings);
    page.repeat(findings);
    (page.out, page.files)
}

struct Page {
    out: String,
    files: Vec<(String, String)>,
    /// Of the pictures' names, so that several reports can share a folder.
    prefix: String,
}

impl Page {
    fn paragraph(&mut self, line: &str) {
        if !line.is_empty() {
            self.out.push_str(line);
            self.out.push_str("\n\n");
        }
    }

    fn heading(&mut self, title: &str) {
        self.paragraph(&format!("## {title}"));
    }

    fn list<'a>(&mut self, items: impl IntoIterator<Item = &'a String>) {
        let before = self.out.len();
        for item in items {
            let _ = writeln!(self.out, "- {}", text(item));
        }
        if self.out.len() > before {
            self.out.push('\n');
        }
    }

    fn top(&mut self, findings: &Findings) {
        self.paragraph(&format!("# {}", text(&findings.run.title)));
        self.paragraph(&format!("**{}**", text(&findings.question)));
        self.paragraph(&text(&words::subtitle(findings)));
        for line in words::banner(findings) {
            self.paragraph(&format!("> **{}**", text(&line)));
        }
        self.heading("Summary");
        for statement in &findings.summary {
            let word = match statement.tone.word() {
                "" => String::new(),
                word => format!(" {} **{word}**:", statement.tone.sign()),
            };
            let _ = writeln!(self.out, "-{word} {}", text(&statement.text));
        }
        self.out.push('\n');
        if let Some(noise) = words::noise(findings) {
            self.paragraph(&format!("Noise floor: {}", text(noise)));
        }
        self.paragraph(&text(&words::counts(findings)));
    }

    fn comparisons(&mut self, findings: &Findings) {
        if findings.comparisons.is_empty() {
            return;
        }
        self.heading("Comparisons");
        self.paragraph("One factor changed in each. A ratio is the median over pairs that ran side by side, and the figures are those of the pair in the middle; below the ratio its interval, of 95 % from six pairs on.");
        self.out
            .push_str("| comparison | factor | metric | from → to | ratio | verdict |\n|---|---|---|--:|--:|---|\n");
        for row in findings.comparisons.iter().map(Row::of) {
            let caution = row
                .caution
                .map(|caution| format!("<br>⚠ {}", text(&caution)))
                .unwrap_or_default();
            let _ = writeln!(
                self.out,
                "| {} | {} | {} | {} | {}<br><sub>{}</sub> | {} **{}**: {}{caution} |",
                text(&row.title),
                text(&row.factor),
                text(&row.metric),
                text(&row.change),
                row.ratio,
                row.interval,
                row.sign,
                row.verdict,
                text(&row.words),
            );
        }
        self.out.push('\n');
        if let Some(picture) = bars(findings) {
            self.picture(&picture);
        }
    }

    fn tables(&mut self, findings: &Findings) {
        if findings.tables.is_empty() {
            return;
        }
        self.heading("Tables");
        for grid in &findings.tables {
            self.paragraph(&format!("### {}", text(&grid.title)));
            let grid = quiet(grid);
            if !grid.rows.is_empty() {
                self.out.push_str(&table(&grid));
                self.out.push('\n');
            }
            self.list(&grid.notes);
        }
        let legend = legend(findings);
        if !legend.is_empty() {
            self.paragraph("In the cells:");
            for (word, meaning) in legend {
                let _ = writeln!(self.out, "- *{}*: {}", text(&word), text(&meaning));
            }
            self.out.push('\n');
        }
    }

    /// Flame graphs, or all others.
    fn charts(&mut self, heading: &str, findings: &Findings, flames: bool) {
        let charts = || findings.charts.iter().filter(|it| is_flame(it) == flames);
        if charts().next().is_some() {
            self.heading(heading);
        }
        for picture in charts() {
            self.paragraph(&format!("### {}", text(&picture.title)));
            self.picture(picture);
        }
    }

    fn picture(&mut self, picture: &Picture) {
        let name = format!(
            "{}-{}-{}.svg",
            self.prefix,
            self.files.len() + 1,
            slug(&picture.title)
        );
        self.paragraph(&format!("![{}]({name})", text(&picture.title)));
        self.paragraph(&text(&picture.caption));
        self.files.push((name, draw(picture, ChartTarget::File)));
    }

    fn blocks(&mut self, findings: &Findings) {
        if findings.blocks.is_empty() {
            return;
        }
        self.heading("What the tools printed");
        // Where nothing is compared, this is what the run was made for.
        let open = if findings.comparisons.is_empty() {
            " open"
        } else {
            ""
        };
        for block in &findings.blocks {
            let kept = words::shortened(&block.text, BLOCK_BYTES);
            let _ = write!(
                self.out,
                "<details{open}><summary>{}</summary>\n\n{}\n</details>\n\n",
                markup(&block.title.replace('\n', " ")),
                fenced("text", &kept)
            );
        }
    }

    fn cautions(&mut self, findings: &Findings) {
        if !findings.absences.is_empty() {
            self.heading("What is missing, and what stands in");
            self.list(&findings.absences);
        }
        if !findings.notes.is_empty() {
            self.heading("Notes");
            self.list(&findings.notes);
        }
        if !findings.warnings.is_empty() {
            self.heading("Warnings");
            for warning in &findings.warnings {
                let _ = writeln!(
                    self.out,
                    "- ⚠ {}: {} *{}*",
                    code(&warning.lint),
                    text(&warning.text),
                    text(&warning.advice)
                );
                for line in &warning.more {
                    let _ = writeln!(self.out, "  - {}", text(line));
                }
            }
            self.out.push('\n');
        }
    }

    fn machine(&mut self, findings: &Findings) {
        if !findings.topology.is_empty() {
            self.heading("Topology");
            let drawing = fenced("text", &findings.topology);
            self.paragraph(drawing.trim_end());
        }
        self.heading("Environment");
        self.out.push_str("| | |\n|---|---|\n");
        for (name, value) in words::environment(&findings.environment) {
            let _ = writeln!(self.out, "| {} | {} |", text(&name), text(&value));
        }
        self.out.push('\n');
        let warnings = &findings.environment.warnings;
        for line in warnings {
            let _ = writeln!(self.out, "- ⚠ {}", text(line));
        }
        if !warnings.is_empty() {
            self.out.push('\n');
        }
        if findings.tuned.is_empty() {
            return;
        }
        self.heading("Tuning");
        self.paragraph("What held during the trials and was put back after them.");
        self.out
            .push_str("| key | before | wanted | problem |\n|---|---|---|---|\n");
        for key in &findings.tuned {
            let _ = writeln!(
                self.out,
                "| {} | {} | {} | {} |",
                code(&key.key),
                text(key.before.as_deref().unwrap_or("–")),
                text(&key.wanted),
                text(key.problem.as_deref().unwrap_or(""))
            );
        }
        self.out.push('\n');
    }

    fn repeat(&mut self, findings: &Findings) {
        self.heading("To repeat");
        self.paragraph("The whole run:");
        let whole = fenced("sh", &words::shell(&findings.run.command));
        self.paragraph(whole.trim_end());
        for (system, lines) in &findings.commands {
            self.paragraph(&format!("One point, {}:", text(system)));
            let block = fenced("sh", &words::commands(lines));
            self.paragraph(block.trim_end());
        }
        self.out.push_str("---\n\n");
        let made = words::made(findings);
        let made: Vec<String> = made
            .iter()
            .map(|(name, value)| format!("{} {}", text(name), code(value)))
            .collect();
        let _ = writeln!(self.out, "<sub>{}</sub>", made.join(" · "));
    }
}

fn is_flame(picture: &Picture) -> bool {
    matches!(picture.drawing, Drawing::Flame { .. })
}

/// Bytes of a printed block that are shown; the run's folder has it whole.
const BLOCK_BYTES: usize = 20_000;

/// Columns of numbers are aligned right.
fn table(grid: &Grid) -> String {
    let columns = grid.columns();
    let mut out = String::new();
    let heads: Vec<String> = (0..columns)
        .map(|column| {
            grid.head
                .get(column)
                .map_or_else(String::new, |it| text(it))
        })
        .collect();
    let marks: Vec<&str> = (0..columns)
        .map(|column| {
            let numbers = grid.rows.iter().filter_map(|row| row.get(column));
            if numbers.clone().any(|cell| cell.number) {
                "--:"
            } else {
                "---"
            }
        })
        .collect();
    let _ = writeln!(out, "| {} |\n| {} |", heads.join(" | "), marks.join(" | "));
    for row in &grid.rows {
        let cells: Vec<String> = (0..columns)
            .map(|column| {
                row.get(column)
                    .map(|it| cell(column, it))
                    .unwrap_or_default()
            })
            .collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// The figure, its small print below it. The first column names its row and stays as it is.
fn cell(column: usize, cell: &Cell) -> String {
    let figure = if column > 0 || cell.number {
        grouped(&cell.text)
    } else {
        cell.text.clone()
    };
    let small: Vec<String> = [&cell.spread, &cell.published, &cell.mark]
        .into_iter()
        .flatten()
        .map(|word| text(word))
        .collect();
    let small = small.join(", ");
    match (figure.is_empty(), small.is_empty()) {
        (_, true) => text(&figure),
        (true, false) => format!("<sub>{small}</sub>"),
        (false, false) => format!("{}<br><sub>{small}</sub>", text(&figure)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_table_has_its_small_print_below_the_figures() {
        let (page, _) = emit(&example::jemalloc());
        let expected = "\
### ab -n 800000, as the document prints it

| metric | glibc | jemalloc | change |
| --- | --: | --: | --- |
| Requests/s | 33,585.56<br><sub>± 0.8 %, 0.31 of the document's</sub> | 36,120.88<br><sub>± 1.1 %, 0.33 of the document's</sub> | from 33,585.56 to 36,120.88 (+7.5 %) |
| Time per request, mean | 2.977<br><sub>± 0.8 %, 1.00 of the document's</sub> | 2.768<br><sub>± 1.1 %</sub> | from 2.977 to 2.768 (-7.0 %) |
| dTLB misses |  | <sub>absent: no hardware counters</sub> |  |
";
        assert!(page.contains(expected), "{page}");
    }

    #[test]
    fn every_picture_that_is_named_is_there() {
        let (page, files) = emit(&example::jemalloc());
        assert_eq!(files.len(), 5);
        for (name, svg) in files {
            assert!(page.contains(&format!("]({name})")), "{name}");
            assert!(svg.starts_with("<svg "), "{name}");
        }
    }

    #[test]
    fn an_interrupted_run_is_marked_before_the_summary() {
        let (page, _) = emit(&example::cookbook());
        let banner = page.find("Interrupted").expect("a banner");
        assert!(banner < page.find("## Summary").expect("a summary"));
    }
}
