//! From command to report.

use crate::bench::{Bench, SMALLEST};

#[test]
fn a_run_ends_in_a_report_with_figures_and_leaves_nothing_behind() {
    let Some(bench) = Bench::new() else { return };
    let pages = bench.path("pages");
    let mut words = SMALLEST.to_vec();
    words.extend(["--report", pages.to_str().unwrap()]);
    let output = bench.output(&words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("2/2 nginx: "), "{said}");

    let html = std::fs::read_to_string(pages.join("report.html")).unwrap();
    assert!(html.len() < 2_000_000);
    for words in ["The smallest run", "Requests/s", "ip netns exec", "<svg"] {
        assert!(html.contains(words), "{words} is not in the page");
    }
    let markdown = std::fs::read_to_string(pages.join("README.md")).unwrap();
    assert!(markdown.contains("Requests/s"), "{markdown}");

    assert_eq!(bench.journals(), 0);
    assert!(bench.processes().is_empty());
}

#[test]
fn results_can_be_listed_exported_and_compared() {
    let Some(bench) = Bench::new() else { return };
    assert!(bench.output(&SMALLEST).status.success());
    assert!(bench.output(&SMALLEST).status.success());

    let runs = bench.output(&["runs"]);
    let text = String::from_utf8(runs.stdout).unwrap();
    assert_eq!(text.matches("-smallest-").count(), 2, "{text}");

    let csv = bench.output(&["export", "latest", "--csv"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    let rates = csv
        .lines()
        .filter(|line| line.contains(",requests_per_s,"))
        .count();
    assert_eq!(rates, 2, "{csv}");

    let names: Vec<String> = std::fs::read_dir(bench.path("store/runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let compared = bench.output(&["compare", &names[0], &names[1]]);
    assert!(compared.status.success());
    assert!(String::from_utf8_lossy(&compared.stdout).contains("nginx"));
}
