//! Tables and headings of texts, small ones of our own in common forms.

use super::*;

/// Rates of answers of 200,000 bytes with a head of 250, and their throughput in Gb/s by a rule.
fn tables(scale: f64) -> String {
    let rates = [[1000.0, 1500.0], [2000.0, 2900.0], [4000.0, 5100.0]];
    let mut text = String::from("Files of 200KB.\n\nWorkers\tOld\tNew\n");
    for (workers, [old, new]) in (1..).zip(rates) {
        text.push_str(&format!("{workers}\t{old:.2}\t{new:.2}\n"));
    }
    text.push_str("\nThroughput, Gb/s\n\nWorkers\tOld\tNew\n");
    for (workers, row) in (1..).zip(rates) {
        let [old, new] = row.map(|rate: f64| rate * 200_250.0 * 8.0 / 1e9 / scale);
        text.push_str(&format!("{workers}\t{old:.4}\t{new:.4}\n"));
    }
    text
}

#[test]
fn a_unit_that_slipped_shows_in_two_tables_of_a_text() {
    let warnings = text("page", &tables(1.048_576));
    let slips = of_lint(&warnings, "unit-slip");
    assert_eq!(slips.len(), 1, "{warnings:#?}");
    for part in [
        "page:10",
        "page:3",
        "an object of 200000 bytes",
        "in all 6 cells",
    ] {
        assert!(slips[0].contains(part), "{part}: {}", slips[0]);
    }
    assert!(text("page", &tables(1.0)).is_empty());
    // Of another object nothing is known.
    let unnamed = tables(1.048_576).replace("200KB", "some size");
    assert!(of_lint(&text("page", &unnamed), "unit-slip").is_empty());
}

#[test]
fn a_gain_that_does_not_follow_is_found_in_a_table() {
    let table = |gain: &str| {
        format!(
            "| n | Old | New | New gain |\n|---|---|---|---|\n| 1 | 100.0 | 150.0 | 50.0% |\n| 2 | 200.0 | 290.0 | {gain} |\n| 4 | 400.0 | 380.0 | -5.0% |\n"
        )
    };
    assert!(text("page", &table("45.0%")).is_empty());
    let warnings = text("page", &table("54.0%"));
    let gains = of_lint(&warnings, "gain-arithmetic");
    assert_eq!(gains.len(), 1, "{warnings:#?}");
    assert!(
        gains[0].contains("page:1: 1 of 3 gains of \"New gain\"")
            && gains[0].contains("2 says 54 %, it is 45.00 %"),
        "{}",
        gains[0]
    );
    // A column that is over something else is left alone.
    let other = table("45.0%")
        .replace("50.0%", "12.0%")
        .replace("-5.0%", "3.0%");
    assert!(text("page", &other).is_empty());
}

#[test]
fn a_gain_that_does_not_follow_is_found_in_a_sentence() {
    let warnings = text("page", "The rate rose from 1000.0 to 1074.0 (+8%).");
    let gains = of_lint(&warnings, "gain-arithmetic");
    assert_eq!(gains, ["page:1: from 1000 to 1074 is +7.40 %, not +8 %."]);
}

fn block(connections: u32) -> String {
    format!(
        "$ wrk -c{connections} -t1 -d1 http://h/x\nRunning 1s test @ http://h/x\n  1 threads and {connections} connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.00ms    1.00ms   2.00ms   90.00%\n    Req/Sec     1.00k     1.00     2.00k    90.00%\n  100 requests in 1.00s, 1.00MB read\nRequests/sec:    100.00\nTransfer/sec:      1.00MB\n"
    )
}

#[test]
fn a_server_at_10_and_at_100_connections_is_one_factor() {
    let page = |one: &str, other: &str| {
        let text_of = format!("{one}\n{}\n{other}\n{}", block(10), block(100));
        of_lint(&text("page", &text_of), "two-factors").len()
    };
    assert_eq!(page("10 connections", "100 connections"), 0);
    assert_eq!(page("nginx, 10 clients", "nginx, 100 clients"), 0);
    assert_eq!(page("nginx", "apache"), 1);
    assert_eq!(page("nginx, 10 clients", "apache, 100 clients"), 1);
    assert_eq!(page("10 cores", "20 cores"), 1);
}
