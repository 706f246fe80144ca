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
    for (figure, value) in expected {
        let read = printed.figures.get(*figure).copied();
        let close = read.is_some_and(|read| (read - value).abs() <= value.abs() * 1e-9);
        assert!(close, "{name}: {figure} is {read:?}, not {value}");
    }
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

/// Whatever comes out of a text that was cut off stands in the whole text as well.
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
    ] {
        check_cut(tool, name);
    }
}
