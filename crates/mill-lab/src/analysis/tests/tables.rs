//! Cells, and the text of those without a figure.

use super::made_up::{ALLOCATORS, Run, limit};
use crate::analysis::findings;
use crate::findings::{Cell, Grid};
use crate::limit::Side;
use crate::record::Status;

const LAYOUT: &str = r#"
[[table]]
title = "Requests at ${concurrency}"
each = ["concurrency"]
head = "Metric"
rows.metrics = ["requests_per_s", "latency_s.p99", "hardware.dtlb_misses"]
columns = [
    { title = "glibc", at.system = "glibc" },
    { title = "jemalloc", at.system = "jemalloc" },
    { title = "gain", at.system = "jemalloc", over.system = "glibc" },
    { title = "change", at.system = "jemalloc", over.system = "glibc", change = true },
    { title = "own", at.system = "own" },
]

[[published]]
place = "Table 1"
metric = "requests_per_s"
lines = "concurrency"
columns = "system"
figures = """
     glibc  jemalloc
100  60000  40000
"""
"#;

fn made_up() -> Run {
    let mut run = Run::new(&format!("{ALLOCATORS}{LAYOUT}"));
    for block in 0..3 {
        let share = 1.0 + 0.01 * f64::from(block);
        let point = "system=glibc concurrency=100";
        let figures = [
            ("requests_per_s", 30_000.0 * share),
            ("latency_s.p99", 0.0025),
        ];
        let trial = run.trial(block, point, &figures);
        trial.absent.insert(
            String::from("hardware"),
            String::from("no hardware counters"),
        );
        let point = "system=jemalloc concurrency=100";
        run.trial(block, point, &[("requests_per_s", 33_000.0 * share)])
            .limit = limit(Side::Client);
        run.trial(block, "system=own concurrency=100", &[]).status = Status::Absent {
            reason: String::from("not built yet"),
        };
    }
    run
}

fn grid(run: &Run) -> Grid {
    let tables = findings(&run.kept).tables;
    assert_eq!(tables.len(), 1);
    tables.into_iter().next().unwrap()
}

fn marks(row: &[Cell]) -> Vec<&str> {
    row.iter()
        .map(|cell| cell.mark.as_deref().unwrap_or(""))
        .collect()
}

#[test]
fn a_table_has_the_documents_layout_and_this_machines_figures() {
    let grid = grid(&made_up());
    assert_eq!(grid.title, "Requests at 100");
    assert_eq!(
        grid.head,
        ["Metric", "glibc", "jemalloc", "gain", "change", "own"]
    );
    let row: Vec<&str> = grid.rows[0].iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(
        row,
        [
            "Requests/s",
            "30300.00",
            "33330.00",
            "10.00 %",
            "from 30300.00 to 33330.00 (+10.0 %)",
            ""
        ]
    );
    assert_eq!(grid.rows[0][1].spread.as_deref(), Some("± 1.0 %"));
    assert_eq!(grid.rows[1][1].text, "2.50 ms");
    assert!(
        grid.notes[0].contains("Medians of 3 trials"),
        "{:?}",
        grid.notes
    );
}

#[test]
fn published_figures_appear_only_as_a_share() {
    let grid = grid(&made_up());
    assert_eq!(
        grid.rows[0][1].published.as_deref(),
        Some("0.51 of the document's")
    );
    assert_eq!(
        grid.rows[0][2].published.as_deref(),
        Some("0.83 of the document's")
    );
    assert_eq!(grid.rows[1][1].published, None);
    let text = serde_json::to_string(&grid).unwrap();
    assert!(!text.contains("60000") && !text.contains("40000"), "{text}");
}

#[test]
fn a_cell_without_a_figure_says_why() {
    let grid = grid(&made_up());
    assert_eq!(
        marks(&grid.rows[0]),
        [
            "",
            "",
            "client-bound",
            "client-bound",
            "client-bound",
            "not built yet"
        ]
    );
    assert_eq!(
        marks(&grid.rows[1])[2..],
        [
            "not given by the tools here",
            "not given by the tools here",
            "not given by the tools here",
            "not built yet"
        ]
    );
    assert_eq!(marks(&grid.rows[2])[1], "absent: no hardware counters");
    assert!(grid.rows[0][5].text.is_empty());
}

#[test]
fn an_absent_system_is_said_in_the_summary() {
    let found = findings(&made_up().kept);
    let said = |words: &str| {
        found
            .summary
            .iter()
            .any(|statement| statement.text.contains(words))
    };
    assert!(
        said("Missing: own stack (not built yet)"),
        "{:?}",
        found.summary
    );
}

#[test]
fn rows_may_be_values_of_axes_in_the_recipes_order() {
    let recipe = ALLOCATORS.replace("concurrency = [100]", "concurrency = [20, 3, 100]");
    let layout = r#"
[[table]]
title = "All"
rows.axes = ["concurrency", "system"]
columns = [{ title = "Rate", metric = "requests_per_s", digits = 0 }]

[[table]]
title = "By concurrency"
rows.axis = "concurrency"
head = "Clients"
columns = [{ title = "Rate", metric = "requests_per_s", at.system = "jemalloc" }]
"#;
    let mut run = Run::new(&format!("{recipe}{layout}"));
    for point in [
        "system=jemalloc concurrency=100",
        "system=glibc concurrency=20",
        "system=jemalloc concurrency=3",
    ] {
        run.trial(0, point, &[("requests_per_s", 5.0)]);
    }
    let tables = findings(&run.kept).tables;
    let words = |grid: &Grid| -> Vec<String> {
        let row = |row: &Vec<Cell>| {
            row.iter()
                .map(|c| c.text.clone())
                .collect::<Vec<_>>()
                .join("|")
        };
        grid.rows.iter().map(row).collect()
    };
    assert_eq!(tables[0].head, ["concurrency", "system", "Rate"]);
    assert_eq!(
        words(&tables[0]),
        [
            "20|nginx, glibc|5",
            "3|nginx, jemalloc|5",
            "100|nginx, jemalloc|5"
        ]
    );
    assert_eq!(words(&tables[1]), ["20|", "3|5.00", "100|5.00"]);
    assert_eq!(tables[1].rows[0][1].mark.as_deref(), Some("not measured"));
}

#[test]
fn trials_that_are_not_there_are_missing() {
    let mut run = made_up();
    run.kept.run.trials = 12;
    run.kept.finish = None;
    let found = findings(&run.kept);
    assert_eq!(
        (
            found.counts.measured,
            found.counts.absent,
            found.counts.missing
        ),
        (6, 3, 3)
    );
    assert!(found.interrupted);
    assert_eq!(found.origin.as_deref(), Some("Seed 004, rows N1 and N2"));
}

#[test]
fn the_summary_has_limits_and_undecided_comparisons_once() {
    let recipe = ALLOCATORS.replace("concurrency = [100]", "concurrency = [100, 300]");
    let recipe = format!("{recipe}metrics = [\"requests_per_s\", \"latency_s.p99\"]\n");
    let mut run = Run::new(&recipe);
    for (point, side) in [
        ("system=glibc concurrency=100", Side::Server),
        ("system=glibc concurrency=300", Side::Server),
        ("system=jemalloc concurrency=100", Side::Server),
        ("system=jemalloc concurrency=300", Side::Both),
    ] {
        run.trial(0, point, &[("requests_per_s", 5.0), ("latency_s.p99", 0.1)])
            .limit = limit(side);
    }
    let found = findings(&run.kept);
    let texts: Vec<&str> = found.summary.iter().map(|it| it.text.as_str()).collect();
    let count = |words: &str| texts.iter().filter(|text| text.contains(words)).count();
    assert_eq!(
        count("nothing decided in 4 comparisons, from 1 pair each"),
        1,
        "{texts:?}"
    );
    assert_eq!(count("three at least are needed"), 0, "{texts:?}");
    assert_eq!(
        count("Limit, of 4 points: server-bound at 3, both sides busy at 1 ("),
        1,
        "{texts:?}"
    );
    assert_eq!(
        count("server-bound at 100, both sides busy at 300"),
        1,
        "{texts:?}"
    );
}

#[test]
fn what_probes_left_as_text_is_shown_verbatim() {
    let mut run = Run::new(ALLOCATORS);
    run.trial(0, "system=glibc concurrency=100", &[]);
    for (name, text) in [
        ("client-0.out", "wrk"),
        ("top.txt", "top"),
        ("monitor.csv", "1,2"),
    ] {
        run.kept.files.push(crate::analysis::KeptFile {
            trial: 0,
            name: String::from(name),
            text: String::from(text),
        });
    }
    let blocks = findings(&run.kept).blocks;
    let told: Vec<(&str, &str)> = blocks
        .iter()
        .map(|block| (block.title.as_str(), block.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("ab, nginx, glibc", "wrk"),
            ("top.txt, nginx, glibc", "top")
        ]
    );
}
