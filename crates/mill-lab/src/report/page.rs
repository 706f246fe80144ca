//! The HTML page: what the template needs, made ready, and kept below a size that mail takes.

use super::chart::{self, Place, draw};
use super::comparison::{Row, bars};
use super::legend::legend;
use super::number::grouped;
use super::{escape, words};
use crate::findings::{Cell, Drawing, Findings, Grid, Picture};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Output, State, Value};
use serde::Serialize;

/// One page without anything outside of it.
pub(super) fn emit(findings: &Findings) -> String {
    let mut page = String::new();
    for allowance in ALLOWANCES {
        page = render(&View::of(findings, allowance));
        if page.len() < PAGE_BYTES_MAX {
            break;
        }
    }
    page
}

/// The size that is promised: what a mail or an issue takes as an attachment without asking.
const PAGE_BYTES_MAX: usize = 2_000_000;

/// How much of what can grow without end a page shows.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Of one printed block, and of all together.
    block_bytes: usize,
    blocks_bytes: usize,
    /// Pictures of each kind; further ones are in the run's folder.
    pictures: usize,
    /// Of rows of a table of one picture's figures.
    figures: usize,
    /// Of lines of any list or table.
    rows: usize,
}

/// Tried from the first on until the page is small enough. The last holds for any findings: its sum is far below the limit.
const ALLOWANCES: [Allowance; 3] = [
    Allowance {
        block_bytes: 20_000,
        blocks_bytes: 400_000,
        pictures: 60,
        figures: 60,
        rows: 1000,
    },
    Allowance {
        block_bytes: 6_000,
        blocks_bytes: 100_000,
        pictures: 20,
        figures: 0,
        rows: 300,
    },
    Allowance {
        block_bytes: 2_000,
        blocks_bytes: 20_000,
        pictures: 3,
        figures: 0,
        rows: 60,
    },
];

#[derive(Serialize)]
struct View {
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
    warnings: Vec<(String, String, String)>,
    topology: String,
    environment: Vec<(String, String)>,
    environment_warnings: Vec<String>,
    tuned: Vec<Tuned>,
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
    /// The same figures as text, for those who don't see the picture.
    data: Option<chart::Figures>,
}

#[derive(Serialize)]
struct TableView {
    title: String,
    head: Vec<Head>,
    rows: Vec<Vec<CellView>>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Head {
    text: String,
    number: bool,
}

#[derive(Serialize)]
struct CellView {
    text: String,
    spread: Option<String>,
    published: Option<String>,
    mark: Option<String>,
    number: bool,
}

#[derive(Serialize)]
struct Tuned {
    key: String,
    before: String,
    wanted: String,
    problem: Option<String>,
}

impl View {
    fn of(findings: &Findings, allowance: Allowance) -> Self {
        let mut left_out = Vec::new();
        let mut cut = |what: &str, total: usize| {
            let shown = total.min(allowance.rows);
            if shown < total {
                left_out.push(format!("{} {what}", total - shown));
            }
            shown
        };
        let comparisons = cut("comparisons", findings.comparisons.len());
        let tuned = cut("tuned keys", findings.tuned.len());
        let warnings = cut("warnings", findings.warnings.len());
        let tables = cut("tables", findings.tables.len());
        let blocks = blocks(findings, allowance);
        if blocks.len() < findings.blocks.len() {
            let hidden = findings.blocks.len() - blocks.len();
            left_out.push(format!("{hidden} printed blocks"));
        }
        let (charts, hidden_charts) = figures(findings, allowance, false);
        let (flames, hidden_flames) = figures(findings, allowance, true);
        if hidden_charts + hidden_flames > 0 {
            left_out.push(format!("{} pictures", hidden_charts + hidden_flames));
        }
        let few = |items: &[String]| {
            let items = items.iter().take(allowance.rows);
            items.map(|item| words::unbroken(item)).collect()
        };
        Self {
            style: Value::from_safe_string(format!("{}\n{}", STYLE, chart::page_style())),
            title: findings.run.title.clone(),
            question: findings.question.clone(),
            subtitle: words::subtitle(findings),
            banner: words::banner(findings),
            summary: findings
                .summary
                .iter()
                .take(allowance.rows)
                .map(|statement| Sentence {
                    class: statement.tone.class(),
                    sign: statement.tone.sign(),
                    word: statement.tone.word(),
                    text: words::unbroken(&statement.text),
                })
                .collect(),
            noise: findings
                .noise
                .as_ref()
                .map(|noise| words::unbroken(&noise.text)),
            counts: words::counts(findings),
            notes: few(&findings.notes),
            comparisons: findings.comparisons[..comparisons]
                .iter()
                .map(Row::of)
                .collect(),
            gains: bars(findings).map(|picture| Figure::of(&picture, "gains", allowance)),
            tables: findings.tables[..tables]
                .iter()
                .map(|grid| TableView::of(grid, allowance.rows))
                .collect(),
            legend: legend(findings),
            charts,
            blocks,
            flames,
            absences: few(&findings.absences),
            warnings: findings.warnings[..warnings]
                .iter()
                .map(|it| {
                    let words = (words::unbroken(&it.text), words::unbroken(&it.advice));
                    (it.lint.clone(), words.0, words.1)
                })
                .collect(),
            topology: words::shortened(&findings.topology, allowance.block_bytes),
            environment: words::environment(&findings.environment),
            environment_warnings: few(&findings.environment.warnings),
            tuned: findings.tuned[..tuned]
                .iter()
                .map(|key| Tuned {
                    key: key.key.clone(),
                    before: key.before.clone().unwrap_or_else(|| String::from("–")),
                    wanted: key.wanted.clone(),
                    problem: key.problem.clone(),
                })
                .collect(),
            command: words::shell(&findings.run.command),
            commands: findings
                .commands
                .iter()
                .take(allowance.rows)
                .map(|(system, lines)| {
                    let text = words::shortened(&words::commands(lines), allowance.block_bytes);
                    (system.clone(), text)
                })
                .collect(),
            made: words::made(findings),
            left_out,
        }
    }
}

impl Figure {
    fn of(picture: &Picture, id: &str, allowance: Allowance) -> Self {
        Self {
            title: picture.title.clone(),
            svg: Value::from_safe_string(draw(picture, Place::Page(id))),
            caption: words::unbroken(&picture.caption),
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

impl TableView {
    fn of(grid: &Grid, rows_max: usize) -> Self {
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
                    number: number(column),
                })
                .collect(),
            rows: grid
                .rows
                .iter()
                .take(rows_max)
                .map(|row| {
                    let cells = row.iter().enumerate();
                    cells
                        .map(|(column, cell)| CellView::of(column, cell, number(column)))
                        .collect()
                })
                .collect(),
            notes,
        }
    }
}

impl CellView {
    /// The first column names its row and stays as it is.
    fn of(column: usize, cell: &Cell, among_numbers: bool) -> Self {
        Self {
            text: if column > 0 || cell.number {
                grouped(&cell.text)
            } else {
                cell.text.clone()
            },
            spread: cell.spread.clone(),
            published: cell.published.clone(),
            mark: cell.mark.clone(),
            // What is missing stands where the number would.
            number: cell.number || (among_numbers && cell.text.is_empty()),
        }
    }
}

const STYLE: &str = include_str!("style.css");
const TEMPLATE: &str = include_str!("page.html");

fn render(view: &View) -> String {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .expect("the delimiters are minijinja's own");
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(escaped);
    environment
        .render_str(TEMPLATE, Serde(view))
        .expect("the template and what it is given belong to this program, and a test renders both")
}

/// minijinja's own escaping lets control characters through, and writes slashes as six characters.
fn escaped(
    out: &mut Output<'_>,
    _state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    let written = if value.is_none() || value.is_undefined() {
        Ok(())
    } else if value.is_safe() {
        out.write_str(value.as_str().unwrap_or_default())
    } else {
        out.write_str(&escape::markup(&value.to_string()))
    };
    Ok(written?)
}
