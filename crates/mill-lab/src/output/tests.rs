//! What tools really printed, and what has to come out of it.

use super::*;

/// A fixture, by its name.
fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/output/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

/// Figures that the text must give, to the digits printed.
#[track_caller]
fn check(tool: Tool, name: &str, expected: &[(&str, f64)]) -> Printed {
    let printed = parse(tool, &fixture(name)).unwrap();
    check_figures(name, &printed, expected);
    for figure in printed.figures.keys() {
        assert!(crate::metric::is_known(figure), "{name}: {figure}");
    }
    let ascending = printed
        .percentiles
        .windows(2)
        .all(|two| two[0].0 < two[1].0);
    assert!(ascending, "{name}: {:?}", printed.percentiles);
    printed
}

#[track_caller]
fn check_figures(name: &str, printed: &Printed, expected: &[(&str, f64)]) {
    for (figure, value) in expected {
        let read = printed.figures.get(*figure).copied();
        let close = read.is_some_and(|read| (read - value).abs() <= value.abs() * 1e-9);
        assert!(close, "{name}: {figure} is {read:?}, not {value}");
    }
}

#[test]
fn wrk_is_read_with_its_units() {
    let printed = check(
        Tool::Wrk,
        "wrk.txt",
        &[
            ("requests_per_s", 32_270.26),
            ("requests", 35_773.0),
            ("seconds", 1.11),
            ("connections_asked", 10.0),
            ("threads", 2.0),
            ("latency_s.mean", 1.04e-3),
            ("latency_s.stdev", 1.61e-3),
            ("latency_s.max", 12.45e-3),
            ("latency_s.p50", 109e-6),
            ("latency_s.p99", 7.03e-3),
            ("thread_requests_per_s.mean", 17_030.0),
            ("transfer_bytes_per_s", 88.91 * 1_048_576.0),
            ("errors.all", 0.0),
            ("failed_share", 0.0),
        ],
    );
    assert_eq!(printed.url.as_deref(), Some("http://127.0.0.1:18473/f.bin"));
    assert!(!printed.interrupted);
    let size = printed.figures["bytes_per_response"];
    let half = printed.figures["bytes_per_response.half_width"];
    // nginx sends 2649 bytes and a head of 240.
    assert!((size - 2889.0).abs() <= half, "{size} ± {half}");
}

#[test]
fn bad_statuses_and_an_early_end_of_wrk_are_seen() {
    check(
        Tool::Wrk,
        "wrk-404.txt",
        &[("errors.status", 23_383.0), ("failed_share", 1.0)],
    );
    let printed = check(Tool::Wrk, "wrk-interrupted.txt", &[("seconds", 0.60535)]);
    assert!(printed.interrupted, "{:?}", printed.notes);
}

#[test]
fn wrk_without_an_answer_has_no_latency() {
    let printed = check(Tool::Wrk, "wrk-zero.txt", &[("requests_per_s", 0.0)]);
    assert!(!printed.figures.contains_key("latency_s.mean"));
    assert!(!printed.figures.contains_key("bytes_per_response"));
}

#[test]
fn our_wrk_and_its_requests_a_connection_are_read() {
    let printed = check(
        Tool::MillstreamWrk,
        "millstream-wrk.txt",
        &[("connections_asked", 4.0), ("requests", 50_195.0)],
    );
    assert_eq!(printed.notes, ["4 requests a connection"]);
}

#[test]
fn wrk2_gives_the_whole_spectrum() {
    let printed = check(
        Tool::Wrk2,
        "wrk2.txt",
        &[
            ("latency_s.p999", 1.54e-3),
            ("latency_s.mean", 75.37e-6),
            ("requests_per_s", 1993.0),
        ],
    );
    assert_eq!(printed.percentiles.first(), Some(&(0.0, 0.037e-3)));
    assert_eq!(printed.percentiles.last(), Some(&(100.0, 3.431e-3)));
    assert!(printed.percentiles.len() > 40);
    let printed = check(
        Tool::MillstreamWrk2,
        "wrk2-uncorrected.txt",
        &[("latency_s.uncorrected.p50", 53e-6)],
    );
    assert!(printed.percentiles.len() > 30);
}

#[test]
fn ab_is_read_with_all_its_rows() {
    let printed = check(
        Tool::Ab,
        "ab.txt",
        &[
            ("requests_per_s", 9781.34),
            ("requests", 2000.0),
            ("seconds", 0.204),
            ("connections_asked", 20.0),
            ("bytes_per_response", 2884.0),
            ("bytes_per_response.content", 2649.0),
            ("transfer_bytes_per_s", 27_548.22 * 1024.0),
            ("latency_s.mean", 2.045e-3),
            ("latency_s.max", 8e-3),
            ("latency_s.p50", 1e-3),
            ("latency_s.p99", 7e-3),
            ("connect_s.stdev", 0.7e-3),
            ("processing_s.median", 1e-3),
            ("waiting_s.max", 6e-3),
            ("total_s.min", 1e-3),
            ("total_s.p98", 7e-3),
            ("errors.all", 0.0),
        ],
    );
    assert_eq!(printed.url.as_deref(), Some("http://127.0.0.1:18473/f.bin"));
    assert_eq!(printed.percentiles.len(), 9);
    assert_eq!(printed.percentiles.last(), Some(&(100.0, 8e-3)));
    check(
        Tool::Ab,
        "ab-k.txt",
        &[("errors.status", 2000.0), ("failed_share", 1.0)],
    );
    check(
        Tool::MillstreamAb,
        "millstream-ab.txt",
        &[("requests", 500.0)],
    );
}

#[test]
fn ab_tells_its_failures_by_kind() {
    let text = fixture("ab.txt").replace(
        "Failed requests:        0\n",
        "Failed requests:        150\n   (Connect: 1, Receive: 99, Length: 30, Exceptions: 20)\nWrite errors:           7\n",
    );
    let printed = parse(Tool::Ab, &text).unwrap();
    for (figure, value) in [
        ("errors.connect", 1.0),
        ("errors.read", 99.0),
        ("errors.length", 30.0),
        ("errors.exception", 20.0),
        ("errors.write", 7.0),
        ("errors.all", 157.0),
        ("failed_share", 157.0 / 2000.0),
    ] {
        assert_eq!(printed.figures[figure], value, "{figure}");
    }
}

#[test]
fn ab_that_gave_up_is_interrupted() {
    let printed = check(Tool::Ab, "ab-aborted.txt", &[("requests", 101.0)]);
    assert!(printed.interrupted);
    assert!(!printed.figures.contains_key("requests_per_s"));
}

#[test]
fn errors_say_what_was_looked_for() {
    let error = parse(Tool::Wrk, &fixture("wrk-refused.txt")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "wrk's output: no line \"Running … test @ URL\" that can be read; the last line is \
         \"unable to connect to 127.0.0.1:9 Connection refused\""
    );
    let error = parse(Tool::Ab, "").unwrap_err();
    assert!(error.problem.starts_with("it printed nothing"), "{error}");
}

#[test]
fn h2load_is_read_with_its_table() {
    check(
        Tool::H2load,
        "h2load.txt",
        &[
            ("requests_per_s", 29_384.54),
            ("requests", 2000.0),
            ("connections_asked", 4.0),
            ("threads", 1.0),
            ("transfer_bytes_per_s", 77.77 * 1_048_576.0),
            ("bytes_per_response", 5_550_196.0 / 2000.0),
            ("latency_s.min", 44e-6),
            ("latency_s.max", 4.93e-3),
            ("latency_s.mean", 236e-6),
            ("latency_s.stdev", 377e-6),
            ("connect_s.mean", 359e-6),
            ("waiting_s.max", 1.23e-3),
            ("errors.all", 0.0),
        ],
    );
    // Its "finished in" has the warm-up in it.
    check(Tool::H2load, "h2load-h1.txt", &[("seconds", 1.0)]);
}

#[test]
fn later_columns_of_h2load_are_read_by_their_names() {
    let text = fixture("h2load.txt")
        .replace("max         mean", "max median p95 p99 mean")
        .replace("4.93ms       236us", "4.93ms 200us 1.5ms 4.1ms 236us")
        .replace("562us       359us", "562us 300us 500us 560us 359us")
        .replace("1.23ms      1.08ms", "1.23ms 1ms 1.1ms 1.2ms 1.08ms")
        .replace("time for request:", "request     :")
        .replace("time for connect:", "connect     :")
        .replace("time to 1st byte:", "TTFB        :")
        .replace("2000 2xx, 0 3xx, 0 4xx", "1990 2xx, 0 3xx, 10 4xx")
        .replace("0 failed", "10 failed");
    let printed = parse(Tool::H2load, &text).unwrap();
    check_figures(
        "later h2load",
        &printed,
        &[
            ("latency_s.p99", 4.1e-3),
            ("latency_s.mean", 236e-6),
            ("connect_s.p95", 500e-6),
            ("errors.status", 10.0),
            ("failed_share", 0.005),
        ],
    );
    assert_eq!(printed.percentiles.len(), 3);
}

#[test]
fn our_own_document_is_read_with_its_histograms() {
    let printed = check(
        Tool::MillstreamLoad,
        "load-open.json",
        &[
            ("requests_per_s", 1999.990732042948),
            ("requests", 2000.0),
            ("bytes_per_response", 2889.0),
            ("connections_asked", 8.0),
            ("latency_s.mean", 47_310e-9),
            ("latency_s.p99", 97_279e-9),
            ("latency_s.max", 952_831e-9),
            ("latency_s.uncorrected.p50", 44_639e-9),
            ("waiting_s.median", 44_639e-9),
            ("connect_s.max", 208_895e-9),
            ("failed_share", 0.0),
        ],
    );
    assert!(printed.percentiles.len() > 40);
    assert_eq!(printed.histograms["latency_s"].count(), 2000);
    let twice = together(&[printed.clone(), printed.clone()]);
    assert_eq!(twice.histograms["latency_s"].count(), 4000);
    assert_eq!(
        twice.figures["latency_s.p99"],
        printed.figures["latency_s.p99"]
    );
    assert_eq!(twice.figures["requests"], 4000.0);
}

#[test]
fn our_own_document_without_histograms_gives_the_summary() {
    let mut document: serde_json::Value = serde_json::from_str(&fixture("load-open.json")).unwrap();
    document["results"]["measures"] = serde_json::Value::Null;
    document["summary"]["failures"]["reset"] = 3.into();
    document["summary"]["failed"] = 3.into();
    document["results"]["interrupted"] = true.into();
    let printed = parse(Tool::MillstreamLoad, &document.to_string()).unwrap();
    assert_eq!(printed.figures["latency_s.p999"], 948_223e-9);
    assert_eq!(printed.percentiles.len(), 6);
    assert_eq!(printed.figures["errors.read"], 3.0);
    assert_eq!(printed.figures["failed_share"], 3.0 / 2003.0);
    assert!(printed.interrupted);
    document["schema"] = 9.into();
    let error = parse(Tool::MillstreamLoad, &document.to_string()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "millstream load's output: schema 9 is not known, only 1 is"
    );
}

/// The figures of a truncated text are in the whole text as well.
fn check_cut(tool: Tool, name: &str) {
    let text = fixture(name);
    let whole = parse(tool, &text).unwrap();
    for end in 0..text.trim_end().len() {
        let Some(cut) = text.get(..end) else { continue };
        let Ok(part) = parse(tool, cut) else { continue };
        for (figure, value) in &part.figures {
            assert_eq!(
                whole.figures.get(figure),
                Some(value),
                "{name} cut at {end}: {figure}"
            );
        }
        for step in &part.percentiles {
            assert!(whole.percentiles.contains(step), "{name} cut at {end}");
        }
    }
}

#[test]
fn a_text_that_is_cut_off_gives_no_wrong_figure() {
    for (tool, name) in [
        (Tool::Wrk, "wrk.txt"),
        (Tool::Wrk, "wrk-404.txt"),
        (Tool::Wrk2, "wrk2-uncorrected.txt"),
        (Tool::Ab, "ab.txt"),
        (Tool::Ab, "ab-k.txt"),
        (Tool::Ab, "ab-aborted.txt"),
        (Tool::H2load, "h2load.txt"),
        (Tool::MillstreamLoad, "load-open.json"),
    ] {
        check_cut(tool, name);
    }
}

#[test]
fn wrks_script_and_abs_percentages_replace_rounded_figures() {
    let wrk = include_str!("../../tests/fixtures/output/wrk.txt");
    let text = format!("{wrk}FIGURES 10 2000000 850 50 90 99 999 1000\n");
    let printed = parse(Tool::Wrk, &text).unwrap();
    let check = |printed: &Printed, name: &str, expected: f64| {
        assert!((printed.figures[name] - expected).abs() < 1e-9, "{name}");
    };
    check(&printed, "requests_per_s", 5.0);
    check(&printed, "bytes_per_response", 85.0);
    check(&printed, "latency_s.p999", 0.000_999);
    assert_eq!(printed.percentiles.len(), 5);
    let ab = include_str!("../../tests/fixtures/output/ab.txt");
    let text =
        format!("{ab}Percentage served,Time in ms\n0,0.015\n50,0.050\n99,0.130\n100,0.759\n");
    let printed = parse(Tool::Ab, &text).unwrap();
    check(&printed, "latency_s.p50", 0.000_05);
    check(&printed, "latency_s.max", 0.000_759);
    assert_eq!(printed.percentiles.len(), 4);
}

#[test]
fn an_open_loops_lateness_and_verdict_are_figures() {
    let text = include_str!("../../tests/fixtures/output/load-open.json");
    let printed = parse(Tool::MillstreamLoad, text).unwrap();
    assert!(
        printed.figures.contains_key("late_share.50us"),
        "{:?}",
        printed.figures
    );
    assert!(
        printed.figures.contains_key("lateness_s.p99"),
        "{:?}",
        printed.figures
    );
    let verdicts = printed
        .figures
        .iter()
        .filter(|(name, _)| name.starts_with("verdict."));
    assert_eq!(verdicts.map(|(_, value)| value).sum::<f64>(), 1.0);
}
