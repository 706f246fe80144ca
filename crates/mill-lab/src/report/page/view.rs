//! The findings in the form that the template takes: selected, limited in size, as text.

use super::Allowance;
use super::table::TableView;
use crate::findings::{Drawing, Findings, Picture, Warning};
use crate::record::TunedKey;
use crate::report::chart::{self, ChartTarget, draw};
use crate::report::comparison::{Row, bars};
use crate::report::legend::legend;
use crate::report::words::{self, unbroken};
use minijinja::Value;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct View {
    style: Value,
    title: String,
    question: String,
    subtitle: String,
    banner: Vec<String>,
    summary: Vec<Sentence>,
    noise: Option<String>,
    counts: String,
    notes: Vec<String>,
    comparisons: Vec<Row>,
    gains: Option<Figure>,
    tables: Vec<TableView>,
    legend: Vec<(String, String)>,
    charts: Vec<Figure>,
    blocks: Vec<(String, String)>,
    flames: Vec<Figure>,
    absences: Vec<String>,
    warnings: Vec<Warning>,
    topology: String,
    environment: Vec<(String, String)>,
    environment_warnings: Vec<String>,
    tuned: Vec<TunedKey>,
    command: String,
    commands: Vec<(String, String)>,
    made: Vec<(String, String)>,
    /// Sentences on what was left out to keep the page small.
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Sentence {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Figure {
    title: String,
    svg: Value,
    caption: String,
    /// The same figures as text, for screen readers.
    data: Option<chart::Figures>,
}

impl View {
    pub(super) fn of(findings: &Findings, allowance: Allowance) -> Self {
        let mut left_out = Vec::new();
        let blocks = blocks(findings, allowance);
        let (charts, hidden_charts) = figures(findings, allowance, false);
        let (flames, hidden_flames) = figures(findings, allowance, true);
        let over = |total: usize, most: usize| total.saturating_sub(most);
        for (hidden, what) in [
            (
                over(findings.comparisons.len(), allowance.rows),
                "comparisons",
            ),
            (over(findings.tables.len(), allowance.tables), "tables"),
            (hidden_charts + hidden_flames, "pictures"),
            (over(findings.blocks.len(), blocks.len()), "printed blocks"),
            (over(findings.warnings.len(), allowance.rows), "warnings"),
            (over(findings.tuned.len(), allowance.rows), "tuned keys"),
        ] {
            if hidden > 0 {
                left_out.push(format!("{hidden} {what}"));
            }
        }
        let few = |items: &[String]| -> Vec<String> {
            let items = items.iter().take(allowance.rows);
            items.map(|item| unbroken(item)).collect()
        };
        let compared = findings.comparisons.iter().take(allowance.rows);
        let tables = findings.tables.iter().take(allowance.tables);
        let tuned = findings.tuned.iter().take(allowance.rows);
        Self {
            style: Value::from_safe_string(format!("{STYLE}\n{}", chart::page_style())),
            title: findings.run.title.clone(),
            question: findings.question.clone(),
            subtitle: words::subtitle(findings),
            banner: words::banner(findings),
            summary: summary(findings, allowance),
            noise: words::noise(findings).map(unbroken),
            counts: words::counts(findings),
            notes: few(&findings.notes),
            comparisons: compared.map(Row::of).collect(),
            gains: bars(findings).map(|picture| Figure::of(&picture, "gains", allowance)),
            tables: tables
                .map(|grid| TableView::of(grid, allowance.rows))
                .collect(),
            legend: legend(findings),
            charts,
            blocks,
            flames,
            absences: few(&findings.absences),
            warnings: warnings(findings, allowance),
            topology: words::shortened(&findings.topology, allowance.block_bytes),
            environment: words::environment(&findings.environment),
            environment_warnings: few(&findings.environment.warnings),
            tuned: tuned.cloned().collect(),
            command: words::shell(&findings.run.command),
            commands: commands(findings, allowance),
            made: words::made(findings),
            left_out,
        }
    }
}

const STYLE: &str = include_str!("../style.css");

fn summary(findings: &Findings, allowance: Allowance) -> Vec<Sentence> {
    let statements = findings.summary.iter().take(allowance.rows);
    let sentence = |statement: &crate::findings::Statement| Sentence {
        class: statement.tone.class(),
        sign: statement.tone.sign(),
        word: statement.tone.word(),
        text: unbroken(&statement.text),
    };
    statements.map(sentence).collect()
}

fn warnings(findings: &Findings, allowance: Allowance) -> Vec<Warning> {
    let warnings = findings.warnings.iter().take(allowance.rows);
    let view = |it: &Warning| {
        let more = it.more.iter().take(allowance.rows);
        Warning {
            lint: it.lint.clone(),
            text: unbroken(&it.text),
            more: more.map(|line| unbroken(line)).collect(),
            advice: unbroken(&it.advice),
        }
    };
    warnings.map(view).collect()
}

/// System, and the commands of one of its points.
fn commands(findings: &Findings, allowance: Allowance) -> Vec<(String, String)> {
    let systems = findings.commands.iter().take(allowance.rows);
    let block = |(system, lines): &(String, Vec<crate::record::CommandLine>)| {
        let text = words::shortened(&words::commands(lines), allowance.block_bytes);
        (system.clone(), text)
    };
    systems.map(block).collect()
}

impl Figure {
    fn of(picture: &Picture, id: &str, allowance: Allowance) -> Self {
        Self {
            title: picture.title.clone(),
            svg: Value::from_safe_string(draw(picture, ChartTarget::Page(id))),
            caption: unbroken(&picture.caption),
            data: chart::figures(picture, allowance.figures),
        }
    }
}

/// Flame graphs, or all others; and how many are not shown.
fn figures(findings: &Findings, allowance: Allowance, flames: bool) -> (Vec<Figure>, usize) {
    let wanted: Vec<(usize, &Picture)> = findings
        .charts
        .iter()
        .enumerate()
        .filter(|(_, picture)| matches!(picture.drawing, Drawing::Flame { .. }) == flames)
        .collect();
    // A flame graph is ten times the size of a chart.
    let count = if flames {
        allowance.pictures.div_ceil(12)
    } else {
        allowance.pictures
    };
    let shown: Vec<Figure> = wanted
        .iter()
        .take(count)
        .map(|(index, picture)| Figure::of(picture, &format!("picture-{}", index + 1), allowance))
        .collect();
    let hidden = wanted.len() - shown.len();
    (shown, hidden)
}

fn blocks(findings: &Findings, allowance: Allowance) -> Vec<(String, String)> {
    let mut total = 0;
    let mut out = Vec::new();
    for block in &findings.blocks {
        let text = words::shortened(&block.text, allowance.block_bytes);
        total += text.len();
        if total > allowance.blocks_bytes {
            break;
        }
        out.push((block.title.clone(), text));
    }
    out
}
